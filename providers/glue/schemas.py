"""Glue's databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalake.errors import Conflict, NotEmpty, Unsupported
from metalake.kinds import Kind
from providers.glue.catalog import GlueCatalog
from providers.glue.deliveries import delivered_database
from providers.glue.limits import require_fit
from providers.glue.mapping import database_input, merged
from providers.glue.resource_links import TARGET, target_of
from providers.glue.responses import after_write, database_of, page_after, require_same, writable
from providers.hive_like.parameters import marked
from providers.hive_like.schemas import HiveLikeSchemas
from providers.remote_objects import Json, Levels, Page, Remote

PAGE = 100  # Glue's maximum


class GlueSchemas(HiveLikeSchemas):
    provider: GlueCatalog

    def list(self, page: str | None = None) -> Page:
        answer = self.provider.glue.call("GetDatabases", MaxResults=PAGE, **page_after(page))
        return Page([database_of(each) for each in answer["DatabaseList"]], answer.get("NextToken"))

    def load(self, schema: Levels) -> Remote:
        return database_of(self._database(schema))

    def _database(self, schema: Levels) -> dict[str, Any]:
        database: dict[str, Any] = self.provider.glue.call("GetDatabase", schema, Name=schema[0])["Database"]
        return database

    def delivered(self, entry: Json) -> Remote:
        return delivered_database(entry)

    def create(self, schema: Levels, definition: Json, marker: str = "") -> Remote:
        glue = self.provider.glue
        wanted = writable(glue, database_input(schema[0], marked(definition, marker)), "DatabaseInput")
        glue.call("CreateDatabase", schema, DatabaseInput=wanted)
        return after_write(lambda: self.load(schema))

    def alter(
        self,
        schema: Levels,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
    ) -> Remote:
        database = self._database(schema)
        now = database_of(database)
        if now.version != version:
            raise Conflict(f"Schema {schema[0]} was changed meanwhile; load it and try again.", kind=Kind.SCHEMA)
        definition = marked(self.wanted(now.definition, changes, expected), marker)
        before, after = (database_input(schema[0], each) for each in (now.definition, definition))
        wanted = writable(self.provider.glue, merged(database, before, after), "DatabaseInput")
        self.provider.glue.call("UpdateDatabase", schema, Name=schema[0], DatabaseInput=wanted)
        return after_write(lambda: self.load(schema))

    def drop(self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False) -> None:
        """Delete the database; with `cascade` Glue also deletes its tables, but no files. Of a link, only the entry."""
        there, glue = self.load(schema), self.provider.glue
        require_same(there, identity)
        is_own = target_of(there.definition) is None
        if is_own and not cascade and glue.call("GetTables", schema, DatabaseName=schema[0], MaxResults=1)["TableList"]:
            raise NotEmpty(f"Schema {schema[0]} is not empty.", kind=Kind.SCHEMA)
        glue.call("DeleteDatabase", schema, Name=schema[0])

    def altered(self, definition: Json, changes: Sequence[Json]) -> Json:
        if link := target_of(definition):
            raise Unsupported(f"This is a resource link to {link}: it is changed there.", kind=Kind.SCHEMA)
        return super().altered(definition, changes)

    def show(self, definition: Json) -> Json:
        shown, link = super().show(definition), target_of(definition)
        return shown | {"properties": shown["properties"] | {TARGET: link}} if link else shown

    def draft(self, comment: str | None, properties: dict[str, str]) -> Json:
        return self.with_properties({"location": None, "parameters": {}, "rest": {}}, comment, properties)

    def with_properties(self, definition: Json, comment: str | None, properties: dict[str, str]) -> Json:
        location, parameters = self.split_location(definition, properties)
        if location is not None and location != definition["location"]:
            self.provider.places.hive_place(location)
        wanted = {**definition, "comment": comment, "location": location, "parameters": parameters}
        require_fit("DatabaseInput", database_input("any", wanted), Kind.SCHEMA)
        return wanted
