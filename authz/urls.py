"""Paths below /api; segments arrive as they were sent and are decoded once by the endpoints."""

from django.urls import URLPattern, path

from authz import api
from metalake.rest import Endpoint

P = "metalakes/<str:metalake>"
PERMISSIONS = f"{P}/permissions"
OBJECT = "<str:type_>/<str:full_name>"


def slashed(route: str, endpoint: type[Endpoint]) -> list[URLPattern]:
    """With and without the trailing slash: the reference server declares it, its clients leave it out."""
    return [path(route, endpoint.as_view()), path(f"{route}/", endpoint.as_view())]


urlpatterns = [
    path(f"{P}/users", api.Users.as_view()),
    path(f"{P}/users/<str:user>", api.User.as_view()),
    path(f"{P}/groups", api.Groups.as_view()),
    path(f"{P}/groups/<str:group>", api.Group.as_view()),
    path(f"{P}/roles", api.Roles.as_view()),
    path(f"{P}/roles/<str:role>", api.Role.as_view()),
    path(f"{P}/objects/{OBJECT}/roles", api.RolesOfObject.as_view()),
    path(f"{P}/owners/{OBJECT}", api.Owner.as_view()),
    *slashed(f"{PERMISSIONS}/users/<str:user>/grant", api.GrantRolesToUser),
    *slashed(f"{PERMISSIONS}/users/<str:user>/revoke", api.RevokeRolesFromUser),
    *slashed(f"{PERMISSIONS}/groups/<str:group>/grant", api.GrantRolesToGroup),
    *slashed(f"{PERMISSIONS}/groups/<str:group>/revoke", api.RevokeRolesFromGroup),
    *slashed(f"{PERMISSIONS}/roles/<str:role>", api.OverrideRole),
    *slashed(f"{PERMISSIONS}/roles/<str:role>/{OBJECT}/grant", api.GrantPrivileges),
    *slashed(f"{PERMISSIONS}/roles/<str:role>/{OBJECT}/revoke", api.RevokePrivileges),
    path("authn/me", api.Me.as_view()),
    path("tokens", api.Tokens.as_view()),
    path("tokens/<str:id>", api.Token.as_view()),
]
