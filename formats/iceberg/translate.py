"""Translate native tables to Iceberg tables and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from formats.iceberg import fields, transforms, types
from formats.native.columns import Column
from formats.native.tables import CreateTableRequest, Distribution
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

DEFAULT_FORMAT_VERSION = 2
FORMAT_VERSIONS = (1, 2, 3)
FILE_FORMATS = ("parquet", "avro", "orc")
FILE_FORMAT = "write.format.default"
DISTRIBUTION_MODE = "write.distribution-mode"

# Users cannot set these: they come from other fields of the table, or Iceberg computes them (Iceberg: TableProperties).
RESERVED = {
    "comment": "it is the table's comment",
    "creator": "it is in the table's audit information",
    "sort-order": "it is the table's sort order",
    DISTRIBUTION_MODE: "it is the table's distribution",
    "identifier-fields": "it is part of the Iceberg schema",
    "current-snapshot-id": "snapshots are written by engines",
    "cherry-pick-snapshot-id": "snapshots are written by engines",
    "current-snapshot-summary": "snapshots are written by engines",
    "current-snapshot-timestamp-ms": "snapshots are written by engines",
    "snapshot-count": "snapshots are written by engines",
    "uuid": "it is given at creation and kept",
    "current-schema": "it is part of the Iceberg metadata",
    "default-partition-spec": "it is part of the Iceberg metadata",
    "default-sort-order": "it is part of the Iceberg metadata",
}


def to_iceberg(
    request: CreateTableRequest,
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None, dict[str, str]]:
    """A native create request as Iceberg's schema, partition spec and sort order (None if absent) and properties.

    Field ids are provisional; the catalog reassigns them. A requested `location` or `format-version` stays in the
    properties for the caller to remove.
    Raises Unsupported for what Iceberg cannot express, Invalid for contradictions; both name the field.
    """
    if request.indexes:
        raise Unsupported("indexes: Iceberg has no indexes, and its identifier fields are no key", kind="table")
    if not request.columns:
        raise Invalid("columns: a table has at least one column", kind="table")
    version = format_version(request.properties)
    struct = _struct(request.columns, version)
    named = fields.places(struct)
    spec = transforms.partition_spec(request.partitioning, named)
    order = transforms.sort_order(request.sort_orders, named)
    properties = _create_properties(request.properties)
    properties[DISTRIBUTION_MODE] = _distribution_mode(request.distribution, spec is not None, order is not None)
    if request.comment is not None:
        properties["comment"] = request.comment
    return {"schema-id": 0, **fields.write_struct(struct)}, spec, order, properties


def format_version(properties: Mapping[str, str]) -> int:
    """The format version requested by a create's properties. Raises Invalid for one that we cannot write."""
    asked = properties.get("format-version", "").strip()
    if not asked:
        return DEFAULT_FORMAT_VERSION
    if asked not in map(str, FORMAT_VERSIONS):
        known = ", ".join(map(str, FORMAT_VERSIONS))
        raise Invalid(f"properties.format-version: {quote(asked)} is none of {known}", kind="table")
    return int(asked)


def _struct(columns: Sequence[Column], version: int) -> fields.Struct:
    ids: Iterator[int] = count(len(columns) + 1)
    return fields.Struct(
        [
            column_field(column, position + 1, ids, f"columns[{position}]", version)
            for position, column in enumerate(columns)
        ]
    )


def column_field(column: Column, id: int, ids: Iterator[int], where: str, version: int) -> fields.Field:
    """A native column as an Iceberg field with this id; nested fields take theirs from `ids`.

    Raises Unsupported or Invalid, naming the field.
    """
    if column.auto_increment:
        raise Unsupported(f"{where}.autoIncrement: Iceberg does not count rows by itself", kind="column")
    type = types.iceberg_type(column.type, ids, f"{where}.type", version)
    default = types.default_value(column.default_value, type, f"{where}.defaultValue", version)
    rest = {} if default is None else {"write-default": default}
    return fields.Field(id, column.name, type, not column.nullable, column.comment, rest)


def _create_properties(asked: Mapping[str, str]) -> dict[str, str]:
    for name in asked:
        if name in RESERVED:
            raise Invalid(f"properties.{name}: is reserved; {RESERVED[name]}", kind="table")
    properties = {name: value for name, value in asked.items() if name not in ("provider", "format")}
    if not properties.get("format-version", "2").strip():
        del properties["format-version"]
    for name in ("provider", "format"):
        _apply_file_format(asked.get(name), name, properties)
    return properties


def _apply_file_format(asked: str | None, name: str, properties: dict[str, str]) -> None:
    """Set the file format from `provider` or `format`: `iceberg`, a file format, or both as in `iceberg/orc`."""
    if asked is None or asked.lower() == "iceberg":
        return
    file_format = asked.lower().removeprefix("iceberg/")
    if file_format not in FILE_FORMATS:
        raise Invalid(f"properties.{name}: {quote(asked)} is none of iceberg, {', '.join(FILE_FORMATS)}", kind="table")
    if properties.setdefault(FILE_FORMAT, file_format).lower() != file_format:
        raise Invalid(f"properties.{name}: {quote(asked)} contradicts {properties[FILE_FORMAT]}", kind="table")


