"""Iceberg tables in Glue: entries that point to metadata files, with columns as Iceberg's GlueCatalog writes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.types import type_of_iceberg
from formats.iceberg.translate import current_schema
from providers.glue import resource_links
from providers.glue.catalog import GlueCatalog
from providers.glue.limits import fitting
from providers.glue.mapping import hive_table
from providers.glue.responses import changed, read_table, update
from providers.hive_like.pointers import HiveLikePointers
from providers.remote_objects import Json, Levels, Remote

CURRENT, OPTIONAL, ID = "iceberg.field.current", "iceberg.field.optional", "iceberg.field.id"


class GluePointers(HiveLikePointers):
    provider: GlueCatalog

    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        entry = read_table(self.provider.glue, schema, table)
        resource_links.require_own(entry)
        before = hive_table(entry)
        if self.location(before.as_json()) != previous:
            raise changed(schema, table)
        return update(self.provider.glue, schema, entry, self.committed(before, location))

    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        return described(entry, metadata)


def described(entry: HiveTable, metadata: Json) -> HiveTable:
    return fitting(replace(entry, columns=tuple(_columns(metadata))))


def _columns(metadata: Json) -> Iterator[HiveColumn]:
    """The columns of the current schema, then of older ones, without duplicates after Glue's case folding."""
    current = current_schema(metadata)
    seen: set[str] = set()
    for schema in (current, *(metadata.get("schemas") or ())):
        for field in schema["fields"]:
            if field["name"].lower() not in seen:
                seen.add(field["name"].lower())
                yield _column(field, is_current=schema is current)


def _column(field: Json, is_current: bool) -> HiveColumn:
    parameters = {ID: str(field["id"]), OPTIONAL: _word(not field["required"]), CURRENT: _word(is_current)}
    return HiveColumn(field["name"], type_of_iceberg(field["type"]), field.get("doc"), parameters)


def _word(value: bool) -> str:
    return str(value).lower()


def of_current_schema(table: HiveTable) -> HiveTable:
    """The table with only its current schema's columns, each name once.

    Glue folds case, so a column whose case changed has an entry per schema under one name.
    """
    columns: dict[str, HiveColumn] = {}
    for column in table.columns:
        if column.parameters.get(CURRENT) != "false":
            columns.setdefault(column.name.lower(), column)
    return replace(table, columns=tuple(columns.values()))


def shown_columns(table: HiveTable, native: list[Json]) -> list[Json]:
    """The table's native columns, nullable if optional in Iceberg."""
    required = {column.name for column in table.columns if column.parameters.get(OPTIONAL) == "false"}
    return [column | {"nullable": column["name"] not in required} for column in native]
