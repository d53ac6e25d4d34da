"""The native wire's endpoints of users, groups, roles, permissions, owners and tokens; parsing and shape only."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from authz.services import grants, owners, people, roles, tokens
from authz.wire import rights as wire
from metalake.errors import Forbidden, Invalid
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of

USER, GROUP, ROLE = {"user": wire.UserReply}, {"group": wire.GroupReply}, {"role": wire.RoleReply}


class Users(Endpoint):
    @answers(
        "list_members", reply={"names": list[str] | None, "users": list[wire.UserReply] | None}, query=("details",)
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the users: all for those who manage them, oneself for others."""
        users = people.list_users(actor, metalake)
        if self.flag("details"):
            return {"users": [wire.user_reply(person) for person in users]}
        return {"names": [person.name for person in users]}

    @answers("manage_users", body=wire.UserAddRequest, reply=USER)
    def post(self, actor: Actor, metalake: str, body: wire.UserAddRequest) -> dict[str, Any]:
        """Add a user by name."""
        added = people.add_user(actor, metalake, body.name, body.external_id, body.enabled)
        return {"user": wire.user_reply(added)}


class User(Endpoint):
    @answers("list_members", reply=USER)
    def get(self, actor: Actor, metalake: str, user: str) -> dict[str, Any]:
        """Get a user."""
        return {"user": wire.user_reply(people.get_user(actor, metalake, user))}

    @answers("manage_users", reply={"removed": bool})
    def delete(self, actor: Actor, metalake: str, user: str) -> dict[str, Any]:
        """Remove a user; what they own goes to the metalake's owner."""
        return {"removed": people.remove_user(actor, metalake, user)}


