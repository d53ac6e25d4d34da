"""Convert Glue's databases and tables to definitions and back; a table's definition is a HiveTable's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from formats.hive.tables import HiveColumn, HiveTable, SortColumn

Json = dict[str, Any]

# Glue's fields that are not part of the definition; then those that `hive_table` reads.
_ABOUT = {
    *("Name", "DatabaseName", "CatalogId", "CreateTime", "UpdateTime", "VersionId", "CreatedBy"),
    *("IsRegisteredWithLakeFormation", "Status"),
}
_TABLE = {
    "Description": "comment",
    "Owner": "owner",
    "TableType": "table_type",
    "ViewOriginalText": "view_original_text",
    "ViewExpandedText": "view_expanded_text",
}
_STORAGE = {"Location": "location", "InputFormat": "input_format", "OutputFormat": "output_format"}
_SERDE = {"Name": "serde_name", "SerializationLibrary": "serde_lib"}
_READ_OF_TABLE = {*_TABLE, "Retention", "PartitionKeys", "Parameters", "StorageDescriptor"}
_READ_OF_STORAGE = {
    *(*_STORAGE, "Columns", "Compressed", "NumberOfBuckets", "SerdeInfo", "BucketColumns", "SortColumns"),
    *("Parameters", "StoredAsSubDirectories"),
}


def moment(value: datetime | None) -> str:
    """A time in UTC, ISO 8601, the same on every machine: botocore returns the local time zone."""
    return value.astimezone(UTC).isoformat() if value else ""


def hive_table(table: Mapping[str, Any]) -> HiveTable:
    """A table from Glue's response; fields that HiveTable lacks go into `rest` under Glue's names."""
    storage: Mapping[str, Any] = table.get("StorageDescriptor") or {}
    serde: Mapping[str, Any] = storage.get("SerdeInfo") or {}
    return HiveTable(
        name=table["Name"],
        columns=tuple(map(_column, storage.get("Columns") or ())),
        partition_keys=tuple(map(_column, table.get("PartitionKeys") or ())),
        parameters=dict(table.get("Parameters") or {}),
        serde_parameters=dict(serde.get("Parameters") or {}),
        bucket_columns=tuple(storage.get("BucketColumns") or ()),
        num_buckets=storage.get("NumberOfBuckets", -1),
        sort_columns=tuple(SortColumn(by["Column"], by["SortOrder"] == 1) for by in storage.get("SortColumns") or ()),
        compressed=bool(storage.get("Compressed")),
        stored_as_sub_directories=bool(storage.get("StoredAsSubDirectories")),
        sd_parameters=dict(storage.get("Parameters") or {}),
        retention=table.get("Retention") or 0,
        rest=_rest(table, storage),
        **{attribute: table.get(name) for name, attribute in _TABLE.items()},
        **{attribute: storage.get(name) for name, attribute in _STORAGE.items()},
        **{attribute: serde.get(name) for name, attribute in _SERDE.items()},
    )


def _rest(table: Mapping[str, Any], storage: Mapping[str, Any]) -> Json:
    rest = {name: _json(value) for name, value in table.items() if name not in _READ_OF_TABLE and name not in _ABOUT}
    if more := {name: _json(value) for name, value in storage.items() if name not in _READ_OF_STORAGE}:
        rest["StorageDescriptor"] = more
    return rest


def _json(value: Any) -> Any:
    match value:
        case datetime():
            return moment(value)
        case dict():
            return {name: _json(one) for name, one in value.items()}
        case list():
            return [_json(one) for one in value]
    return value


def table_input(table: HiveTable) -> Json:
    """The table as Glue's TableInput; `rest` may add fields that Glue returns but does not accept."""
    storage = {
        "Columns": [_glue_column(column) for column in table.columns],
        "NumberOfBuckets": table.num_buckets,
        "Compressed": table.compressed,
        "StoredAsSubDirectories": table.stored_as_sub_directories,
        "BucketColumns": list(table.bucket_columns),
        "SortColumns": [{"Column": by.name, "SortOrder": int(by.ascending)} for by in table.sort_columns],
        "SerdeInfo": _set(table, _SERDE) | ({"Parameters": table.serde_parameters} if table.serde_parameters else {}),
        "Parameters": table.sd_parameters,
        **_set(table, _STORAGE),
        **table.rest.get("StorageDescriptor", {}),
    }
    return {
        "Name": table.name,
        "Retention": table.retention,
        "PartitionKeys": [_glue_column(key) for key in table.partition_keys],
        "Parameters": table.parameters,
        **_set(table, _TABLE),
        **table.rest,
        "StorageDescriptor": storage,
    }


def _set(table: HiveTable, names: Mapping[str, str]) -> Json:
    values = {name: getattr(table, attribute) for name, attribute in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _column(column: Mapping[str, Any]) -> HiveColumn:
    return HiveColumn(column["Name"], column.get("Type") or "", column.get("Comment"), column.get("Parameters") or {})


def _glue_column(column: HiveColumn) -> Json:
    written: Json = {"Name": column.name, "Type": column.type}
    if column.comment is not None:
        written["Comment"] = column.comment
    return written | ({"Parameters": column.parameters} if column.parameters else {})


def database_definition(database: Mapping[str, Any]) -> Json:
    """`comment`, `location` and `parameters` of a database, with Glue's other fields under `rest`."""
    elsewhere = {"Name", "CreateTime", "CatalogId", "Description", "LocationUri", "Parameters"}
    return {
        "comment": database.get("Description"),
        "location": database.get("LocationUri"),
        "parameters": dict(database.get("Parameters") or {}),
        "rest": {name: _json(value) for name, value in database.items() if name not in elsewhere},
    }


def database_input(name: str, definition: Mapping[str, Any]) -> Json:
    places = {"Description": definition["comment"], "LocationUri": definition["location"]}
    written = {place: value for place, value in places.items() if value is not None}
    return {"Name": name, "Parameters": definition["parameters"], **written, **definition["rest"]}


def merged(stored: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """The stored entry patched with the diff of two inputs, everything else unchanged."""
    result = dict(stored)
    for name in before.keys() | after.keys():
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if name not in after:
            result.pop(name, None)
        elif isinstance(now, dict) and isinstance(stored.get(name), dict):
            result[name] = merged(stored[name], was or {}, now)
        else:
            result[name] = now
    return result
