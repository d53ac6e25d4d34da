"""Hive tables as data, and the native tables that they show."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from gravitino.client.relational_table import RelationalTable
from gravitino.dto.responses.table_response import TableResponse
from gravitino.namespace import Namespace

from catalogs.replies import TableReply
from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.translate import from_hive
from tests.formats.hive.samples import airports, created, flights, spark_sales


@pytest.mark.parametrize("table", [flights(), airports(), spark_sales(), HiveTable(name="t")])
def test_a_table_comes_back_from_json_as_it_went(table):
    data = json.loads(json.dumps(table.as_json()))
    assert HiveTable.from_json(data) == table
    assert data == table.as_json()


def test_every_part_of_a_table_is_shown():
    assert from_hive(flights()) == {
        "columns": [
            {"name": "id", "type": "long", "nullable": True, "autoIncrement": False, "comment": "who"},
            {"name": "carrier", "type": "string", "nullable": True, "autoIncrement": False},
            {"name": "delay", "type": "integer", "nullable": True, "autoIncrement": False},
            {
                "name": "legs",
                "type": {
                    "type": "list",
                    "elementType": {
                        "type": "struct",
                        "fields": [
                            {"name": "from", "type": "string", "nullable": True},
                            {"name": "to", "type": "string", "nullable": True},
                        ],
                    },
                    "containsNull": True,
                },
                "nullable": True,
                "autoIncrement": False,
            },
            {"name": "year", "type": "integer", "nullable": True, "autoIncrement": False},
            {"name": "day", "type": "date", "nullable": True, "autoIncrement": False, "comment": "of departure"},
        ],
        "partitioning": [
            {"strategy": "identity", "fieldName": ["year"]},
            {"strategy": "identity", "fieldName": ["day"]},
        ],
        "sortOrders": [
            {
                "sortTerm": {"type": "field", "fieldName": ["id"]},
                "direction": "asc",
                "nullOrdering": "nulls_first",
            },
            {
                "sortTerm": {"type": "field", "fieldName": ["delay"]},
                "direction": "desc",
                "nullOrdering": "nulls_last",
            },
        ],
        "distribution": {
            "strategy": "hash",
            "number": 8,
            "funcArgs": [{"type": "field", "fieldName": ["carrier"]}],
        },
        "indexes": [],
        "comment": "all flights",
        "properties": {
            "location": "s3://lake/flights",
            "format": "ORC",
            "input-format": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            "output-format": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
            "serde-lib": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
            "serde-name": "flights",
            "serde.parameter.serialization.format": "1",
            "table-type": "EXTERNAL_TABLE",
            "owner_team": "ops",
            "numRows": "336776",
        },
    }


def test_a_table_that_says_little_shows_little():
    parts = from_hive(HiveTable(name="t"))
    assert parts["distribution"] == {"strategy": "none", "number": 0, "funcArgs": []}
    assert parts["properties"] == {}
    assert parts["comment"] is None
    assert parts["columns"] == parts["partitioning"] == parts["sortOrders"] == parts["indexes"] == []


def test_every_parameter_passes_through_and_wins():
    parameters = {
        "location": "s3://delta",
        "format": "x",
        "table-type": "y",
        "serde.parameter.k": "z",
        "": "",
        "comment": "c",
    }
    shown = from_hive(flights(parameters=parameters, comment=None))
    assert parameters.items() <= shown["properties"].items()
    assert shown["comment"] == "c"
    assert from_hive(flights(parameters=parameters))["comment"] == "all flights"


def test_a_partition_key_among_the_columns_is_shown_once():
    table = airports(partition_keys=(HiveColumn("ALT", "int"), HiveColumn("zone", "string")))
    assert [column["name"] for column in from_hive(table)["columns"]] == ["faa", "name", "alt", "zone"]


def test_types_that_hive_does_not_define_are_shown_as_they_are():
    table = airports(columns=(HiveColumn("at", "geometry"),))
    assert from_hive(table)["columns"][0]["type"] == {"type": "external", "catalogString": "geometry"}


@pytest.mark.parametrize("table", [flights(), spark_sales()])
def test_the_native_client_reads_it(table):
    audit = {"creator": "anna", "createTime": "2026-11-21T00:00:00Z"}
    body = from_hive(table) | {"name": table.name, "audit": audit}
    TableReply.model_validate(body)
    reply = TableResponse.from_json(json.dumps({"code": 0, "table": body}), infer_missing=True)
    reply.validate()
    theirs = RelationalTable(Namespace.of("m", "c", "s"), reply.table(), None)
    assert [column.name() for column in theirs.columns()] == [column["name"] for column in body["columns"]]
    assert len(theirs.partitioning()) == len(table.partition_keys)


def test_a_created_table_shows_what_was_asked_for():
    parts = from_hive(created(comment="all sales", properties={"format": "parquet", "owner_team": "x"}))
    assert [column["type"] for column in parts["columns"]] == ["long", "string", "decimal(10,2)", "date"]
    assert parts["comment"] == "all sales"
    assert parts["properties"]["format"] == "PARQUET"
    assert parts["properties"]["owner_team"] == "x"


def test_wide_tables_are_shown():
    types = ["bigint", "decimal(10,2)", "array<struct<a:int,b:map<string,double>>>"]
    columns = tuple(HiveColumn(f"c{n}", types[n % 3], "said") for n in range(2_000))
    table = replace(flights(), columns=columns)
    assert len(from_hive(table)["columns"]) == 2_002
    assert HiveTable.from_json(table.as_json()) == table