class Groups(Endpoint):
    @answers(
        "list_members", reply={"names": list[str] | None, "groups": list[wire.GroupReply] | None}, query=("details",)
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the groups: all for those who manage them, one's own for others."""
        groups = people.list_groups(actor, metalake)
        if self.flag("details"):
            return {"groups": [wire.group_reply(person) for person in groups]}
        return {"names": [person.name for person in groups]}

    @answers("manage_groups", body=wire.GroupAddRequest, reply=GROUP)
    def post(self, actor: Actor, metalake: str, body: wire.GroupAddRequest) -> dict[str, Any]:
        """Add a stored group."""
        return {"group": wire.group_reply(people.add_group(actor, metalake, body.name, body.external_id))}


class Group(Endpoint):
    @answers("list_members", reply=GROUP)
    def get(self, actor: Actor, metalake: str, group: str) -> dict[str, Any]:
        """Get a group, with its users for those who manage groups."""
        return {"group": wire.group_reply(people.get_group(actor, metalake, group))}

    @answers("manage_groups", body=wire.GroupUsersRequest, reply=GROUP)
    def put(self, actor: Actor, metalake: str, group: str, body: wire.GroupUsersRequest) -> dict[str, Any]:
        """Put users into a group and take others out."""
        changed = people.set_group_users(actor, metalake, group, body.users_to_add, body.users_to_remove)
        return {"group": wire.group_reply(changed)}

    @answers("manage_groups", reply={"removed": bool})
    def delete(self, actor: Actor, metalake: str, group: str) -> dict[str, Any]:
        """Remove a group; what it owns goes to the metalake's owner."""
        return {"removed": people.remove_group(actor, metalake, group)}


class RoleEndpoint(Endpoint):
    def shown(self, role: roles.RoleRecord) -> dict[str, Any]:
        return wire.role_reply(role, for_gravitino=self.is_for_gravitino)


class Roles(RoleEndpoint):
    @answers("list_roles", reply={"names": list[str]})
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the roles: all for those who assign them, held and owned ones for others."""
        return {"names": roles.list_roles(actor, metalake)}

    @answers("create_role", body=wire.RoleCreateRequest, reply=ROLE)
    def post(self, actor: Actor, metalake: str, body: wire.RoleCreateRequest) -> dict[str, Any]:
        """Create a role with its first grants."""
        asks = [securable.ask() for securable in body.securable_objects]
        return {"role": self.shown(roles.create_role(actor, metalake, body.name, body.properties, asks))}


class Role(RoleEndpoint):
    @answers("load_role", reply=ROLE)
    def get(self, actor: Actor, metalake: str, role: str) -> dict[str, Any]:
        """Get a role with all that it holds."""
        return {"role": self.shown(roles.load_role(actor, metalake, role))}

    @answers("drop_role", reply={"dropped": bool})
    def delete(self, actor: Actor, metalake: str, role: str) -> dict[str, Any]:
        """Delete a role."""
        return {"dropped": roles.drop_role(actor, metalake, role)}


class RolesOfObject(Endpoint):
    @answers("load", reply={"names": list[str]})
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List the roles with grants on an object; asks to load it, or to grant there."""
        return {"names": roles.roles_of_object(actor, metalake, kind_of(type), full_name)}


class GrantRolesToUser(Endpoint):
    @answers("assign_roles", body=wire.RoleNamesRequest, reply=USER)
    def put(self, actor: Actor, metalake: str, user: str, body: wire.RoleNamesRequest) -> dict[str, Any]:
        """Assign roles to a user."""
        return {"user": wire.user_reply(roles.assign_roles(actor, metalake, "user", user, body.role_names))}


class RevokeRolesFromUser(Endpoint):
    @answers("assign_roles", body=wire.RoleNamesRequest, reply=USER)
    def put(self, actor: Actor, metalake: str, user: str, body: wire.RoleNamesRequest) -> dict[str, Any]:
        """Take roles from a user."""
        return {"user": wire.user_reply(roles.unassign_roles(actor, metalake, "user", user, body.role_names))}


class GrantRolesToGroup(Endpoint):
    @answers("assign_roles", body=wire.RoleNamesRequest, reply=GROUP)
    def put(self, actor: Actor, metalake: str, group: str, body: wire.RoleNamesRequest) -> dict[str, Any]:
        """Assign roles to a group."""
        return {"group": wire.group_reply(roles.assign_roles(actor, metalake, "group", group, body.role_names))}


class RevokeRolesFromGroup(Endpoint):
    @answers("assign_roles", body=wire.RoleNamesRequest, reply=GROUP)
    def put(self, actor: Actor, metalake: str, group: str, body: wire.RoleNamesRequest) -> dict[str, Any]:
        """Take roles from a group."""
        return {"group": wire.group_reply(roles.unassign_roles(actor, metalake, "group", group, body.role_names))}


class GrantPrivileges(RoleEndpoint):
    @answers("grant_on", body=wire.PrivilegesRequest, reply=ROLE)
    def put(
        self, actor: Actor, metalake: str, role: str, type: str, full_name: str, body: wire.PrivilegesRequest
    ) -> dict[str, Any]:
        """Grant privileges on an object to a role; asks the authority to grant on an object of that kind."""
        given = wire.pairs(body.privileges)
        granted = grants.grant_privileges(actor, metalake, role, kind_of(type), full_name, given)
        return {"role": self.shown(granted)}


class RevokePrivileges(RoleEndpoint):
    @answers("grant_on", body=wire.PrivilegesRequest, reply=ROLE)
    def put(
        self, actor: Actor, metalake: str, role: str, type: str, full_name: str, body: wire.PrivilegesRequest
    ) -> dict[str, Any]:
        """Revoke privileges on an object from a role; lifting a DENY asks authority on the object's parent."""
        given = wire.pairs(body.privileges)
        left = grants.revoke_privileges(actor, metalake, role, kind_of(type), full_name, given)
        return {"role": self.shown(left)}


class OverrideRole(RoleEndpoint):
    @answers("assign_roles", body=wire.OverridesRequest, reply=ROLE)
    def put(self, actor: Actor, metalake: str, role: str, body: wire.OverridesRequest) -> dict[str, Any]:
        """Replace everything that a role holds.

        Gravitino's clients (by their Accept header) know neither times nor ALTER_VIEW, DROP_VIEW and
        BOOTSTRAP_NAMESPACE: for them these are left out of roles, and stay when a role is replaced.
        """
        asks = [securable.ask() for securable in body.overrides]
        whole = grants.override_role(actor, metalake, role, asks, in_part=self.is_for_gravitino)
        return {"role": self.shown(whole)}


class Owner(Endpoint):
    @answers("load", reply={"owner": wire.OwnerReply})
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """Get the owner of an object; asks to load it."""
        return {"owner": wire.owner_reply(owners.get_owner(actor, metalake, kind_of(type), full_name))}

    @answers("own", body=wire.OwnerSetRequest, reply={"set": bool})
    def put(self, actor: Actor, metalake: str, type: str, full_name: str, body: wire.OwnerSetRequest) -> dict[str, Any]:
        """Set the owner of an object; asks to own it or an object above it."""
        owners.set_owner(actor, metalake, kind_of(type), full_name, body.name, body.type)
        return {"set": True}


class Me(Endpoint):
    @answers("caller", reply={"principal": str})
    def get(self, actor: Actor) -> dict[str, Any]:
        """Who the caller is to the server."""
        return {"principal": actor.name}


class Tokens(Endpoint):
    @answers("caller", reply={"tokens": list[wire.TokenReply]})
    def get(self, actor: Actor) -> dict[str, Any]:
        """List the caller's personal tokens, without their secrets."""
        return {"tokens": [wire.token_reply(row) for row in tokens.list_tokens(actor)]}

    @answers("caller", body=wire.TokenIssueRequest, reply={"token": wire.TokenReply})
    def post(self, actor: Actor, body: wire.TokenIssueRequest) -> dict[str, Any]:
        """Issue a personal token; its secret is shown this once."""
        # A leaked token must not make another that outlives its revocation.
        if not self.request.META.get("HTTP_AUTHORIZATION", "").lower().startswith("basic "):
            raise Forbidden("A token is made with the password, not with another token.")
        return {"token": wire.issued_reply(tokens.issue(actor, body.name, body.expires_at, body.user))}


class Token(Endpoint):
    @answers("caller", reply={"revoked": bool})
    def delete(self, actor: Actor, id: str) -> dict[str, Any]:
        """Revoke one of the caller's tokens, at once."""
        if not id.isascii() or not id.isdigit() or len(id) > 18:
            raise Invalid("A token's id is a number.", kind="token")
        return {"revoked": tokens.revoke(actor, int(id))}
