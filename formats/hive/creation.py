"""Converts a native create request to a new Hive table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from formats.hive.columns import column_name, new_column, top_level
from formats.hive.formats import DEFAULT_FORMAT, storage_format
from formats.hive.properties import FORMAT, PLACES, SERDE_PARAMETER, require_unreserved
from formats.hive.tables import EXTERNAL_TABLE, MANAGED_TABLE, HiveColumn, HiveTable, SortColumn, formats_of
from formats.native import tables as wire
from formats.native.columns import Column, FieldReference, ListType, MapType, StructType, UnionType
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

TABLE_TYPES = (MANAGED_TABLE, EXTERNAL_TABLE)


def to_hive(request: wire.CreateTableRequest, owner: str | None = None) -> HiveTable:
    """A native create request as a Hive table, with names in lower case.

    Partition columns come last, in the order of `partitioning`, and become the partition keys. The location is the
    requested one or None. The caller checks name and location, and chooses a location if there is none.
    Raises Unsupported for anything that Hive cannot store, Invalid for contradictions; both name the path.
    """
    if request.indexes:
        raise Unsupported("indexes: Hive has no indexes", kind="table")
    columns = _columns(request.columns)
    keys = _partition_keys(request, columns)
    plain = {name: column for name, column in columns.items() if name not in keys}
    table = HiveTable(
        name=request.name.lower(),
        columns=tuple(plain.values()),
        partition_keys=tuple(columns[name] for name in keys),
        comment=request.comment,
        owner=owner,
        sort_columns=_sort_columns(request.sort_orders, plain),
        **_bucketing(request.distribution, plain),
        **_stored_properties(request.properties),
    )
    if "hive" not in (formats := formats_of(table)):
        raise Unsupported(f"properties: a table of format {', '.join(formats)} is no plain Hive table", kind="table")
    return table


def _columns(asked: Sequence[Column]) -> dict[str, HiveColumn]:
    if not asked:
        raise Invalid("columns: a table has at least one column", kind="table")
    columns: dict[str, HiveColumn] = {}
    for position, column in enumerate(asked):
        where = f"columns[{position}]"
        name = column_name(column.name, f"{where}.name")
        if name in columns:
            raise Invalid(
                f"{where}.name: {quote(column.name)} is there already; Hive does not tell names apart by case",
                kind="column",
            )
        columns[name] = new_column(name, column, where)
    return columns


def _partition_keys(request: wire.CreateTableRequest, columns: Mapping[str, HiveColumn]) -> list[str]:
    keys: list[str] = []
    types = dict(zip(columns, (column.type for column in request.columns), strict=True))
    for position, item in enumerate(request.partitioning):
        where = f"partitioning[{position}]"
        if not isinstance(item, wire.IdentityPartitioning):
            raise Unsupported(
                f"{where}: Hive partitions by the values of columns; use identity, not {item.strategy}", kind="table"
            )
        name = _known(item.field_name, columns, where)
        if name in keys:
            raise Invalid(f"{where}: {quote(name)} is partitioned by already", kind="table")
        if isinstance(types[name], StructType | ListType | MapType | UnionType):
            raise Unsupported(f"{where}: {quote(name)} is nested; Hive partitions by primitive columns", kind="table")
        keys.append(name)
    if keys != list(columns)[len(columns) - len(keys) :]:
        raise Invalid(
            f"partitioning: partition columns come last, in the order of partitioning: {', '.join(keys)}", kind="table"
        )
    return keys


def _known(path: list[str], columns: Mapping[str, Any], where: str) -> str:
    name = top_level(path, where)
    if name not in columns:
        raise Invalid(f"{where}: no column {quote(name)}", kind="column")
    return name


def _unpartitioned(term: object, plain: Mapping[str, HiveColumn], where: str) -> str:
    if not isinstance(term, FieldReference):
        raise Unsupported(f"{where}: Hive takes a column here, not an expression", kind="table")
    name = top_level(term.field_name, where)
    if name not in plain:
        raise Invalid(f"{where}: no column {quote(name)} beside the partition columns", kind="column")
    return name


def _bucketing(distribution: wire.Distribution | None, plain: Mapping[str, HiveColumn]) -> dict[str, Any]:
    if distribution is None or distribution.strategy == "none":
        return {}
    if distribution.strategy != "hash":
        raise Unsupported(f"distribution.strategy: Hive buckets by hash, not {distribution.strategy}", kind="table")
    if distribution.number < 1:
        raise Invalid("distribution.number: Hive needs the number of buckets, at least 1", kind="table")
    names = [
        _unpartitioned(term, plain, f"distribution.funcArgs[{position}]")
        for position, term in enumerate(distribution.func_args)
    ]
    if not names:
        raise Invalid("distribution.funcArgs: hash needs a column to hash by", kind="table")
    if len(set(names)) < len(names):
        raise Invalid("distribution.funcArgs: name each column once", kind="table")
    return {"bucket_columns": tuple(names), "num_buckets": distribution.number}


def _sort_columns(orders: Sequence[wire.SortOrder], plain: Mapping[str, HiveColumn]) -> tuple[SortColumn, ...]:
    sorted_by: dict[str, SortColumn] = {}
    for position, order in enumerate(orders):
        where = f"sortOrders[{position}]"
        name = _unpartitioned(order.sort_term, plain, f"{where}.sortTerm")
        if name in sorted_by:
            raise Invalid(f"{where}: {quote(name)} is sorted by already", kind="table")
        ascending = order.direction == "asc"
        if order.nulls != ("nulls_first" if ascending else "nulls_last"):
            raise Unsupported(
                f"{where}.nullOrdering: Hive puts nulls first ascending and last descending; leave it out", kind="table"
            )
        sorted_by[name] = SortColumn(name, ascending)
    return tuple(sorted_by.values())


def _stored_properties(asked: Mapping[str, str]) -> dict[str, Any]:
    """The Hive table attributes from properties; explicit class names override those of the format."""
    for name in asked:
        require_unreserved(name, f"properties.{name}")
    classes = storage_format(asked.get(FORMAT, DEFAULT_FORMAT), f"properties.{FORMAT}")
    places: dict[str, Any] = {**classes._asdict(), "table_type": MANAGED_TABLE}
    places |= {attribute: asked[name] for name, attribute in PLACES.items() if name in asked}
    places["table_type"] = table_type = places["table_type"].upper()
    if table_type not in TABLE_TYPES:
        raise Unsupported(
            f"properties.table-type: {quote(table_type)} is none of {', '.join(TABLE_TYPES)}", kind="table"
        )
    elsewhere = {*PLACES, FORMAT}
    parameters = {
        name: value for name, value in asked.items() if name not in elsewhere and not name.startswith(SERDE_PARAMETER)
    }
    if table_type == EXTERNAL_TABLE:
        parameters["EXTERNAL"] = "TRUE"  # a metastore decides by this whether a drop deletes files
    serde_parameters = {
        name.removeprefix(SERDE_PARAMETER): value for name, value in asked.items() if name.startswith(SERDE_PARAMETER)
    }
    return {**places, "parameters": parameters, "serde_parameters": serde_parameters}
