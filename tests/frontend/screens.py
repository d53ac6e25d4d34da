"""Every route of the pages with an address that leads to something: a new page is tested by its line here."""

from __future__ import annotations

from frontend.urls import urlpatterns

ROUTES = [str(each.pattern) for each in urlpatterns]
ADDRESSES = {
    "": "/",
    "choose/<str:section>": "/choose/people",
    "tree": "/tree",
    "objects/<int:object_id>": "/objects/{table}",
    "objects/<int:object_id>/change": "/objects/{table}/change?what=rename&name=sold",
    "objects/<int:object_id>/children": "/objects/{schema}/children",
    "objects/<int:object_id>/request": "/objects/{table}/request?for=commit_table",
    "metalakes/<int:metalake_id>/access/requests": "/metalakes/{metalake}/access/requests",
    "metalakes/<int:metalake_id>/access/requests/<int:request_id>": "/metalakes/{metalake}/access/requests/1",
    "metalakes/<int:metalake_id>/access/requests/<int:request_id>/withdraw": (
        "/metalakes/{metalake}/access/requests/1/withdraw"
    ),
    "metalakes/<int:metalake_id>/access/findings": "/metalakes/{metalake}/access/findings",
    "metalakes/<int:metalake_id>/access/findings/mend": "/metalakes/{metalake}/access/findings/mend?what=own",
    "objects/<int:object_id>/grant": "/objects/{schema}/grant?principal=user:rita&level=writer",
    "objects/<int:object_id>/grant/people": "/objects/{schema}/grant/people?more=ri",
    "objects/<int:object_id>/revoke": "/objects/{schema}/revoke?role=reader&privilege=select_table",
    "metalakes/<int:metalake_id>/undo": "/metalakes/{metalake}/undo",
    "objects/<int:object_id>/columns": "/objects/{table}/columns",
    "objects/<int:object_id>/columns/change": "/objects/{table}/columns/change",
    "objects/<int:object_id>/snapshots": "/objects/{table}/snapshots",
    "objects/<int:object_id>/lineage": "/objects/{view}/lineage",
    "objects/<int:object_id>/dialects": "/objects/{view}/dialects",
    "objects/<int:object_id>/dialects/change": "/objects/{view}/dialects/change?dialect=spark",
    "objects/<int:object_id>/dialects/remove": "/objects/{view}/dialects/remove",
    "objects/<int:object_id>/versions": "/objects/{view}/versions",
    "objects/<int:object_id>/versions/compare": "/objects/{view}/versions/compare?before=1",
    "objects/<int:object_id>/versions/roll-back": "/objects/{view}/versions/roll-back?version=1",
    "objects/<int:object_id>/access": "/objects/{table}/access",
    "objects/<int:object_id>/access.csv": "/objects/{table}/access.csv",
    "objects/<int:object_id>/access/changes": "/objects/{table}/access/changes",
    "objects/<int:object_id>/access/compare": "/objects/{table}/access/compare?from=2026-01-01",
    "objects/<int:object_id>/why": "/objects/{table}/why?privilege=select_table",
    "metalakes/<int:metalake_id>/matrix": "/metalakes/{metalake}/matrix?people=admin&objects=shop",
    "metalakes/<int:metalake_id>/matrix/changes": "/metalakes/{metalake}/matrix/changes?people=admin&objects=shop",
    "objects/<int:object_id>/history": "/objects/{table}/history",
    "objects/<int:object_id>/users": "/objects/{schema}/users?user=ri",
    "objects/<int:object_id>/see-as": "/objects/{schema}/see-as",
    "objects/<int:object_id>/schemas/new": "/objects/{schema}/schemas/new",
    "objects/<int:object_id>/tables/new": "/objects/{schema}/tables/new",
    "objects/<int:object_id>/views/new": "/objects/{schema}/views/new",
    "metalakes/new": "/metalakes/new",
    "metalakes/<int:metalake_id>/people": "/metalakes/{metalake}/people",
    "metalakes/<int:metalake_id>/people/change": "/metalakes/{metalake}/people/change",
    "metalakes/<int:metalake_id>/people/undo": "/metalakes/{metalake}/people/undo",
    "metalakes/<int:metalake_id>/people/compare": "/metalakes/{metalake}/people/compare?one=rita&other=admin",
    "metalakes/<int:metalake_id>/people/users": "/metalakes/{metalake}/people/users",
    "metalakes/<int:metalake_id>/people/users/<int:user_id>": "/metalakes/{metalake}/people/users/{user}",
    "metalakes/<int:metalake_id>/people/users/<int:user_id>/invitation": (
        "/metalakes/{metalake}/people/users/1/invitation"
    ),
    "metalakes/<int:metalake_id>/people/groups": "/metalakes/{metalake}/people/groups",
    "metalakes/<int:metalake_id>/people/groups/<int:group_id>": "/metalakes/{metalake}/people/groups/{group}",
    "metalakes/<int:metalake_id>/people/roles": "/metalakes/{metalake}/people/roles",
    "metalakes/<int:metalake_id>/people/roles/<int:role_id>": "/metalakes/{metalake}/people/roles/{role}",
    "metalakes/<int:metalake_id>/audit": "/metalakes/{metalake}/audit?on=lake",
    "metalakes/<int:metalake_id>/audit.csv": "/metalakes/{metalake}/audit.csv",
    "metalakes/<int:metalake_id>/audit.jsonl": "/metalakes/{metalake}/audit.jsonl",
    "metalakes/<int:metalake_id>/people/roles/<int:role_id>/edit": (
        "/metalakes/{metalake}/people/roles/{role}/edit?into={catalog}&open=metalake shop"
    ),
    "metalakes/<int:metalake_id>/plan": "/metalakes/{metalake}/plan",
    "metalakes/<int:metalake_id>/plan/present": "/metalakes/{metalake}/plan/present?on=nowhere",
    "metalakes/<int:metalake_id>/reviewed": "/metalakes/{metalake}/reviewed",
    "metalakes/<int:metalake_id>/jobs": "/metalakes/{metalake}/jobs",
    "metalakes/<int:metalake_id>/jobs/change": "/metalakes/{metalake}/jobs/change?what=make-system",
    "metalakes/<int:metalake_id>/jobs/template": "/metalakes/{metalake}/jobs/template",
    "metalakes/<int:metalake_id>/jobs/findings": "/metalakes/{metalake}/jobs/findings?of=objects",
    "metalakes/<int:metalake_id>/jobs/start": "/metalakes/{metalake}/jobs/start?template=builtin-check_server",
    "metalakes/<int:metalake_id>/jobs/runs/<int:run_id>": "/metalakes/{metalake}/jobs/runs/1",
    "metalakes/<int:metalake_id>/jobs/runs/<int:run_id>/cancel": "/metalakes/{metalake}/jobs/runs/1/cancel",
    "metalakes/<int:metalake_id>/jobs/schedules": "/metalakes/{metalake}/jobs/schedules",
    "search": "/search?q=a",
    "invitations/<str:secret>": "/invitations/no-such-link",
    "metalakes/<int:metalake_id>/catalogs/new": "/metalakes/{metalake}/catalogs/new?provider=lakehouse-iceberg",
    "catalogs/<int:catalog_id>/settings": "/catalogs/{catalog}/settings",
    "catalogs/<int:catalog_id>/nesting": "/catalogs/{catalog}/nesting",
    "catalogs/<int:catalog_id>/outside": "/catalogs/{catalog}/outside",
    "catalogs/<int:catalog_id>/refreshes": "/catalogs/{catalog}/refreshes",
    "catalogs/<int:catalog_id>/refreshes/<int:run_id>/stop": "/catalogs/{catalog}/refreshes/1/stop",
    "catalogs/<int:catalog_id>/writes/<int:intent_id>/retry": "/catalogs/{catalog}/writes/1/retry",
    "catalogs/<int:catalog_id>/writes/<int:intent_id>/give-up": "/catalogs/{catalog}/writes/1/give-up",
    "account": "/account",
    "account/password": "/account/password",
    "account/sessions": "/account/sessions",
    "tokens": "/tokens",
    "tokens/<int:token_id>/revoke": "/tokens/1/revoke",
    "components": "/components",
    "login": "/login",
    "logout": "/logout",
}
"""By route; the names in braces are ids."""
PARTS = (
    "tree",
    "objects/<int:object_id>/children",
    "objects/<int:object_id>/grant/people",
    "objects/<int:object_id>/users",
    "objects/<int:object_id>/access.csv",
    "metalakes/<int:metalake_id>/audit.csv",
    "metalakes/<int:metalake_id>/audit.jsonl",
)
"""Routes that answer parts of a page, or a file."""


def address(route: str, ids: dict[str, int]) -> str:
    """The address of a route with the ids of a `metalake`, `catalog`, `schema`, `table` and `view` filled in.

    Those of a `user`, a `group` and a `role` are filled in if they are given.
    """
    return ADDRESSES[route].format(**{"user": 1, "group": 1, "role": 1} | ids)
