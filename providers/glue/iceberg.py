"""The columns of an Iceberg table in its entry, as Iceberg's own Glue catalogs write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.types import type_of_iceberg
from formats.iceberg.translate import current_schema
from providers.hive_like.pointed import comment_of

Json = dict[str, Any]

CURRENT, OPTIONAL, ID = "iceberg.field.current", "iceberg.field.optional", "iceberg.field.id"


def described(entry: HiveTable, metadata: Json) -> HiveTable:
    return replace(entry, columns=tuple(_columns(metadata)))


def _columns(metadata: Json) -> Iterator[HiveColumn]:
    """The columns of the current schema, then those of older schemas, each name once."""
    current = current_schema(metadata)
    seen: set[str] = set()
    for schema in (current, *(metadata.get("schemas") or ())):
        for field in schema["fields"]:
            if field["name"] not in seen:
                seen.add(field["name"])
                yield _column(field, is_current=schema is current)


def _column(field: Json, is_current: bool) -> HiveColumn:
    parameters = {ID: str(field["id"]), OPTIONAL: _word(not field["required"]), CURRENT: _word(is_current)}
    return HiveColumn(field["name"], type_of_iceberg(field["type"]), comment_of(field), parameters)


def _word(value: bool) -> str:
    return str(value).lower()


def shown_columns(table: HiveTable, native: list[Json]) -> list[Json]:
    """The native columns of the current schema, nullable where they are optional in Iceberg."""
    parameters = {column.name: column.parameters for column in table.columns}
    return [
        column | {"nullable": parameters.get(column["name"], {}).get(OPTIONAL) != "false"}
        for column in native
        if parameters.get(column["name"], {}).get(CURRENT) != "false"
    ]
