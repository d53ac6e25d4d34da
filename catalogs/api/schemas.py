"""Schemas on the native wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from authz.actor import Actor
from catalogs.bodies import CreateSchemaRequest, SchemaUpdatesRequest, alteration
from catalogs.replies import Identifier, SchemaReply, as_sent, identifiers, schema_reply
from catalogs.services import schemas
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.rest.views import Endpoint, answers


class Schemas(Endpoint):
    def _container(self) -> Address:
        return replace(self.address, schema=self.text("parentSchema"))

    @answers(
        "list_schemas",
        reply={"identifiers": list[Identifier]},
        query=("parentSchema", "refresh"),
        looks_up=_container,
    )
    def get(self, actor: Actor, metalake: str, catalog: str) -> dict[str, Any]:
        """List the schemas at the top of a catalog, or those directly in a parent schema."""
        listed = schemas.list_schemas(actor, self._container(), refresh=self.flag("refresh"))
        self.taken_at = listed.taken_at
        return {"identifiers": identifiers([metalake, catalog], (path.logical() for path in listed.paths))}

    @answers("create_schema", body=CreateSchemaRequest, reply={"schema": SchemaReply})
    def post(self, actor: Actor, metalake: str, catalog: str, body: CreateSchemaRequest) -> dict[str, Any]:
        """Create a schema, with the parents that are missing. Its properties are answered as they were sent."""
        ident = Address(metalake=metalake, catalog=catalog, schema=self._decoded_name(body.name))
        made = schemas.create_schema(actor, ident, body.comment, body.properties)
        return {"schema": as_sent(schema_reply(made), body.properties)}

    def _decoded_name(self, name: str) -> str:
        """The Python client percent-encodes the name in this one body; it is known by what it calls itself."""
        headers = self.request.headers
        if "X-Client-Version" in headers and headers.get("User-Agent", "").startswith("Python-urllib/"):
            return unquote(name)
        return name


class SchemasToBeMade(Endpoint):
    @answers("create_schema", reply={"schemas": list[str]})
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str) -> dict[str, Any]:
        """Name the schemas that creating this one would make: its missing parents, outermost first, and itself."""
        new = schemas.to_be_made(actor, Address(metalake=metalake, catalog=catalog, schema=schema))
        return {"schemas": [path.logical() for path in new]}


class Schema(Endpoint):
    @answers("load_schema", reply={"schema": SchemaReply}, query=("refresh",))
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str) -> dict[str, Any]:
        """Load a schema."""
        record = schemas.load_schema(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema), refresh=self.flag("refresh")
        )
        self.taken_at = record.taken_at
        return {"schema": schema_reply(record)}

    @answers("alter_schema", body=SchemaUpdatesRequest, reply={"schema": SchemaReply})
    def put(self, actor: Actor, metalake: str, catalog: str, schema: str, body: SchemaUpdatesRequest) -> dict[str, Any]:
        """Change the properties of a schema."""
        record, _ = schemas.alter_schema(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema), alteration(body.updates)
        )
        return {"schema": schema_reply(record)}

    @answers("drop_schema", reply={"dropped": bool}, query=("cascade",))
    def delete(self, actor: Actor, metalake: str, catalog: str, schema: str) -> dict[str, Any]:
        """Drop a schema that is empty, or in a flat catalog all it holds by cascade."""
        try:
            self.files_kept = schemas.drop_schema(
                actor, Address(metalake=metalake, catalog=catalog, schema=schema), cascade=self.flag("cascade")
            )
        except NotFound as miss:
            if miss.kind != Kind.SCHEMA:
                raise
            return {"dropped": False}
        return {"dropped": True}
