"""Hive tables as Hive, Spark and AWS crawlers leave them, and short ways to change them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from formats.hive.alterations import altered
from formats.hive.creation import to_hive
from formats.hive.formats import STORAGE_FORMATS
from formats.hive.spark import PLACEHOLDER
from formats.hive.tables import HiveColumn, HiveTable, SortColumn
from formats.native.tables import CreateTableRequest, TableUpdatesRequest
from metalake.errors import MetalakeError
from metalake.wire import read


def flights(**changes: Any) -> HiveTable:
    """A bucketed, sorted and partitioned table with something in every field."""
    return HiveTable(
        **{
            "name": "flights",
            "columns": (
                HiveColumn("id", "bigint", "who"),
                HiveColumn("carrier", "string"),
                HiveColumn("delay", "int", None, {"unit": "minutes"}),
                HiveColumn("legs", "array<struct<from:string,to:string>>"),
            ),
            "partition_keys": (HiveColumn("year", "int"), HiveColumn("day", "date", "of departure")),
            "parameters": {"owner_team": "ops", "numRows": "336776"},
            "table_type": "EXTERNAL_TABLE",
            "comment": "all flights",
            "location": "s3://lake/flights",
            **STORAGE_FORMATS["ORC"]._asdict(),
            "serde_name": "flights",
            "serde_parameters": {"serialization.format": "1"},
            "bucket_columns": ("carrier",),
            "num_buckets": 8,
            "sort_columns": (SortColumn("id"), SortColumn("delay", ascending=False)),
            "compressed": True,
            "stored_as_sub_directories": True,
            "sd_parameters": {"k": "v"},
            "owner": "anna",
            "retention": 7,
            "rest": {"TargetTable": None, "VersionId": "3"},
            **changes,
        }
    )


def airports(**changes: Any) -> HiveTable:
    """A small table of text files."""
    columns = (HiveColumn("faa", "string"), HiveColumn("name", "string"), HiveColumn("alt", "int"))
    return HiveTable(
        **{
            "name": "airports",
            "columns": columns,
            "table_type": "MANAGED_TABLE",
            **STORAGE_FORMATS["TEXTFILE"]._asdict(),
            **changes,
        }
    )


SPARK_FIELDS = [
    {"name": "Id", "type": "long", "nullable": True, "metadata": {"comment": "who"}},
    {"name": "code", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}},
    {"name": "price", "type": "decimal(10,2)", "nullable": False, "metadata": {"CURRENT_DEFAULT": "1.0"}},
    {
        "name": "place",
        "type": {
            "type": "struct",
            "fields": [
                {"name": "city", "type": "string", "nullable": True, "metadata": {"comment": "it's"}},
                {"name": "odd`name", "type": "short", "nullable": True, "metadata": {}},
            ],
        },
        "nullable": True,
        "metadata": {},
    },
    {
        "name": "tags",
        "type": {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "array", "elementType": "integer", "containsNull": True},
            "valueContainsNull": True,
        },
        "nullable": True,
        "metadata": {},
    },
    {"name": "seen", "type": "timestamp_ntz", "nullable": True, "metadata": {}},
    {"name": "day", "type": "date", "nullable": True, "metadata": {}},
]


def spark_sales(parts: int = 0, fields: Any = None, **changes: Any) -> HiveTable:
    """What Spark 4.1 leaves after `create table ... using json partitioned by (day)`; older ones write parts."""
    text = json.dumps({"type": "struct", "fields": SPARK_FIELDS if fields is None else fields})
    schema = {"spark.sql.sources.schema": text}
    if parts:
        size = -(-len(text) // parts)
        schema = {f"spark.sql.sources.schema.part.{n}": text[n * size : (n + 1) * size] for n in range(parts)}
        schema["spark.sql.sources.schema.numParts"] = str(parts)
    return HiveTable(
        **{
            "name": "sales",
            "columns": (PLACEHOLDER,),
            "partition_keys": (HiveColumn("day", "date"),),
            "parameters": {"spark.sql.sources.provider": "json", "spark.sql.create.version": "4.1.4", **schema},
            "table_type": "MANAGED_TABLE",
            "location": "file:/wh/sales",
            **STORAGE_FORMATS["SEQUENCEFILE"]._asdict(),
            "serde_parameters": {"path": "file:/wh/sales", "serialization.format": "1"},
            **changes,
        }
    )


def changed(table: HiveTable, *changes: dict[str, Any]) -> HiveTable:
    """The table after native changes; the given one must stay as it was."""
    before = json.dumps(table.as_json())
    after = altered(table, read(TableUpdatesRequest, {"updates": list(changes)}).updates)
    assert json.dumps(table.as_json()) == before, "altering changes nothing in place"
    return after


def refused(error: type[MetalakeError], table: HiveTable, *changes: dict[str, Any]) -> str:
    with pytest.raises(MetalakeError) as caught:
        changed(table, *changes)
    assert type(caught.value) is error, caught.value
    return caught.value.message


def named(table: HiveTable) -> dict[str, HiveColumn]:
    """The columns by name, in order."""
    return {column.name: column for column in table.columns}


def create_body(**changes: Any) -> dict[str, Any]:
    columns = [
        {"name": "id", "type": "long", "comment": "who"},
        {"name": "carrier", "type": "string"},
        {"name": "price", "type": "decimal(10,2)"},
        {"name": "day", "type": "date"},
    ]
    return {"name": "sales", "columns": columns, **changes}


def created(owner: str | None = None, **changes: Any) -> HiveTable:
    return to_hive(read(CreateTableRequest, create_body(**changes)), owner)


def not_created(error: type[MetalakeError], **changes: Any) -> str:
    with pytest.raises(MetalakeError) as caught:
        created(**changes)
    assert type(caught.value) is error, caught.value
    return caught.value.message
