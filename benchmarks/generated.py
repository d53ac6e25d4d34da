"""A provider without an outside system: it generates as many tables as configured, the same each time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import Field

from benchmarks.outside import FLIGHTS, OUTPUT, SERDE, TEXT
from formats.hive.tables import HiveColumn, HiveTable
from metalake.kinds import Kind
from providers.base import Offer
from providers.remote_objects import Levels, Page, Remote, digest
from tests.providers.flat import FlatMemoryProvider, FlatMemoryTables
from tests.providers.memory import MemorySchemas, MemorySettings

PAGE = 100  # as Glue's
SCHEMAS = 10


class GeneratedSettings(MemorySettings):
    world: str = Field("", alias="world", description="There is none.")
    tables: int = Field(alias="tables", description="How many, in ten schemas.")
    pause: float = Field(0.0, alias="pause", description="How many seconds it takes to load one.")


class GeneratedSchemas(MemorySchemas):
    def list(self, page: str | None = None) -> Page:
        return Page([self.load([f"airline_{number}"]) for number in range(SCHEMAS)])

    def load(self, schema: Levels) -> Remote:
        definition: dict[str, Any] = {"comment": None, "properties": {}}
        return Remote(schema[0], definition, "1", digest(definition), Kind.SCHEMA)


class GeneratedTables(FlatMemoryTables):
    """Tables with twelve columns, in the form of Hive's."""

    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        start, end = int(page or 0), int(self.provider.properties["tables"]) // SCHEMAS
        following = start + PAGE
        items = [_table(schema, f"flights_{number:06}") for number in range(start, min(following, end))]
        return Page(items, str(following) if following < end else None)

    def load(self, schema: Levels, table: str) -> Remote:
        time.sleep(float(self.provider.properties.get("pause", 0)))
        return _table(schema, table)

    def show(self, definition: dict[str, Any]) -> dict[str, Any]:
        return super().show({"comment": None, "columns": [], "properties": definition["parameters"]})


class GeneratedProvider(FlatMemoryProvider):
    label = "Generated"
    settings: ClassVar[type[MemorySettings]] = GeneratedSettings

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        remotes = {Kind.SCHEMA: GeneratedSchemas, Kind.TABLE: GeneratedTables}
        return {kind: replace(offer, remote=remotes[kind]) for kind, offer in super().offers(properties).items()}

    def system_names(self) -> list[str]:
        return ["generated://"]


def _table(schema: Levels, table: str) -> Remote:
    definition = _definition(schema[0], table)
    return Remote(table, definition, "1", digest(definition))


def _definition(schema: str, table: str) -> dict[str, Any]:
    return HiveTable(
        name=table,
        columns=_columns(),
        partition_keys=(HiveColumn("day", "date"),),
        parameters={
            "EXTERNAL": "TRUE",
            "numFiles": "12",
            "totalSize": "1048576",
            "transient_lastDdlTime": "1790000000",
        },
        table_type="EXTERNAL_TABLE",
        location=f"s3://lake/{schema}/{table}",
        input_format=TEXT,
        output_format=OUTPUT,
        serde_lib=SERDE,
        serde_parameters={"serialization.format": "1", "field.delim": ","},
        owner="airlines",
    ).as_json()


@lru_cache
def _columns() -> tuple[HiveColumn, ...]:
    return tuple(HiveColumn(name, kind, f"The {name.replace('_', ' ')} of a flight.") for name, kind in FLIGHTS)
