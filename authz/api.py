"""The native wire's endpoints of users, groups, roles, permissions, owners and tokens; parsing and shape only."""

from __future__ import annotations

from typing import Any

from authz import wire
from authz.policy import Actor
from authz.services import grants, owners, people, roles, tokens
from metalake.errors import Forbidden, Invalid
from metalake.rest import Endpoint, answers, kind_of

NAMES = {"names": list[str]}
USER, GROUP, ROLE = {"user": wire.UserReply}, {"group": wire.GroupReply}, {"role": wire.RoleReply}


class Users(Endpoint):
    @answers("list_members", reply=NAMES | {"users": list[wire.UserReply]}, query=("details",))
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        found = people.list_users(actor, metalake)
        if self.flag("details"):
            return {"users": [wire.user_dto(person) for person in found]}
        return {"names": [person.name for person in found]}

    @answers("manage_users", body=wire.UserAdd, reply=USER)
    def post(self, actor: Actor, metalake: str, body: wire.UserAdd) -> dict[str, Any]:
        enabled = body.enabled is not False
        return {"user": wire.user_dto(people.add_user(actor, metalake, body.name, body.external_id, enabled))}


class User(Endpoint):
    @answers("list_members", reply=USER)
    def get(self, actor: Actor, metalake: str, user: str) -> dict[str, Any]:
        return {"user": wire.user_dto(people.get_user(actor, metalake, user))}

    @answers("manage_users", reply={"removed": bool})
    def delete(self, actor: Actor, metalake: str, user: str) -> dict[str, Any]:
        return {"removed": people.remove_user(actor, metalake, user)}


class Groups(Endpoint):
    @answers("list_members", reply=NAMES | {"groups": list[wire.GroupReply]}, query=("details",))
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        found = people.list_groups(actor, metalake)
        if self.flag("details"):
            return {"groups": [wire.group_dto(person) for person in found]}
        return {"names": [person.name for person in found]}

    @answers("manage_groups", body=wire.GroupAdd, reply=GROUP)
    def post(self, actor: Actor, metalake: str, body: wire.GroupAdd) -> dict[str, Any]:
        return {"group": wire.group_dto(people.add_group(actor, metalake, body.name, body.external_id))}


class Group(Endpoint):
    @answers("list_members", reply=GROUP)
    def get(self, actor: Actor, metalake: str, group: str) -> dict[str, Any]:
        return {"group": wire.group_dto(people.get_group(actor, metalake, group))}

    @answers("manage_groups", body=wire.GroupUsers, reply=GROUP)
    def put(self, actor: Actor, metalake: str, group: str, body: wire.GroupUsers) -> dict[str, Any]:
        add, remove = body.users_to_add or [], body.users_to_remove or []
        return {"group": wire.group_dto(people.set_group_users(actor, metalake, group, add, remove))}

    @answers("manage_groups", reply={"removed": bool})
    def delete(self, actor: Actor, metalake: str, group: str) -> dict[str, Any]:
        return {"removed": people.remove_group(actor, metalake, group)}


class Roles(Endpoint):
    @answers("list_roles", reply=NAMES)
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        return {"names": roles.list_roles(actor, metalake)}

    @answers("create_role", body=wire.RoleCreate, reply=ROLE)
    def post(self, actor: Actor, metalake: str, body: wire.RoleCreate) -> dict[str, Any]:
        asks = [securable.ask() for securable in body.securable_objects or []]
        return {"role": wire.role_dto(roles.create_role(actor, metalake, body.name, body.properties, asks))}


class Role(Endpoint):
    @answers("list_roles", reply=ROLE)
    def get(self, actor: Actor, metalake: str, role: str) -> dict[str, Any]:
        return {"role": wire.role_dto(roles.load_role(actor, metalake, role))}

    @answers("drop_role", reply={"dropped": bool})
    def delete(self, actor: Actor, metalake: str, role: str) -> dict[str, Any]:
        return {"dropped": roles.drop_role(actor, metalake, role)}


class RolesOfObject(Endpoint):
    @answers("load_metalake", reply=NAMES)
    def get(self, actor: Actor, metalake: str, type_: str, full_name: str) -> dict[str, Any]:
        return {"names": roles.roles_of_object(actor, metalake, kind_of(type_), full_name)}


class GrantRolesToUser(Endpoint):
    @answers("assign_roles", body=wire.RoleNames, reply=USER)
    def put(self, actor: Actor, metalake: str, user: str, body: wire.RoleNames) -> dict[str, Any]:
        return {"user": wire.user_dto(roles.assign_roles(actor, metalake, "user", user, body.role_names))}


