"""Native API paths for users, groups, roles, permissions, owners and tokens."""

from authz.api import bulk as api_bulk
from authz.api import invitations as api_invitations
from authz.api import rights as api
from metalake.rest.views import route

METALAKE = "metalakes/<metalake>"
BULK = f"bulk/{METALAKE}"
PERMISSIONS = f"{METALAKE}/permissions"
OBJECT = "<type>/<full_name>"

urlpatterns = [
    route(f"{METALAKE}/users", api.Users),
    route(f"{METALAKE}/users/<user>", api.User),
    route(f"{METALAKE}/users/<user>/invitation", api_invitations.Invitation),
    route(f"{METALAKE}/groups", api.Groups),
    route(f"{METALAKE}/groups/<group>", api.Group),
    route(f"{METALAKE}/roles", api.Roles),
    route(f"{METALAKE}/roles/<role>", api.Role),
    route(f"{METALAKE}/objects/{OBJECT}/roles", api.RolesOfObject),
    route(f"{METALAKE}/owners/{OBJECT}", api.Owner),
    route(f"{PERMISSIONS}/users/<user>/grant", api.GrantRolesToUser),
    route(f"{PERMISSIONS}/users/<user>/revoke", api.RevokeRolesFromUser),
    route(f"{PERMISSIONS}/groups/<group>/grant", api.GrantRolesToGroup),
    route(f"{PERMISSIONS}/groups/<group>/revoke", api.RevokeRolesFromGroup),
    route(f"{PERMISSIONS}/roles/<role>", api.OverrideRole),
    route(f"{PERMISSIONS}/roles/<role>/{OBJECT}/grant", api.GrantPrivileges),
    route(f"{PERMISSIONS}/roles/<role>/{OBJECT}/revoke", api.RevokePrivileges),
    route(f"{BULK}/users/add", api_bulk.AddUsers),
    route(f"{BULK}/users/remove", api_bulk.RemoveUsers),
    route(f"{BULK}/groups/add", api_bulk.AddGroups),
    route(f"{BULK}/groups/remove", api_bulk.RemoveGroups),
    route("authn/me", api.Me),
    route("tokens", api.Tokens),
    route("tokens/<id>", api.Token),
]
