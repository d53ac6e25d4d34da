"""Real Iceberg tables in a folder, written by pyiceberg with nothing of ours in between."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import CommitTableResponse, Table


class FolderCatalog(NoopCatalog, MetastoreCatalog):
    """Remembers one table at a time; as trusting as pyiceberg's own catalogs."""

    table: Table

    def create_table(self, identifier: Any, schema: Any, location: Any = None, *args: Any, **options: Any) -> Table:
        staged = self._create_staged_table(identifier, schema, location, *args, **options)
        return self._keep(staged)

    def commit_table(self, table, requirements, updates):
        staged = self._update_and_stage_table(table, table.name(), requirements, updates)
        kept = self._keep(staged)
        return CommitTableResponse(metadata=kept.metadata, metadata_location=kept.metadata_location)

    def load_namespace_properties(self, namespace):
        return {}

    def load_table(self, identifier):
        return self.table

    def _keep(self, staged) -> Table:
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.table = Table(staged.name(), staged.metadata, staged.metadata_location, staged.io, self)
        return self.table
