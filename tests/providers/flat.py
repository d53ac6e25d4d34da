"""The system in memory, but flat: its names know lower case only, and a table is renamed by copying it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metalake.kinds import Kind
from providers.base import Offer
from providers.remote_objects import Json, Levels, Remote
from tests.providers.memory import MemoryProvider, MemoryTables


class FlatMemoryTables(MemoryTables):
    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> Sequence[tuple[str, Json]]:
        copied = {"schema": to_schema, "table": to_table, "definition": table.definition, "marker": marker}
        dropped = {"schema": schema, "table": table.name, "identity": table.identity}
        return [("create_table", copied), ("drop_table", dropped)]


class FlatMemoryProvider(MemoryProvider):
    label = "Flat memory"
    longest_name = 128

    @classmethod
    def completed(cls, catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
        return dict(properties)

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        flat = {
            kind: replace(offer, nested=False, folds_case=True) for kind, offer in super().offers(properties).items()
        }
        return flat | {Kind.TABLE: replace(flat[Kind.TABLE], remote=FlatMemoryTables)}
