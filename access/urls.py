"""The native wire's paths for questions about access, for changes of it by plans, and for the search."""

from access.api import access, audit_log, bulk_export, dormancy, grantable, plans, review, search, usage, view_as, ways
from authz.urls import BULK, METALAKE, OBJECT
from metalake.rest.views import route

urlpatterns = [
    route(f"{BULK}/access/state", bulk_export.BulkState),
    route(f"{BULK}/access/audit", bulk_export.BulkAudit),
    route(f"{BULK}/access/use", bulk_export.BulkUse),
    route(f"{BULK}/access/review", review.DeliverReview),
    route(f"{METALAKE}/access/review", review.Reviewed),
    route(f"{BULK}/access/dormant", dormancy.DeliverDormancy),
    route(f"{METALAKE}/access/dormant", dormancy.Dormant),
    route(f"{METALAKE}/access/rules", bulk_export.Rules),
    route(f"{METALAKE}/access/explain", access.Explain),
    route(f"{METALAKE}/access/former-members", access.FormerMembers),
    route(f"{METALAKE}/access/check", access.Check),
    route(f"{METALAKE}/access/objects/{OBJECT}", access.WhoReaches),
    route(f"{METALAKE}/access/objects/{OBJECT}/changes", audit_log.ChangesOfObject),
    route(f"{METALAKE}/access/audit", audit_log.Audit),
    route(f"{METALAKE}/access/objects/{OBJECT}/use", usage.UseOfObject),
    route(f"{METALAKE}/access/use", usage.OwnUse),
    route(f"{METALAKE}/access/objects/{OBJECT}/grantable", grantable.Grantable),
    route(f"{METALAKE}/access/objects/{OBJECT}/ways", ways.Ways),
    route(f"{METALAKE}/access/objects/{OBJECT}/moments", ways.Moments),
    route(f"{METALAKE}/access/objects/{OBJECT}/compared", ways.ComparedAccess),
    route(f"{METALAKE}/access/users/<user>", access.ReachedByUser),
    route(f"{METALAKE}/access/users/<user>/children", view_as.ChildrenSeenByUser),
    route(f"{METALAKE}/access/groups/<group>", access.ReachedByGroup),
    route(f"{METALAKE}/access/roles/<role>", access.ReachedByRole),
    route(f"{METALAKE}/access/export", plans.Export),
    route(f"{METALAKE}/access/plan", plans.Plan),
    route(f"{METALAKE}/access/changes", plans.Changes),
    route(f"{METALAKE}/access/proposals", plans.Proposals),
    route(f"{METALAKE}/access/removals", plans.Removals),
    route(f"{METALAKE}/access/apply", plans.Apply),
    route(f"{METALAKE}/access/undo", plans.Undo),
    route(f"{METALAKE}/search", search.Search),
]
