"""Partitions of a metastore's tables."""

from __future__ import annotations

from collections.abc import Sequence

from formats.hive.partitions import partition_values
from formats.hive.tables import HiveTable
from formats.iceberg import locations
from metalake.errors import Invalid
from metalake.kinds import Kind
from providers.hive.calls import page_of, part_of, read_partition, read_partitioned, unknown_after_write
from providers.hive.catalog import HiveCatalog
from providers.hive.errors import About
from providers.hive.files import TableFiles
from providers.hive.folders import Place, places_of
from providers.hive.objects import partition_from, partition_of
from providers.hive_like.partitions import HiveLikePartitions
from providers.remote_objects import PARTITION, Json, Levels, Page, Remote, files_left

PAGE = 500
EVERY_PARTITION = -1


class HivePartitions(HiveLikePartitions):
    provider: HiveCatalog

    def list(self, schema: Levels, table: str, page: str | None = None) -> Page:
        about = About(Kind.TABLE, f"{schema[0]}.{table}")
        with self.provider.metastore() as metastore:
            _, keys = read_partitioned(metastore, schema[0], table)
            names = metastore.call("get_partition_names", schema[0], table, EVERY_PARTITION, about=about)
            chosen, following = part_of(sorted(names), page, PAGE)

            def read(batch: Sequence[str]) -> list[Remote]:
                partitions = metastore.call("get_partitions_by_names", schema[0], table, batch, about=about)
                fitting = [partition_of(keys, each) for each in partitions if len(each.values) == len(keys)]
                return sorted(fitting, key=lambda one: one.name)

            return page_of(metastore, chosen, following, read)

    def load(self, schema: Levels, table: str, partition: str) -> Remote:
        with self.provider.metastore() as metastore:
            there, _ = read_partitioned(metastore, schema[0], table)
            return read_partition(metastore, there, partition)

    def add(self, schema: Levels, table: str, definition: Json, by_owner: bool = False) -> Remote:
        name = definition["name"]
        with self.provider.metastore() as metastore:
            there, _ = read_partitioned(metastore, schema[0], table)
            if place := definition["location"]:
                TableFiles(self.provider).require_unshared(there, places_of(there), by_owner, place)
            metastore.call("add_partition", partition_from(there, definition), about=About(PARTITION, name))
            with unknown_after_write():
                return read_partition(metastore, there, name)

    def drop(self, schema: Levels, table: str, partition: str, by_owner: bool = False) -> dict[str, str] | None:
        files, with_files, why = TableFiles(self.provider), False, None
        with self.provider.metastore() as metastore:
            there, keys = read_partitioned(metastore, schema[0], table)
            values = partition_values(keys, partition)
            if files.has_files(there):
                place = read_partition(metastore, there, partition).definition["location"]
                why = files.why_files_stay(files.folders(), there, [Place(place)] if place else [], by_owner)
                with_files = why is None
            metastore.call("drop_partition", schema[0], table, values, with_files, about=About(PARTITION, partition))
        return files_left(why)

    def require_place(self, table: HiveTable, place: str) -> None:
        if table.is_external or (table.location and locations.is_inside(place, table.location)):
            return
        raise Invalid(
            f"properties.location: a partition of a managed table lies below {table.location}", kind=PARTITION
        )
