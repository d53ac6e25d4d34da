"""Iceberg tables in Glue: entries that point to metadata files."""

from __future__ import annotations

from formats.hive.tables import HiveTable
from providers.glue import iceberg, resource_links
from providers.glue.catalog import GlueCatalog
from providers.glue.entries import read_table, update
from providers.glue.mapping import hive_table
from providers.glue.responses import changed
from providers.hive_like.pointers import HiveLikePointers
from providers.remote_objects import Json, Levels, Remote


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
        return iceberg.described(entry, metadata)