def _distribution_mode(distribution: Distribution | None, partitioned: bool, sorted_: bool) -> str:
    """The write distribution mode; by default range if sorted, else hash if partitioned."""
    if distribution is None or distribution.strategy == "none":
        return "range" if sorted_ else "hash" if partitioned else "none"
    if distribution.strategy == "even":
        raise Unsupported("distribution.strategy: Iceberg does not distribute evenly", kind="table")
    if distribution.func_args:
        raise Unsupported("distribution.funcArgs: Iceberg distributes by its partitions and sort order", kind="table")
    if distribution.number > 0:
        raise Unsupported("distribution.number: Iceberg has no number of buckets to distribute over", kind="table")
    if distribution.strategy == "hash" and not partitioned:
        raise Invalid("distribution.strategy: hash needs partitioning to hash by", kind="table")
    if distribution.strategy == "range" and not (partitioned or sorted_):
        raise Invalid("distribution.strategy: range needs a sort order or partitioning", kind="table")
    return distribution.strategy


def from_iceberg(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The native table JSON derived from its Iceberg metadata; the caller adds the name and the audit information.

    The keys are `columns`, `partitioning`, `sortOrders`, `distribution`, `indexes`, `comment` and `properties`.
    """
    schema = current_schema(metadata)
    struct = fields.read_struct(schema)
    paths = {place.field.id: place.path for place in fields.places(struct).values()}
    spec, order = default_spec(metadata), default_sort_order(metadata)
    properties = dict(metadata.get("properties") or {})
    comment = properties.pop("comment", None)
    return {
        "columns": [native_column(field) for field in struct.fields],
        "partitioning": transforms.native_partitioning(spec, paths),
        "sortOrders": transforms.native_sort_orders(order, paths),
        "distribution": _native_distribution(properties.get(DISTRIBUTION_MODE)),
        "indexes": [],
        "comment": comment,
        "properties": properties | _computed_properties(metadata, schema, order, paths),
    }


def native_column(field: fields.Field) -> dict[str, Any]:
    """A top-level field of a schema as a column of the native API."""
    column: dict[str, Any] = {
        "name": field.name,
        "type": types.native_type(field.type),
        "nullable": not field.required,
        "autoIncrement": False,
    }
    if field.doc is not None:
        column["comment"] = field.doc
    if isinstance(field.type, str) and field.rest.get("write-default") is not None:
        column["defaultValue"] = types.native_default(field.rest["write-default"], field.type)
    return column


def _native_distribution(mode: str | None) -> dict[str, Any]:
    return {"strategy": mode if mode in ("hash", "range") else "none", "number": 0, "funcArgs": []}


def _computed_properties(
    metadata: Mapping[str, Any], schema: Mapping[str, Any], order: Mapping[str, Any], paths: Mapping[int, Sequence[str]]
) -> dict[str, str]:
    """Metadata fields that the native API returns as properties."""
    file_format = (metadata.get("properties") or {}).get(FILE_FORMAT, "parquet")
    snapshot = metadata.get("current-snapshot-id")
    properties = {
        "format": f"iceberg/{file_format}",
        "provider": "iceberg",
        "current-snapshot-id": "none" if snapshot in (None, -1) else str(snapshot),
        "location": str(metadata.get("location", "")),
        "format-version": str(metadata["format-version"]),
    }
    if order.get("fields"):
        properties["sort-order"] = transforms.describe_sort_order(order, paths)
    if identifiers := schema.get("identifier-field-ids"):
        properties["identifier-fields"] = f"[{','.join('.'.join(paths[id]) for id in identifiers if id in paths)}]"
    return properties


def current_schema(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The current schema; old version 1 metadata has only one, under `schema`. Raises Invalid if it is missing."""
    current = metadata.get("current-schema-id")
    for schema in metadata.get("schemas") or ():
        if schema.get("schema-id", 0) == current:
            return schema
    if isinstance(metadata.get("schema"), dict):
        return metadata["schema"]
    raise Invalid(f"The table's metadata has no schema {current}", kind="table")


def default_spec(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The default partition spec; old version 1 metadata has only one, as a list under `partition-spec`."""
    for spec in metadata.get("partition-specs") or ():
        if spec.get("spec-id") == metadata.get("default-spec-id"):
            return spec
    return {"fields": metadata.get("partition-spec") or []}


def default_sort_order(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The default sort order; unsorted if there is none."""
    for order in metadata.get("sort-orders") or ():
        if order.get("order-id") == metadata.get("default-sort-order-id"):
            return order
    return {"fields": []}
