"""Native API bodies of users, groups, roles, grants, owners and tokens, as Gravitino documents them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from authz.models import Token
from authz.services.grant_entries import Ask, Entries
from authz.services.owners import Owner
from authz.services.people import Person
from authz.services.roles import GrantedOn, RoleRecord
from authz.services.tokens import Issued
from metalake.privileges import BEYOND_GRAVITINO, Privilege
from metalake.rest.replies import AuditReply, audit_of
from metalake.wire import Body, Moment, Reply, kind_of, written


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


AnyCase = BeforeValidator(_lower)
ExternalId = Annotated[str, Field(max_length=255)]

# Requests


class UserAddRequest(Body):
    """A user, named; the account is made if there is none."""

    name: str
    external_id: ExternalId | None = None
    enabled: bool = True


class GroupAddRequest(Body):
    """A stored group."""

    name: str
    external_id: ExternalId | None = None


class GroupUsersRequest(Body):
    """Our extension: who enters a stored group and who leaves it."""

    users_to_add: list[str] = []
    users_to_remove: list[str] = []


class PrivilegeBody(Body):
    """A privilege and whether it is allowed or denied, in any case; our extension: from when and until when."""

    name: str
    condition: Annotated[Literal["allow", "deny"], AnyCase]
    start_time: Moment | None = None
    end_time: Moment | None = None


class SecurableBody(Body):
    """An object and what is granted on it."""

    full_name: str
    type: str
    privileges: list[PrivilegeBody]

    def ask(self) -> Ask:
        return Ask(kind_of(self.type), self.full_name, pairs(self.privileges))


class RoleCreateRequest(Body):
    """A role with its first grants."""

    name: str
    properties: dict[str, str] = {}
    securable_objects: list[SecurableBody] = []


class RoleNamesRequest(Body):
    """The roles to assign or to take away."""

    role_names: list[str]


class PrivilegesRequest(Body):
    """The privileges to grant or to revoke."""

    privileges: list[PrivilegeBody]


class OverridesRequest(Body):
    """Everything that the role holds from now on."""

    overrides: list[SecurableBody]


class OwnerSetRequest(Body):
    """The new owner, of this metalake."""

    name: str
    type: Annotated[Literal["user", "group"], AnyCase]


class TokenIssueRequest(Body):
    """Our extension: a personal token; without `expiresAt` it lasts until it is revoked. `user` is for operators."""

    name: str
    expires_at: Moment | None = None
    user: str | None = None


def pairs(privileges: list[PrivilegeBody]) -> list[tuple[str, str, datetime | None, datetime | None]]:
    return [(privilege.name, privilege.condition, privilege.start_time, privilege.end_time) for privilege in privileges]


# Replies


class UserReply(Reply):
    """A user of the metalake with the roles they hold themselves."""

    name: str
    external_id: str | None = None
    enabled: bool
    roles: list[str]
    audit: AuditReply


class GroupReply(Reply):
    """A stored group; those who manage groups also get its users, and former ones who stay in it by a DENY."""

    name: str
    external_id: str | None = None
    roles: list[str]
    users: list[str] | None = None
    former_users: list[str] | None = None
    audit: AuditReply


class PrivilegeReply(Reply):
    """A privilege, allowed or denied; the times are present if it is granted for a time."""

    name: str
    condition: str
    start_time: str | None = None
    end_time: str | None = None


class SecurableReply(Reply):
    """What a role holds on one object."""

    full_name: str
    type: str
    privileges: list[PrivilegeReply]


class RoleReply(Reply):
    """A role; without properties and audit for a caller who may grant to it but not read it."""

    name: str
    properties: dict[str, str] | None = None
    securable_objects: list[SecurableReply]
    audit: AuditReply | None = None


class ObjectReply(Reply):
    """An object by type and full name."""

    type: str
    full_name: str


class OwnerReply(Reply):
    """A user or a group."""

    name: str
    type: Literal["USER", "GROUP"]


class TokenReply(Reply):
    """A personal token; `secret` is there once, when the token is issued."""

    id: int
    name: str
    created_at: str
    expires_at: str | None = None
    secret: str | None = None


def user_reply(person: Person) -> dict[str, Any]:
    return present(
        name=person.name,
        externalId=person.row.external_id,
        enabled=getattr(person.row, "enabled", True),
        roles=person.roles,
        audit=audit_of(person.row),
    )


def group_reply(person: Person) -> dict[str, Any]:
    return present(
        name=person.name,
        externalId=person.row.external_id,
        roles=person.roles,
        users=person.users,
        formerUsers=person.former or None,
        audit=audit_of(person.row),
    )


def role_reply(role: RoleRecord, *, for_gravitino: bool = False) -> dict[str, Any]:
    """A role; for Gravitino clients without the privileges that Gravitino does not have."""
    hidden = BEYOND_GRAVITINO if for_gravitino else frozenset()
    return present(
        name=role.name,
        properties=role.row and role.row.properties,
        securableObjects=[_securable_reply(granted, hidden) for granted in role.grants],
        audit=audit_of(role.row) if role.row else None,
    )


def _securable_reply(granted: GrantedOn, hidden: Collection[Privilege]) -> dict[str, Any]:
    entries = {privilege: given for privilege, given in granted.entries.items() if privilege not in hidden}
    return {
        "fullName": granted.full_name,
        "type": granted.kind.value,
        "privileges": _privilege_replies(entries),
    }


def _privilege_replies(entries: Entries) -> list[dict[str, Any]]:
    return [
        present(
            name=privilege.value,
            condition=given.effect.value,
            startTime=given.starts and written(given.starts),
            endTime=given.ends and written(given.ends),
        )
        for privilege, given in sorted(entries.items())
    ]


def owner_reply(owner: Owner) -> dict[str, str]:
    return {"name": owner.name, "type": owner.type.upper()}


def token_reply(row: Token) -> dict[str, Any]:
    return present(
        id=row.pk,
        name=row.name,
        createdAt=written(row.created_at),
        expiresAt=row.expires_at and written(row.expires_at),
    )


def issued_reply(issued: Issued) -> dict[str, Any]:
    return token_reply(issued.row) | {"secret": issued.secret}


def present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
