"""Systems in memory that keep tables alone: our schemas are only the first part of their names there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.remote_objects import Json, Levels, Page, Remote
from tests.providers import world
from tests.providers.memory import MemoryProvider, MemoryTables


class HalfMemoryTables(MemoryTables):
    """The system knows no schemas, so none is missing there."""

    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        self._know(schema)
        return super().list(schema, page, whole)

    def create(
        self, schema: Levels, table: str, definition: Json, plan: Any = None, marker: str = "", by_owner: bool = False
    ) -> Remote:
        self._know(schema)
        return super().create(schema, table, definition, plan, marker, by_owner)

    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        self._know(to_schema)
        return super().rename(schema, table, to_schema, to_table, identity, by_owner)

    def _know(self, schema: Levels) -> None:
        with self.provider.world.open() as state:
            name = world.LEVELS.join(schema)
            state["schemas"].setdefault(name, world.fresh({"comment": None, "properties": {}}))


class HalfMemoryProvider(MemoryProvider):
    """Tables there, schemas here."""

    label = "Half memory"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            Kind.SCHEMA: Offer(storage=Storage.MANAGED, nested=True),
            Kind.TABLE: Offer(storage=Storage.EXTERNAL, formats=frozenset({"memory"}), remote=HalfMemoryTables),
        }
