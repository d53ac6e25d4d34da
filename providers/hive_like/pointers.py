"""Iceberg tables in a Hive-like system: `providers.hive_like.iceberg_entries` plus native API creations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from formats.hive.properties import PLACES, SERDE_PARAMETER
from formats.hive.tables import EXTERNAL_TABLE, HiveTable
from formats.iceberg import builder, forbidden_properties, metadata_json
from formats.iceberg.translate import current_schema, to_iceberg
from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid
from metalake.kinds import Kind
from providers.hive_like.iceberg_entries import NOT_REPEATED, HiveLikePointed
from providers.hive_like.parameters import POINTER
from providers.remote_objects import NewTable, Remote
from providers.stores import RemotePointers

Json = dict[str, Any]

OF_HIVE_TABLES = {*PLACES} - {"location", "table-type"}


class HiveLikePointers(HiveLikePointed, RemotePointers):
    """Tables whose entry has the metadata location in a parameter."""

    kind, mark, entry_type = Kind.TABLE, "ICEBERG", EXTERNAL_TABLE

    def parse(self, content: bytes) -> Json:
        return metadata_json.parse_metadata(content)

    def columns(self, metadata: Json) -> Sequence[Json]:
        fields: Sequence[Json] = current_schema(metadata)["fields"]
        return fields

    def home_of(self, schema: Remote) -> str | None:
        return self.provider.places.home_of(schema)

    def new_table(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        """A new table from a native API request; with the property `metadata_location`, a table to register."""
        self.check_names(schema, asked.name)
        if POINTER in asked.properties:
            return self._to_register(schema, asked)
        for key in asked.properties:
            if key in OF_HIVE_TABLES or key.startswith(SERDE_PARAMETER):
                raise Invalid(f"properties.{key}: an Iceberg table has none; it is for table_type=HIVE", kind="table")
        if asked.properties.get("table-type", EXTERNAL_TABLE).upper() != EXTERNAL_TABLE:
            raise Invalid(f"properties.table-type: an Iceberg table is an {EXTERNAL_TABLE} here", kind="table")
        properties = {key: value for key, value in asked.properties.items() if key not in ("location", "table-type")}
        forbidden_properties.check_properties(properties)
        columns, spec, order, wanted = to_iceberg(asked.model_copy(update={"properties": properties}))
        metadata = builder.new_table_metadata(
            table_uuid=str(uuid4()),
            location=self.place(schema, asked.name, asked.properties.get("location")),
            schema=columns,
            partition_spec=spec,
            sort_order=order,
            properties=wanted,
            now_ms=int(time.time() * 1000),
        )
        return self.planned(schema, asked.name, asked.comment, metadata)

    def _to_register(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        if asked.columns or asked.partitioning or asked.sort_orders or asked.distribution or asked.indexes:
            raise Invalid(
                "properties.metadata_location: the table is registered as its metadata file has it; leave out columns, "
                "partitioning, sort orders, distribution and indexes",
                kind="table",
            )
        if "location" in asked.properties:
            raise Invalid("properties.location: the metadata file says where the table is; leave it out", kind="table")
        forbidden_properties.check_properties(asked.properties)
        parameters = {key: value for key, value in asked.properties.items() if key not in {"table-type", *NOT_REPEATED}}
        entry = HiveTable(name=asked.name, comment=asked.comment, parameters=parameters)
        return self.registered(schema, entry, asked.properties[POINTER])
