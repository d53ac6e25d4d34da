"""Iceberg tables in Glue: an entry that points to a metadata file, and repeats what it says of columns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from catalogs.hive.properties import PLACES, SERDE_PARAMETER
from catalogs.hive.tables import EXTERNAL_TABLE, HiveColumn, HiveTable
from catalogs.iceberg import builder, files, guard
from catalogs.iceberg.translate import current_schema, to_iceberg
from catalogs.providers.metadata_files import MetadataFiles
from catalogs.table_wire import CreateTableRequest
from metalake.errors import AlreadyExists, Invalid, NotFound

Json = dict[str, Any]

POINTER, PREVIOUS = "metadata_location", "previous_metadata_location"
MARK = {"table_type": "ICEBERG"}
PLANNED = "metalake.planned"  # in the rest of a definition: what is to be done before the entry is made
CURRENT, OPTIONAL, ID = "iceberg.field.current", "iceberg.field.optional", "iceberg.field.id"
LONGEST_COMMENT = 255  # of a column in Glue; the metadata file has all of it
OF_HIVE_TABLES = {*PLACES} - {"location", "table-type"}

# As Iceberg's own Glue catalogs write them.
GLUE_TYPES = {
    "long": "bigint", "time": "string", "uuid": "string", "timestamptz": "timestamp", "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp",
}  # fmt: skip


def planned_table(name: str, asked: CreateTableRequest, location: str, store: MetadataFiles) -> HiveTable:
    """A new table's entry; `rest` holds the metadata that is to be written. Raises Invalid or Unsupported."""
    for key in asked.properties:
        if key in OF_HIVE_TABLES or key.startswith(SERDE_PARAMETER):
            raise Invalid(f"properties.{key}: an Iceberg table has none; it is for table_type=HIVE", kind="table")
    if asked.properties.get("table-type", EXTERNAL_TABLE).upper() != EXTERNAL_TABLE:
        raise Invalid(f"properties.table-type: an Iceberg table in AWS Glue is an {EXTERNAL_TABLE}", kind="table")
    properties = {key: value for key, value in asked.properties.items() if key not in ("location", "table-type")}
    guard.check_properties(properties)
    schema, spec, order, wanted = to_iceberg(asked.model_copy(update={"properties": properties}))
    metadata = builder.new_table_metadata(
        table_uuid=str(uuid4()),
        location=location,
        schema=schema,
        partition_spec=spec,
        sort_order=order,
        properties=wanted,
        now_ms=int(time.time() * 1000),
    )
    return planned_entry(name, asked.comment, metadata, store)


def planned_entry(name: str, comment: str | None, metadata: Json, store: MetadataFiles) -> HiveTable:
    """The entry of a table whose metadata is to be written. Raises Invalid for what it must not hold."""
    store.check_metadata(metadata)
    pointer = files.new_location(metadata, version=0)
    return _entry(HiveTable(name=name, comment=comment, rest={PLANNED: {"write": metadata}}), metadata, pointer)


def registered_table(name: str, asked: CreateTableRequest, store: MetadataFiles) -> HiveTable:
    """The entry of a table whose metadata file is there; what it says is read when the entry is made."""
    if asked.columns or asked.partitioning or asked.sort_orders or asked.distribution or asked.indexes:
        raise Invalid(
            "properties.metadata_location: the table is registered as its metadata file has it; leave out columns, "
            "partitioning, sort orders, distribution and indexes",
            kind="table",
        )
    if "location" in asked.properties:
        raise Invalid("properties.location: the metadata file says where the table is; leave it out", kind="table")
    properties = {key: value for key, value in asked.properties.items() if key != "table-type"}
    guard.check_properties(properties)
    store.allowed_place(properties[POINTER])
    return HiveTable(name=name, comment=asked.comment, parameters=MARK | properties, rest={PLANNED: {}})


