"""Glue's tables of every format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from formats.hive.names import ICEBERG_IN_GLUE, folded_name
from formats.hive.tables import EXTERNAL_TABLE, HiveTable, formats_of, passes
from formats.native.tables import CreateTableRequest
from metalake.errors import NotFound, Unsupported
from metalake.kinds import Kind
from providers.glue import iceberg, resource_links
from providers.glue.catalog import GlueCatalog
from providers.glue.deliveries import delivered_table
from providers.glue.limits import require_fit
from providers.glue.mapping import hive_table, table_input
from providers.glue.partitions import GluePartitions
from providers.glue.responses import (
    after_write,
    changed,
    page_after,
    read_table,
    require_same,
    table_of,
    update,
    writable,
)
from providers.hive_like.parameters import formats_of_remote, marked
from providers.hive_like.tables import HiveLikeTables
from providers.remote_objects import Json, Levels, Page, Remote

PAGE = 100  # Glue's maximum


class GlueTables(HiveLikeTables):
    provider: GlueCatalog
    partitions, pointers = GluePartitions, iceberg.GluePointers

    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        where = {"DatabaseName": schema[0], "MaxResults": PAGE}
        try:
            answer = self.provider.glue.call("GetTables", schema, **where, **page_after(page))
        except NotFound:
            if "TargetDatabase" not in self.provider.schemas.load(schema).definition["rest"]:
                raise
            return Page([], None)  # a resource link, whose tables are listed in its target
        entries = [self._followed(each, asks=False) for each in answer["TableList"]]
        return Page([table_of(each) for each in entries], answer.get("NextToken"))

    def load(self, schema: Levels, table: str) -> Remote:
        return table_of(self._followed(read_table(self.provider.glue, schema, table)))

    def _followed(self, entry: Json, asks: bool = True) -> Json:
        return resource_links.followed(self.provider.glue, entry, self.provider.given, asks=asks)

    def delivered(self, entry: Json) -> Remote:
        return delivered_table(entry)

    def create(
        self,
        schema: Levels,
        table: str,
        definition: Json,
        plan: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        glue = self.provider.glue
        with self.pointed.prepared(schema, marked(definition, marker) | {"name": table}, plan) as made:
            wanted = writable(glue, table_input(made), "TableInput")
            glue.call("CreateTable", [*schema, table], DatabaseName=schema[0], TableInput=wanted)
        return after_write(lambda: self.load(schema, table))

    def alter(
        self,
        schema: Levels,
        table: str,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        entry = read_table(self.provider.glue, schema, table)
        resource_links.require_own(entry)
        if table_of(entry).version != version:
            raise changed(schema, table)
        wanted = self.wanted(hive_table(entry), changes, expected, marker)
        return update(self.provider.glue, schema, entry, wanted)

    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        raise Unsupported("AWS Glue cannot rename a table.", kind=Kind.TABLE)

    def drop(
        self,
        schema: Levels,
        table: str,
        identity: str,
        purge: bool = False,
        by_owner: bool = False,
        version: str | None = None,
    ) -> None:
        """Delete the entry, never the files. With `version`, raises Conflict if the table has changed."""
        there = table_of(read_table(self.provider.glue, schema, table))  # links without their target
        require_same(there, identity)
        if version is not None and there.version != version:
            raise changed(schema, table)
        self.provider.glue.call("DeleteTable", [*schema, table], DatabaseName=schema[0], Name=table)

    # Definitions

    def require_fit(self, table: HiveTable) -> None:
        require_fit("TableInput", table_input(table), Kind.VIEW if table.is_view else Kind.TABLE)

    @property
    def default_format(self) -> str:
        return self.provider.given.default_table_format

    def placed(self, schema: Remote, asked: CreateTableRequest) -> dict[str, str]:
        """A new table's properties, always with a location, since Glue has no default."""
        place = self.provider.places.place_of(schema, asked.name, asked.properties.get("location"))
        return {"table-type": EXTERNAL_TABLE} | asked.properties | {"location": place}

    def altered(self, definition: Json, updates: Sequence[Any]) -> Json:
        resource_links.require_none(definition)
        return super().altered(definition, updates)

    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        return [] if resource_links.LINK in definition["rest"] else super().named_places(definition, plan)

    def show(self, definition: Json) -> Json:
        """Raises Unsupported for a dead resource link."""
        if why := resource_links.dead(definition):
            raise Unsupported(why, kind=Kind.TABLE)
        shown, target = self._shown(definition), resource_links.target_of(definition)
        return shown | {"properties": shown["properties"] | {resource_links.TARGET: target}} if target else shown

    def _shown(self, definition: Json) -> Json:
        table = HiveTable.from_json(definition)
        if "iceberg" not in formats_of(table):
            return super().show(definition)
        table = iceberg.of_current_schema(table)
        shown = super().show(table.as_json())
        return shown | {"columns": iceberg.shown_columns(table, shown["columns"])}

    @property
    def hides_some(self) -> bool:
        return "all" not in self.provider.given.shown_formats

    def shows(self, table: Remote) -> bool:
        """Also True for a resource link that is unread or dead."""
        if not self.hides_some or not (table.formats or table.definition) or resource_links.dead(table.definition):
            return True
        return passes(self.provider.given.shown_formats, formats_of_remote(table))

    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> Sequence[tuple[str, Json]]:
        """Create a second entry for the same metadata file, then drop the first unless it has changed."""
        resource_links.require_none(table.definition)
        if self.pointed.location(table.definition) is None:
            raise Unsupported(
                "AWS Glue cannot rename a table, and only an Iceberg table can be entered under another name without "
                "losing what belongs to it.",
                kind=Kind.TABLE,
            )
        folded_name(to_table, ICEBERG_IN_GLUE, Kind.TABLE)
        renamed = {**table.definition, "name": to_table}
        old = {"identity": table.identity, "version": table.version}
        return [
            ("create_table", {"schema": to_schema, "table": to_table, "definition": renamed, "marker": marker}),
            ("drop_table", {"schema": schema, "table": table.name, **old}),
        ]
