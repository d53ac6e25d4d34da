"""Definitions of Hive-like partitions: `name`, `values`, `location` and `parameters`."""

from __future__ import annotations

from formats.hive.partitions import native_partition, partition_name, stored_values
from formats.hive.tables import HiveTable, formats_of
from formats.native.partitions import IdentityPartition
from metalake.errors import Unsupported
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.parameters import checked
from providers.remote_objects import PARTITION, Json
from providers.stores import RemotePartitions


class HiveLikePartitions(RemotePartitions):
    provider: HiveLikeCatalog

    def require_place(self, table: HiveTable, place: str) -> None:
        """Raise Invalid for a location where a partition of the table may not lie."""

    def draft(self, table: Json, asked: IdentityPartition) -> Json:
        of = HiveTable.from_json(table)
        if "iceberg" in formats_of(of):
            raise Unsupported("The partitions of an Iceberg table are in its metadata.", kind=PARTITION)
        parameters = checked(asked.properties)
        values = stored_values(of.partition_keys, asked)
        location = parameters.pop("location", None)
        if location is not None:
            self.require_place(of, self.provider.places.hive_place(location, of.location))
        name = partition_name(of.partition_keys, values)
        return {"name": name, "values": values, "location": location, "parameters": parameters}

    def show(self, table: Json, definition: Json) -> Json:
        keys = HiveTable.from_json(table).partition_keys
        place = {"location": definition["location"]} if definition["location"] else {}
        return native_partition(keys, definition["values"], place | definition["parameters"])