class RevokeRolesFromUser(Endpoint):
    @answers("assign_roles", body=wire.RoleNames, reply=USER)
    def put(self, actor: Actor, metalake: str, user: str, body: wire.RoleNames) -> dict[str, Any]:
        return {"user": wire.user_dto(roles.unassign_roles(actor, metalake, "user", user, body.role_names))}


class GrantRolesToGroup(Endpoint):
    @answers("assign_roles", body=wire.RoleNames, reply=GROUP)
    def put(self, actor: Actor, metalake: str, group: str, body: wire.RoleNames) -> dict[str, Any]:
        return {"group": wire.group_dto(roles.assign_roles(actor, metalake, "group", group, body.role_names))}


class RevokeRolesFromGroup(Endpoint):
    @answers("assign_roles", body=wire.RoleNames, reply=GROUP)
    def put(self, actor: Actor, metalake: str, group: str, body: wire.RoleNames) -> dict[str, Any]:
        return {"group": wire.group_dto(roles.unassign_roles(actor, metalake, "group", group, body.role_names))}


class GrantPrivileges(Endpoint):
    """Asks the row of the object's kind."""

    @answers("grant_on_metalake", body=wire.Privileges, reply=ROLE)
    def put(
        self, actor: Actor, metalake: str, role: str, type_: str, full_name: str, body: wire.Privileges
    ) -> dict[str, Any]:
        given = wire.pairs(body.privileges)
        granted = grants.grant_privileges(actor, metalake, role, kind_of(type_), full_name, given)
        return {"role": wire.role_dto(granted)}


class RevokePrivileges(Endpoint):
    """Asks the row of the object's kind, or of its parent's where a DENY is lifted."""

    @answers("grant_on_metalake", body=wire.Privileges, reply=ROLE)
    def put(
        self, actor: Actor, metalake: str, role: str, type_: str, full_name: str, body: wire.Privileges
    ) -> dict[str, Any]:
        given = wire.pairs(body.privileges)
        left = grants.revoke_privileges(actor, metalake, role, kind_of(type_), full_name, given)
        return {"role": wire.role_dto(left)}


class OverrideRole(Endpoint):
    @answers("assign_roles", body=wire.Overrides, reply=ROLE)
    def put(self, actor: Actor, metalake: str, role: str, body: wire.Overrides) -> dict[str, Any]:
        asks = [securable.ask() for securable in body.overrides]
        return {"role": wire.role_dto(grants.override_role(actor, metalake, role, asks))}


class Owner(Endpoint):
    """Asks the row of the object's kind."""

    @answers("load_metalake", reply={"owner": wire.OwnerReply})
    def get(self, actor: Actor, metalake: str, type_: str, full_name: str) -> dict[str, Any]:
        return {"owner": wire.owner_dto(owners.get_owner(actor, metalake, kind_of(type_), full_name))}

    @answers("own_metalake", body=wire.OwnerSet, reply={"set": bool})
    def put(self, actor: Actor, metalake: str, type_: str, full_name: str, body: wire.OwnerSet) -> dict[str, Any]:
        owners.set_owner(actor, metalake, kind_of(type_), full_name, body.name, body.type)
        return {"set": True}


class Me(Endpoint):
    @answers("caller", reply={"principal": str})
    def get(self, actor: Actor) -> dict[str, Any]:
        return {"principal": actor.name}


class Tokens(Endpoint):
    """Our extension: the caller's personal tokens."""

    @answers("caller", reply={"tokens": list[wire.TokenReply]})
    def get(self, actor: Actor) -> dict[str, Any]:
        return {"tokens": [wire.token_dto(row) for row in tokens.list_tokens(actor)]}

    @answers("caller", body=wire.TokenIssue, reply={"token": wire.TokenReply})
    def post(self, actor: Actor, body: wire.TokenIssue) -> dict[str, Any]:
        # Otherwise a leaked token could outlive its own revocation.
        if not self.request.META.get("HTTP_AUTHORIZATION", "").lower().startswith("basic "):
            raise Forbidden("A token is made with the password, not with another token.")
        return {"token": wire.issued_dto(tokens.issue(actor, body.name, body.expires_at))}


class Token(Endpoint):
    @answers("caller", reply={"revoked": bool})
    def delete(self, actor: Actor, id: str) -> dict[str, Any]:
        if not id.isascii() or not id.isdigit() or len(id) > 18:
            raise Invalid("A token's id is a number.", kind="token")
        return {"revoked": tokens.revoke(actor, int(id))}
