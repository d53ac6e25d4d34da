"""Catalogs on the native wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from catalogs.bodies import CreateCatalogRequest, EnableRequest, UpdatesRequest, alteration
from catalogs.models import Catalog as CatalogRow
from catalogs.replies import CatalogReply, Identifier, catalog_reply, identifiers
from catalogs.services import catalogs, connections
from metalake.rest.views import Endpoint, answers


def shown(row: CatalogRow) -> dict[str, Any]:
    return catalog_reply(row, catalogs.declared_secrets(row.provider))


class Catalogs(Endpoint):
    @answers(
        "list_catalogs",
        reply={"identifiers": list[Identifier] | None, "catalogs": list[CatalogReply] | None},
        query=("details",),
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the catalogs of a metalake: their identifiers, or with details all that loading them shows."""
        rows = catalogs.list_catalogs(actor, metalake)
        if self.flag("details"):
            return {"catalogs": [shown(row) for row in rows]}
        return {"identifiers": identifiers([metalake], (row.name for row in rows))}

    @answers("create_catalog", body=CreateCatalogRequest, reply={"catalog": CatalogReply})
    def post(self, actor: Actor, metalake: str, body: CreateCatalogRequest) -> dict[str, Any]:
        """Register a catalog. The reply is that of loading it, with the properties that its provider added."""
        row = catalogs.create_catalog(
            actor, metalake, body.name, body.type, body.provider, body.comment, body.properties
        )
        return {"catalog": shown(row)}


class NewCatalogConnection(Endpoint):
    @answers("test_connection", body=CreateCatalogRequest, reply={}, id="testConnection")
    def post(self, actor: Actor, metalake: str, body: CreateCatalogRequest) -> dict[str, Any]:
        """Try the connection of a catalog before it is registered."""
        connections.test_connection(actor, metalake, body.name, body.type, body.provider, body.properties)
        return {}


class CatalogConnection(Endpoint):
    @answers("alter_catalog", body=UpdatesRequest, body_is_optional=True, reply={}, id="testCatalogConnection")
    def post(self, actor: Actor, metalake: str, catalog: str, body: UpdatesRequest | None) -> dict[str, Any]:
        """Try the connection of a catalog, with the alterations in the body if there is one; they are not kept."""
        updates = body.updates if body else []
        connections.test_altered_connection(actor, metalake, catalog, alteration(updates))
        return {}


class Catalog(Endpoint):
    @answers("load_catalog", reply={"catalog": CatalogReply})
    def get(self, actor: Actor, metalake: str, catalog: str) -> dict[str, Any]:
        """Load a catalog."""
        return {"catalog": shown(catalogs.load_catalog(actor, metalake, catalog))}

    @answers("alter_catalog", body=UpdatesRequest, reply={"catalog": CatalogReply})
    def put(self, actor: Actor, metalake: str, catalog: str, body: UpdatesRequest) -> dict[str, Any]:
        """Rename a catalog, or change its comment or properties."""
        return {"catalog": shown(catalogs.alter_catalog(actor, metalake, catalog, alteration(body.updates)))}

    @answers("enable_catalog", body=EnableRequest, reply={})
    def patch(self, actor: Actor, metalake: str, catalog: str, body: EnableRequest) -> dict[str, Any]:
        """Enable or disable a catalog."""
        catalogs.set_catalog_enabled(actor, metalake, catalog, body.in_use)
        return {}

    @answers("drop_catalog", reply={"dropped": bool}, query=("force",))
    def delete(self, actor: Actor, metalake: str, catalog: str) -> dict[str, Any]:
        """Drop a catalog: disabled and empty, or by force. The files of its tables stay."""
        return {"dropped": catalogs.drop_catalog(actor, metalake, catalog, self.flag("force"))}
