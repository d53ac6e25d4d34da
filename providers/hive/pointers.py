"""Iceberg tables in a metastore: entries that point to metadata files."""

from __future__ import annotations

from formats.hive.tables import HiveTable
from metalake.errors import Conflict, Unsupported
from metalake.kinds import Kind
from providers.answers import Json, Levels, Remote
from providers.hive import iceberg
from providers.hive.calls import alter, read_table
from providers.hive.catalog import HiveCatalog
from providers.hive.files import TableFiles
from providers.hive.folders import places_of
from providers.hive.locks import locked_table
from providers.hive.objects import DDL_TIME, hive_table, table_of, written
from providers.hive_like.meaning import POINTER
from providers.hive_like.pointers import HiveLikePointers


class HivePointers(HiveLikePointers):
    provider: HiveCatalog

    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        """Point the table to new metadata, as Iceberg's own Hive catalog does: always under the table's lock.

        Raises Conflict, and Unsupported if the metastore has no locks or the table is not an Iceberg table.
        """
        name = f"{schema[0]}.{table}"
        with locked_table(self.provider, schema[0], table) as (metastore, has_lock):
            there = read_table(metastore, schema[0], table)
            points_to = self.location(table_of(there).definition)
            if points_to is None:
                raise Unsupported(f"Table {name} is no Iceberg table.", kind=Kind.TABLE)
            if not has_lock:
                raise Unsupported(
                    f"Table {name}: this metastore keeps no locks, so a commit could undo another; "
                    "create its transaction tables.",
                    kind=Kind.TABLE,
                )
            if points_to != previous:
                raise Conflict(f"Table {name} points to {points_to} by now.", kind=Kind.TABLE)
            last, before = there.parameters.get(DDL_TIME, ""), places_of(there)
            changed = written(self.committed(hive_table(there), location), onto=there)
            TableFiles(self.provider).require_unshared(changed, before, by_owner)
            return alter(metastore, changed, last, expected=(POINTER, previous))

    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        return iceberg.described(entry, metadata)
