"""Every route of the pages with an address that leads to something: a new page is tested by its line here."""

from __future__ import annotations

from frontend.urls import urlpatterns

ROUTES = [str(each.pattern) for each in urlpatterns]
ADDRESSES = {
    "": "/",
    "tree": "/tree",
    "objects/<int:object_id>": "/objects/{table}",
    "objects/<int:object_id>/children": "/objects/{schema}/children",
    "metalakes/<int:metalake_id>/catalogs/new": "/metalakes/{metalake}/catalogs/new?provider=lakehouse-iceberg",
    "catalogs/<int:catalog_id>/settings": "/catalogs/{catalog}/settings",
    "catalogs/<int:catalog_id>/nesting": "/catalogs/{catalog}/nesting",
    "catalogs/<int:catalog_id>/outside": "/catalogs/{catalog}/outside",
    "catalogs/<int:catalog_id>/refreshes": "/catalogs/{catalog}/refreshes",
    "catalogs/<int:catalog_id>/refreshes/<int:run_id>/stop": "/catalogs/{catalog}/refreshes/1/stop",
    "catalogs/<int:catalog_id>/writes/<int:intent_id>/retry": "/catalogs/{catalog}/writes/1/retry",
    "catalogs/<int:catalog_id>/writes/<int:intent_id>/give-up": "/catalogs/{catalog}/writes/1/give-up",
    "tokens": "/tokens",
    "tokens/<int:token_id>/revoke": "/tokens/1/revoke",
    "components": "/components",
    "login": "/login",
    "logout": "/logout",
}
"""By route; the names in braces are ids."""
PARTS = ("tree", "objects/<int:object_id>/children")
"""Routes that only answer parts of a page."""


def address(route: str, ids: dict[str, int]) -> str:
    """The address of a route, with the ids of a `metalake`, a `catalog`, a `schema` and a `table` filled in."""
    return ADDRESSES[route].format(**ids)