def prepared(store: MetadataFiles, table: HiveTable) -> HiveTable:
    """The entry as it is to be made, its metadata file written or, to be registered, read and found allowed.

    Raises Invalid, TooLarge, ProviderUnavailable.
    """
    pointer = table.parameters[POINTER]
    plain = replace(table, rest={name: value for name, value in table.rest.items() if name != PLANNED})
    if "write" in table.rest[PLANNED]:
        with suppress(AlreadyExists):  # by an earlier try: nobody else knows the name
            files.write_metadata_at(store.io, pointer, table.rest[PLANNED]["write"])
        return plain
    metadata = files.parse_metadata(store.read_foreign(pointer))
    store.check_metadata(metadata)
    return _entry(plain, metadata, pointer)


def written_for(definition: Mapping[str, Any]) -> str | None:
    """The metadata file that is written when a definition is made a table."""
    planned = definition["rest"].get(PLANNED) or {}
    return definition["parameters"][POINTER] if "write" in planned else None


def committed(store: MetadataFiles, table: HiveTable, pointer: str) -> HiveTable:
    """The entry after a commit whose metadata file is written. Raises Invalid, TooLarge, ProviderUnavailable."""
    try:
        metadata = files.parse_metadata(store.read(pointer))
    except NotFound as missing:
        raise Invalid(missing.message, kind="metadata-file") from None
    was = table.parameters[POINTER]
    gone = files.parse_metadata(store.read(was))["properties"].keys() - metadata["properties"].keys()
    kept = {key: value for key, value in table.parameters.items() if key not in gone}
    return _entry(replace(table, parameters=kept | {PREVIOUS: was}), metadata, pointer)


def _entry(table: HiveTable, metadata: Json, pointer: str) -> HiveTable:
    told = {key: value for key, value in metadata["properties"].items() if key != "comment"}
    return replace(
        table,
        table_type=EXTERNAL_TABLE,
        columns=tuple(_columns(metadata)),
        location=metadata["location"],
        comment=metadata["properties"].get("comment") if table.comment is None else table.comment,
        parameters=table.parameters | told | MARK | {POINTER: pointer},
    )


def _columns(metadata: Json) -> Iterator[HiveColumn]:
    """Those of the current schema, then those that older schemas had, each name once."""
    current = current_schema(metadata)
    seen: set[str] = set()
    for schema in (current, *(metadata.get("schemas") or ())):
        for field in schema["fields"]:
            if field["name"] not in seen:
                seen.add(field["name"])
                yield _column(field, is_current=schema is current)


def _column(field: Json, is_current: bool) -> HiveColumn:
    said = {ID: str(field["id"]), OPTIONAL: _word(not field["required"]), CURRENT: _word(is_current)}
    comment = field.get("doc")
    return HiveColumn(field["name"], stored_type(field["type"]), comment and comment[:LONGEST_COMMENT], said)


def _word(value: bool) -> str:
    return str(value).lower()


def stored_type(type: str | Json) -> str:
    """An Iceberg type as Glue and metastores of Hive 2 keep it, which know fewer."""
    if isinstance(type, str):
        return "binary" if type.startswith("fixed[") else GLUE_TYPES.get(type, type.replace(" ", ""))
    match type["type"]:
        case "struct":
            fields = (f"{field['name']}:{stored_type(field['type'])}" for field in type["fields"])
            return f"struct<{','.join(fields)}>"
        case "list":
            return f"array<{stored_type(type['element'])}>"
        case _:
            return f"map<{stored_type(type['key'])},{stored_type(type['value'])}>"


def shown_columns(table: HiveTable, native: list[Json]) -> list[Json]:
    """The native columns of the current schema, as nullable as Iceberg has them."""
    said = {column.name: column.parameters for column in table.columns}
    return [
        column | {"nullable": said.get(column["name"], {}).get(OPTIONAL) != "false"}
        for column in native
        if said.get(column["name"], {}).get(CURRENT) != "false"
    ]
