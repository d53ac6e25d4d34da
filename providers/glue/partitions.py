"""Partitions of Glue's tables."""

from __future__ import annotations

from formats.hive.partitions import partition_values
from formats.hive.tables import HiveTable
from formats.native.partitions import IdentityPartition
from metalake.errors import Unsupported
from providers.glue import resource_links
from providers.glue.catalog import GlueCatalog
from providers.glue.limits import require_fit
from providers.glue.mapping import hive_table
from providers.glue.responses import after_write, page_after, partition_of, read_table
from providers.hive_like.partitions import HiveLikePartitions
from providers.remote_objects import PARTITION, Json, Levels, Page, Remote

PAGE = 1000  # Glue's maximum


class GluePartitions(HiveLikePartitions):
    provider: GlueCatalog

    def draft(self, table: Json, asked: IdentityPartition) -> Json:
        resource_links.require_none(table)
        drafted = super().draft(table, asked)
        wanted = {"Values": drafted["values"], "Parameters": drafted["parameters"]}
        require_fit("PartitionInput", wanted | {"StorageDescriptor": {"Location": drafted["location"]}}, PARTITION)
        return drafted

    def list(self, schema: Levels, table: str, page: str | None = None) -> Page:
        of = self._partitioned(schema, table)
        where = {"DatabaseName": schema[0], "TableName": table, "MaxResults": PAGE}
        answer = self.provider.glue.call("GetPartitions", [*schema, table], **where, **page_after(page))
        fitting = [each for each in answer["Partitions"] if len(each["Values"]) == len(of.partition_keys)]
        return Page([partition_of(of, each) for each in fitting], answer.get("NextToken"))

    def load(self, schema: Levels, table: str, partition: str) -> Remote:
        of = self._partitioned(schema, table)
        values = partition_values(of.partition_keys, partition)
        where = {"DatabaseName": schema[0], "TableName": table, "PartitionValues": values}
        return partition_of(
            of, self.provider.glue.call("GetPartition", [*schema, table, partition], **where)["Partition"]
        )

    def add(self, schema: Levels, table: str, definition: Json, by_owner: bool = False) -> Remote:
        """Add a partition with the table's storage descriptor, which determines how its files are read."""
        entry = read_table(self.provider.glue, schema, table)
        resource_links.require_own(entry)
        name, descriptor = definition["name"], entry.get("StorageDescriptor") or {}
        below = descriptor.get("Location")
        location = definition["location"] or (f"{below.removesuffix('/')}/{name}" if below else None)
        wanted = {
            "Values": definition["values"],
            "Parameters": definition["parameters"],
            "StorageDescriptor": descriptor | ({"Location": location} if location else {}),
        }
        where = {"DatabaseName": schema[0], "TableName": table}
        self.provider.glue.call("CreatePartition", [*schema, table, name], **where, PartitionInput=wanted)
        return after_write(lambda: self.load(schema, table, name))

    def drop(self, schema: Levels, table: str, partition: str, by_owner: bool = False) -> None:
        """Delete the entry; the files stay."""
        of = self._partitioned(schema, table)
        values = partition_values(of.partition_keys, partition)
        where = {"DatabaseName": schema[0], "TableName": table, "PartitionValues": values}
        self.provider.glue.call("DeletePartition", [*schema, table, partition], **where)

    def _partitioned(self, schema: Levels, table: str) -> HiveTable:
        entry = read_table(self.provider.glue, schema, table)
        resource_links.require_own(entry, "its partitions are listed there")
        of = hive_table(entry)
        if not of.partition_keys:
            raise Unsupported(f"Table {schema[0]}.{table} has no partitions in AWS Glue.", kind=PARTITION)
        return of
