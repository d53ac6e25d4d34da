"""Iceberg tables in memory: the system keeps a property that says where the metadata file of a table is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formats.iceberg import storage
from metalake.errors import Conflict, NotFound
from metalake.kinds import Kind
from providers.absent import NoPointers
from providers.metadata_files import MetadataFiles
from providers.remote_objects import Json, Levels, Remote
from tests.providers.memory import MemoryProvider
from tests.providers.world import LEVELS


class MemoryPointers(NoPointers):
    """Of tables that engines make; what reads or writes a file has to be told the folder of all (`below`)."""

    provider: MemoryProvider
    parameter = "metadata_location"
    folder = Path("/nowhere")

    def location(self, definition: Json) -> str | None:
        pointer: str | None = definition["properties"].get(self.parameter)
        return pointer

    def files(self, *places: str) -> MetadataFiles:
        root = self.folder
        allowed = [root.as_uri()]
        return MetadataFiles(self.provider.catalog_id, lambda: storage.file_io({}), allowed, [str(root)], places=places)

    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        def act(state: Any) -> None:
            there = state["tables"].get(LEVELS.join([*schema, table]))
            if there is None:
                raise NotFound(f"Table {table} does not exist.", kind=Kind.TABLE)
            if there["definition"]["properties"][self.parameter] != previous:
                raise Conflict("The table has been modified.", kind=Kind.TABLE)
            there["definition"]["properties"][self.parameter] = location

        self.provider.ask("commit_table", act)
        return self.provider.tables.load(schema, table)
