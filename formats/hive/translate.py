"""Converts Hive tables to native tables; creation.py is the inverse."""

from __future__ import annotations

from typing import Any

from formats.hive import types
from formats.hive.formats import format_name
from formats.hive.properties import FORMAT, PLACES, SERDE_PARAMETER
from formats.hive.spark import spark_columns
from formats.hive.tables import FILE_FORMATS, SPARK_PROVIDER, HiveColumn, HiveTable, SortColumn


def from_hive(table: HiveTable) -> dict[str, Any]:
    """The native JSON of a Hive table, to which the caller adds the name and audit information.

    That is `columns` (partition keys last), `partitioning`, `sortOrders`, `distribution`, `indexes`, `comment` and
    `properties`.
    """
    columns = spark_columns(table) or table.columns
    named = {column.name.lower() for column in columns}
    keys = [key for key in table.partition_keys if key.name.lower() not in named]
    return {
        "columns": [_native_column(column) for column in (*columns, *keys)],
        "partitioning": [{"strategy": "identity", "fieldName": [key.name]} for key in table.partition_keys],
        "sortOrders": [_native_sort_order(column) for column in table.sort_columns],
        "distribution": _native_distribution(table),
        "indexes": [],
        "comment": table.comment if table.comment is not None else table.parameters.get("comment"),
        "properties": _derived_properties(table) | table.parameters,
    }


def _native_column(column: HiveColumn) -> dict[str, Any]:
    native = {
        "name": column.name,
        "type": types.native_type(column.type),
        "nullable": True,
        "autoIncrement": False,
    }
    return native if column.comment is None else native | {"comment": column.comment}


def _native_sort_order(column: SortColumn) -> dict[str, Any]:
    direction, nulls = ("asc", "nulls_first") if column.ascending else ("desc", "nulls_last")
    return {"sortTerm": _reference(column.name), "direction": direction, "nullOrdering": nulls}


def _native_distribution(table: HiveTable) -> dict[str, Any]:
    if not table.bucket_columns:
        return {"strategy": "none", "number": 0, "funcArgs": []}
    columns = [_reference(name) for name in table.bucket_columns]
    return {"strategy": "hash", "number": table.num_buckets, "funcArgs": columns}


def _reference(column: str) -> dict[str, Any]:
    return {"type": "field", "fieldName": [column]}


def _derived_properties(table: HiveTable) -> dict[str, str]:
    shown = {name: getattr(table, attribute) for name, attribute in PLACES.items()}
    shown[FORMAT] = _spark_format(table) or format_name(table.input_format, table.serde_lib)
    properties = {name: value for name, value in shown.items() if value is not None}
    return properties | {SERDE_PARAMETER + name: value for name, value in table.serde_parameters.items()}


def _spark_format(table: HiveTable) -> str | None:
    """The format of a Spark table from Spark's provider; its storage descriptor is unreliable."""
    provider = table.parameters.get(SPARK_PROVIDER, "").lower()
    return next((name for name, word in FILE_FORMATS.items() if word == provider), None)
