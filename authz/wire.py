"""The native wire's bodies of users, groups, roles, grants, owners and tokens (wire reference, section 7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from authz.models import Token
from authz.services.entries import Ask, Entries
from authz.services.owners import Owner
from authz.services.people import Person
from authz.services.roles import GrantedOn, RoleRecord
from authz.services.tokens import Issued
from metalake.rest import Body, Reply, audit_of, kind_of


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("NUL is not allowed")
    return text


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _moment(text: Any) -> Any:
    """ISO 8601; without an offset it is UTC."""
    if not isinstance(text, str):
        return text
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Text = Annotated[str, AfterValidator(_without_nul)]
AnyCase = BeforeValidator(_lower)
Moment = Annotated[datetime, BeforeValidator(_moment)]
Properties = dict[Text, Text]

# What is asked


class UserAdd(Body):
    name: Text
    external_id: Text | None = Field(None, alias="externalId")
    enabled: bool | None = None


class GroupAdd(Body):
    name: Text
    external_id: Text | None = Field(None, alias="externalId")


class GroupUsers(Body):
    """Our extension: who is in a stored group."""

    users_to_add: list[Text] | None = Field(None, alias="usersToAdd")
    users_to_remove: list[Text] | None = Field(None, alias="usersToRemove")


class PrivilegeBody(Body):
    name: str
    condition: Annotated[Literal["allow", "deny"], AnyCase]


class SecurableBody(Body):
    full_name: Text = Field(alias="fullName")
    type: str
    privileges: list[PrivilegeBody]

    def ask(self) -> Ask:
        return Ask(kind_of(self.type), self.full_name, pairs(self.privileges))


class RoleCreate(Body):
    name: Text
    properties: Properties | None = None
    securable_objects: list[SecurableBody] | None = Field(None, alias="securableObjects")


class RoleNames(Body):
    role_names: list[Text] = Field(alias="roleNames")


class Privileges(Body):
    privileges: list[PrivilegeBody]


class Overrides(Body):
    overrides: list[SecurableBody]


class OwnerSet(Body):
    name: Text
    type: Annotated[Literal["user", "group"], AnyCase]


class TokenIssue(Body):
    """Our extension: a personal token; without `expiresAt` it lasts until it is revoked."""

    name: Text
    expires_at: Moment | None = Field(None, alias="expiresAt")


def pairs(privileges: list[PrivilegeBody]) -> list[tuple[str, str]]:
    return [(privilege.name, privilege.condition) for privilege in privileges]


# What is answered


class AuditReply(Reply):
    creator: str
    createTime: str
    lastModifier: str | None = None
    lastModifiedTime: str | None = None


class UserReply(Reply):
    name: str
    externalId: str | None = None
    enabled: bool
    roles: list[str]
    audit: AuditReply


class GroupReply(Reply):
    """`users` is our extension, for those who manage groups."""

    name: str
    externalId: str | None = None
    roles: list[str]
    users: list[str] | None = None
    audit: AuditReply


class PrivilegeReply(Reply):
    name: str
    condition: str


class SecurableReply(Reply):
    fullName: str
    type: str
    privileges: list[PrivilegeReply]


class RoleReply(Reply):
    """Without properties and audit for who may grant to the role but not read it."""

    name: str
    properties: dict[str, str] | None = None
    securableObjects: list[SecurableReply]
    audit: AuditReply | None = None


class OwnerReply(Reply):
    name: str
    type: str


class TokenReply(Reply):
    """`secret` is there once, when the token is issued."""

    id: int
    name: str
    createdAt: str
    expiresAt: str | None = None
    secret: str | None = None


def user_dto(person: Person) -> dict[str, Any]:
    return _given(
        name=person.name,
        externalId=person.row.external_id,
        enabled=getattr(person.row, "enabled", True),
        roles=person.roles,
        audit=audit_of(person.row),
    )


def group_dto(person: Person) -> dict[str, Any]:
    return _given(
        name=person.name,
        externalId=person.row.external_id,
        roles=person.roles,
        users=person.users,
        audit=audit_of(person.row),
    )


def role_dto(role: RoleRecord) -> dict[str, Any]:
    return _given(
        name=role.name,
        properties=role.row and role.row.properties,
        securableObjects=[_securable_dto(granted) for granted in role.grants],
        audit=audit_of(role.row) if role.row else None,
    )


def _securable_dto(granted: GrantedOn) -> dict[str, Any]:
    return {
        "fullName": granted.full_name,
        "type": granted.kind.value,
        "privileges": _privilege_dtos(granted.entries),
    }


def _privilege_dtos(entries: Entries) -> list[dict[str, str]]:
    return [{"name": privilege.value, "condition": entries[privilege].value} for privilege in sorted(entries)]


def owner_dto(owner: Owner) -> dict[str, str]:
    return {"name": owner.name, "type": owner.type.upper()}


def token_dto(row: Token) -> dict[str, Any]:
    return _given(
        id=row.pk,
        name=row.name,
        createdAt=_written(row.created_at),
        expiresAt=row.expires_at and _written(row.expires_at),
    )


def issued_dto(issued: Issued) -> dict[str, Any]:
    return token_dto(issued.row) | {"secret": issued.secret}


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
