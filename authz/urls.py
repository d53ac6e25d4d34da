"""The native wire's paths for users, groups, roles, permissions, owners and tokens."""

from authz.api import access as api_access
from authz.api import auditing as api_auditing
from authz.api import bulk as api_bulk
from authz.api import dormancy as api_dormancy
from authz.api import grantable as api_grantable
from authz.api import invitations as api_invitations
from authz.api import plans as api_plans
from authz.api import review as api_review
from authz.api import rights as api
from authz.api import searching as api_searching
from authz.api import seeing as api_seeing
from authz.api import streams as api_streams
from authz.api import use as api_use
from authz.api import ways as api_ways
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
    route(f"{BULK}/access/state", api_streams.BulkState),
    route(f"{BULK}/access/audit", api_streams.BulkAudit),
    route(f"{BULK}/access/use", api_streams.BulkUse),
    route(f"{BULK}/access/review", api_review.DeliverReview),
    route(f"{METALAKE}/access/review", api_review.Reviewed),
    route(f"{BULK}/access/dormant", api_dormancy.DeliverDormancy),
    route(f"{METALAKE}/access/dormant", api_dormancy.Dormant),
    route(f"{METALAKE}/access/rules", api_streams.Rules),
    route(f"{METALAKE}/access/explain", api_access.Explain),
    route(f"{METALAKE}/access/former-members", api_access.FormerMembers),
    route(f"{METALAKE}/access/check", api_access.Check),
    route(f"{METALAKE}/access/objects/{OBJECT}", api_access.WhoReaches),
    route(f"{METALAKE}/access/objects/{OBJECT}/changes", api_auditing.ChangesOfObject),
    route(f"{METALAKE}/access/objects/{OBJECT}/use", api_use.UseOfObject),
    route(f"{METALAKE}/access/use", api_use.OwnUse),
    route(f"{METALAKE}/access/objects/{OBJECT}/grantable", api_grantable.Grantable),
    route(f"{METALAKE}/access/objects/{OBJECT}/ways", api_ways.Ways),
    route(f"{METALAKE}/access/objects/{OBJECT}/moments", api_ways.Moments),
    route(f"{METALAKE}/access/objects/{OBJECT}/compared", api_ways.ComparedAccess),
    route(f"{METALAKE}/access/users/<user>", api_access.ReachedByUser),
    route(f"{METALAKE}/access/users/<user>/children", api_seeing.ChildrenSeenByUser),
    route(f"{METALAKE}/access/groups/<group>", api_access.ReachedByGroup),
    route(f"{METALAKE}/access/roles/<role>", api_access.ReachedByRole),
    route(f"{METALAKE}/access/export", api_plans.Export),
    route(f"{METALAKE}/access/plan", api_plans.Plan),
    route(f"{METALAKE}/access/changes", api_plans.Changes),
    route(f"{METALAKE}/access/proposals", api_plans.Proposals),
    route(f"{METALAKE}/access/removals", api_plans.Removals),
    route(f"{METALAKE}/access/apply", api_plans.Apply),
    route(f"{METALAKE}/access/undo", api_plans.Undo),
    route(f"{METALAKE}/search", api_searching.Search),
    route("authn/me", api.Me),
    route("tokens", api.Tokens),
    route("tokens/<id>", api.Token),
]
