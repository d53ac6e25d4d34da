"""The flat system in memory whose tables carry no mark of ours: a lost answer is told otherwise, or it never is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from metalake.kinds import Kind
from providers.base import Offer
from providers.remote_objects import Json, Levels, Remote
from providers.stores import Ending, Outcome, OutcomeUnknowable, Read
from tests.providers.flat import FlatMemoryProvider, FlatMemoryTables


class BareTables(FlatMemoryTables):
    def create(
        self, schema: Levels, table: str, definition: Json, plan: Any = None, marker: str = "", by_owner: bool = False
    ) -> Remote:
        return super().create(schema, table, definition)

    def alter(
        self,
        schema: Levels,
        table: str,
        changes: Any,
        version: str,
        expected: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        return super().alter(schema, table, changes, version, expected)

    def is_marked(self, table: Remote, marker: str) -> bool:
        raise OutcomeUnknowable(f"{self.label} does not say who made table {table.name}.")

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """An alteration is told by what it was to come to, where nobody has written to the table since."""
        if verb == "alter_table":
            there = read("load_table", schema=arguments["schema"], table=arguments["table"])
            if there is None or there.version == arguments["version"]:
                return Outcome.NOT_DONE, there
            if there.definition == arguments["expected"]:
                return Outcome.DONE, there
        return super().outcome(verb, arguments, marker, read)


class BareProvider(FlatMemoryProvider):
    label = "Bare memory"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        offers = super().offers(properties)
        return {**offers, Kind.TABLE: replace(offers[Kind.TABLE], remote=BareTables)}
