"""Tables of Spark's own: shown by Spark's schema, and changed as Spark would change them."""

from __future__ import annotations

import json

import pytest

from formats.hive.spark import PART_LENGTH, spark_columns
from formats.hive.tables import HiveColumn
from formats.hive.translate import from_hive
from metalake.errors import Unsupported
from tests.cases import each
from tests.formats.hive.samples import SPARK_FIELDS, airports, changed, refused, spark_sales
from tests.formats.iceberg.altering import add, comment, delete, move, put, rename, retype

SCHEMA = "spark.sql.sources.schema"


def schema_of(table):
    """The schema as Spark reads it back."""
    parameters = table.parameters
    text = parameters.get(SCHEMA)
    if text is None:
        text = "".join(parameters[f"{SCHEMA}.part.{n}"] for n in range(int(parameters[f"{SCHEMA}.numParts"])))
    assert not (SCHEMA in parameters and f"{SCHEMA}.numParts" in parameters)
    schema = json.loads(text)
    assert schema["type"] == "struct"
    return schema["fields"]


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_spark_s_columns_are_shown_and_not_the_placeholder(parts):
    shown = from_hive(spark_sales(parts))
    struct = {
        "type": "struct",
        "fields": [
            {"name": "city", "type": "string", "nullable": True, "comment": "it's"},
            {"name": "odd`name", "type": "short", "nullable": True},
        ],
    }
    arrays = {"type": "list", "elementType": "integer", "containsNull": True}
    assert [(column["name"], column["type"]) for column in shown["columns"]] == [
        ("Id", "long"),
        ("code", "varchar(3)"),
        ("price", "decimal(10,2)"),
        ("place", struct),
        ("tags", {"type": "map", "keyType": "string", "valueType": arrays, "valueContainsNull": True}),
        ("seen", {"type": "external", "catalogString": "timestamp_ntz"}),
        ("day", "date"),
    ]
    assert shown["columns"][0]["comment"] == "who"
    assert shown["partitioning"] == [{"strategy": "identity", "fieldName": ["day"]}]
    assert shown["properties"]["format"] == "JSON"


@each(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"fields": [1]}',
        '{"fields": [{"name": "a"}]}',
        '{"fields": [{"name": 1, "type": "long"}]}',
        '{"fields": [{"name": "a", "type": {"type": []}}]}',
        '{"fields": [{"name": "a", "type": "long", "metadata": null}]}',
        '{"fields": [{"name": "a", "type": "long", "metadata": {"comment": 1}}]}',
        "[" * 100_000,
        '{"fields":[{"name":"a","type":' + '{"type":"array","elementType":' * 300 + '"long"' + "}" * 301 + "]}",
    ],
)
def test_a_schema_that_is_not_spark_s_is_passed_over(text):
    table = spark_sales()
    table.parameters[SCHEMA] = text
    assert [column["name"] for column in from_hive(table)["columns"]] == ["col", "day"]
    assert refused(Unsupported, table, add("x")).startswith(
        "updates[0]: the columns of this table cannot be told apart"
    )


def test_missing_parts_are_passed_over():
    table = spark_sales(3)
    del table.parameters[f"{SCHEMA}.part.1"]
    assert spark_columns(table) == ()


def test_the_columns_of_hive_s_tables_are_hive_s():
    told = {SCHEMA: json.dumps({"type": "struct", "fields": SPARK_FIELDS})}
    assert spark_columns(airports(parameters=told)) == ()
    assert spark_columns(airports(parameters={**told, "spark.sql.sources.provider": "hive"})) == ()


@pytest.mark.parametrize("parts", [0, 3])
def test_a_new_column_and_comments_reach_spark_and_keep_the_rest(parts):
    after = changed(
        spark_sales(parts),
        add("Gate", type="char(2)", comment="where"),
        add(
            "stops", type={"type": "list", "elementType": {"type": "struct", "fields": [{"name": "n", "type": "byte"}]}}
        ),
        add("prices", type={"type": "map", "keyType": "string", "valueType": "decimal(5,1)"}),
        comment("ID", to=None),
        comment("price", to="net"),
        comment("day", to="of sale"),
    )
    *old, gate, stops, prices, day = schema_of(after)
    assert old[0] == {"name": "Id", "type": "long", "nullable": True, "metadata": {}}
    assert old[1] == SPARK_FIELDS[1]
    assert old[2] == {**SPARK_FIELDS[2], "metadata": {"CURRENT_DEFAULT": "1.0", "comment": "net"}}
    assert old[3:] == SPARK_FIELDS[3:-1]
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "char(2)", "comment": "where"}
    assert gate == {"name": "gate", "type": "string", "nullable": True, "metadata": declared}
    inner = {"type": "struct", "fields": [{"name": "n", "type": "byte", "nullable": True, "metadata": {}}]}
    assert stops["type"] == {"type": "array", "elementType": inner, "containsNull": True}
    assert prices["type"] == {
        "type": "map",
        "keyType": "string",
        "valueType": "decimal(5,1)",
        "valueContainsNull": True,
    }
    assert day == {**SPARK_FIELDS[-1], "metadata": {"comment": "of sale"}}
    assert after.columns == spark_sales().columns
    assert after.partition_keys == (HiveColumn("day", "date", "of sale"),)
    assert (f"{SCHEMA}.numParts" in after.parameters) is bool(parts)


def test_hive_s_copy_of_the_columns_follows():
    fields = [SPARK_FIELDS[0], SPARK_FIELDS[-1]]
    copied = spark_sales(fields=fields, columns=(HiveColumn("id", "bigint", "who", {"k": "v"}),))
    after = changed(copied, add("gate", type="string"), comment("id", to="x"))
    assert after.columns == (HiveColumn("id", "bigint", "x", {"k": "v"}), HiveColumn("gate", "string"))
    assert [field["name"] for field in schema_of(after)] == ["Id", "gate", "day"]


def test_a_long_schema_is_written_in_parts():
    table = spark_sales()
    after = changed(table, *(add(f"column_{n}", comment="é" * 50) for n in range(2_000)))
    assert SCHEMA not in after.parameters
    assert len(schema_of(after)) == 2_007
    assert all(len(value) <= PART_LENGTH for value in after.parameters.values())
    back = changed(after, put("k", "v"))
    assert schema_of(back) == schema_of(after)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (delete("code"), "updates[0]"),
        (rename("code", to="x"), "updates[0]"),
        (retype("code", to="string"), "updates[0]"),
        (move("code", to="first"), "updates[0]"),
        (add("x", position="first"), "updates[0].position"),
    ],
)
def test_what_spark_does_not_do_is_refused(change, place):
    assert refused(Unsupported, spark_sales(), change).startswith(f"{place}: this table is kept by Spark, which adds ")


@pytest.mark.parametrize("data_type", ["timestamp_tz", "interval_day", {"type": "union", "types": ["long"]}])
def test_a_type_that_spark_lacks_is_refused(data_type):
    assert refused(Unsupported, spark_sales(), add("x", type=data_type)).startswith(
        "updates[0].type: a table of Spark's "
    )


def test_a_new_location_is_where_spark_looks_too():
    after = changed(spark_sales(), put("location", "file:/moved"))
    assert (after.location, after.serde_parameters["path"]) == ("file:/moved", "file:/moved")
