"""Native create requests to new Hive tables."""

from __future__ import annotations

import pytest

from formats.hive.formats import STORAGE_FORMATS
from formats.hive.tables import HiveColumn, SortColumn
from metalake.errors import Invalid, Unsupported
from tests.cases import each
from tests.catalogs.native import call, field, literal
from tests.formats.hive.samples import create_body, created, not_created

BY_DAY = [{"strategy": "identity", "fieldName": ["day"]}]


def with_column(**more):
    return [*create_body()["columns"], {"name": "extra", "type": "string", **more}]


def test_a_plain_table_is_a_managed_one_of_text_files():
    table = created("anna", comment="all sales", name="Sales")
    assert table.name == "sales"
    assert table.columns == (
        HiveColumn("id", "bigint", "who"),
        HiveColumn("carrier", "string"),
        HiveColumn("price", "decimal(10,2)"),
        HiveColumn("day", "date"),
    )
    assert (table.owner, table.comment, table.table_type) == ("anna", "all sales", "MANAGED_TABLE")
    assert table.location is None
    assert table.parameters == table.serde_parameters == {}
    assert (table.input_format, table.output_format, table.serde_lib) == STORAGE_FORMATS["TEXTFILE"]
    assert (table.partition_keys, table.bucket_columns, table.sort_columns) == ((), (), ())


def test_properties_go_to_their_places():
    table = created(
        properties={
            "location": "s3://lake/sales",
            "format": "orc",
            "serde-lib": "com.example.SerDe",
            "serde-name": "mine",
            "serde.parameter.field.delim": "|",
            "table-type": "external_table",
            "owner_team": "x",
        }
    )
    assert table.location == "s3://lake/sales"
    assert table.input_format == STORAGE_FORMATS["ORC"].input_format
    assert table.output_format == STORAGE_FORMATS["ORC"].output_format
    assert (table.serde_lib, table.serde_name) == ("com.example.SerDe", "mine")
    assert table.serde_parameters == {"field.delim": "|"}
    assert table.table_type == "EXTERNAL_TABLE"
    assert table.parameters == {"owner_team": "x", "EXTERNAL": "TRUE"}


def test_named_classes_win_over_those_of_the_format():
    table = created(properties={"format": "ORC", "input-format": "a.In", "output-format": "a.Out"})
    assert (table.input_format, table.output_format) == ("a.In", "a.Out")
    assert table.serde_lib == STORAGE_FORMATS["ORC"].serde_lib


@each(
    "error, properties, complaint",
    [
        (Invalid, {"format": "xml"}, "properties.format: 'xml' is none of TEXTFILE"),
        (Unsupported, {"table-type": "VIRTUAL_VIEW"}, "properties.table-type: 'VIRTUAL_VIEW' is none of MANAGED_TABLE"),
        (Invalid, {"comment": "x"}, "properties.comment: comment is reserved; it is the table's comment"),
        (Invalid, {"EXTERNAL": "TRUE"}, "properties.EXTERNAL: EXTERNAL is reserved; it follows from table-type"),
        (Invalid, {"numFiles": "3"}, "properties.numFiles: numFiles is reserved"),
        (Invalid, {"serde.parameter.path": "s3://x"}, "properties.serde.parameter.path: serde.parameter.path is res"),
        (Invalid, {"spark.sql.sources.provider": "delta"}, "properties.spark.sql.sources.provider: "),
        (Unsupported, {"table_type": "ICEBERG"}, "properties: a table of format iceberg is no plain Hive table"),
        (Unsupported, {"table_type": "delta"}, "properties: a table of format delta is no plain Hive table"),
    ],
)
def test_properties_that_hive_cannot_keep_are_refused(error, properties, complaint):
    assert not_created(error, properties=properties).startswith(complaint)


def test_the_last_columns_become_partition_keys():
    partitioning = [{"strategy": "identity", "fieldName": [name]} for name in ("PRICE", "day")]
    table = created(partitioning=partitioning)
    assert [column.name for column in table.columns] == ["id", "carrier"]
    assert table.partition_keys == (HiveColumn("price", "decimal(10,2)"), HiveColumn("day", "date"))


def test_all_columns_may_be_partition_keys():
    names = ["id", "carrier", "price", "day"]
    table = created(partitioning=[{"strategy": "identity", "fieldName": [name]} for name in names])
    assert (table.columns, [key.name for key in table.partition_keys]) == ((), names)


@pytest.mark.parametrize(
    ("error", "partitioning", "complaint"),
    [
        (
            Unsupported,
            [{"strategy": "day", "fieldName": ["day"]}],
            "partitioning[0]: Hive partitions by the values of ",
        ),
        (
            Unsupported,
            [*BY_DAY, {"strategy": "bucket", "numBuckets": 4, "fieldNames": [["id"]]}],
            "partitioning[1]: Hive partitions by the values of columns; use identity, not bucket",
        ),
        (Unsupported, [{"strategy": "identity", "fieldName": ["day", "x"]}], "partitioning[0]: 'day.x' lies inside a "),
        (Invalid, [{"strategy": "identity", "fieldName": ["hour"]}], "partitioning[0]: no column 'hour'"),
        (Invalid, BY_DAY * 2, "partitioning[1]: 'day' is partitioned by already"),
        (
            Invalid,
            [{"strategy": "identity", "fieldName": ["id"]}],
            "partitioning: partition columns come last, in the ",
        ),
        (
            Invalid,
            [*BY_DAY, {"strategy": "identity", "fieldName": ["price"]}],
            "partitioning: partition columns come last, in the order of partitioning: day, price",
        ),
    ],
)
def test_other_partitioning_is_refused(error, partitioning, complaint):
    assert not_created(error, partitioning=partitioning).startswith(complaint)


def test_a_nested_column_is_no_partition_key():
    columns = with_column(type={"type": "list", "elementType": "long"})
    message = not_created(Unsupported, columns=columns, partitioning=[{"strategy": "identity", "fieldName": ["extra"]}])
    assert message == "partitioning[0]: 'extra' is nested; Hive partitions by primitive columns"


def test_distribution_and_sort_orders_are_of_columns():
    table = created(
        distribution={"strategy": "HASH", "number": 16, "funcArgs": [field("Carrier"), field("id")]},
        sortOrders=[{"sortTerm": field("ID"), "direction": "desc"}, {"sortTerm": field("price")}],
    )
    assert (table.bucket_columns, table.num_buckets) == (("carrier", "id"), 16)
    assert table.sort_columns == (SortColumn("id", False), SortColumn("price", True))
    assert created(distribution={"strategy": "none", "number": 0}).num_buckets == -1


@pytest.mark.parametrize(
    ("error", "distribution", "complaint"),
    [
        (Unsupported, {"strategy": "range", "number": 4}, "distribution.strategy: Hive buckets by hash, not range"),
        (Unsupported, {"strategy": "even", "number": 4}, "distribution.strategy: Hive buckets by hash, not even"),
        (Invalid, {"number": 0, "funcArgs": [field("id")]}, "distribution.number: Hive needs the number of buckets"),
        (Invalid, {"number": 4}, "distribution.funcArgs: hash needs a column"),
        (
            Invalid,
            {"number": 4, "funcArgs": [field("id"), field("ID")]},
            "distribution.funcArgs: name each column once",
        ),
        (Invalid, {"number": 4, "funcArgs": [field("x")]}, "distribution.funcArgs[0]: no column 'x'"),
        (Unsupported, {"number": 4, "funcArgs": [literal("1")]}, "distribution.funcArgs[0]: Hive takes a column here"),
    ],
)
def test_other_distributions_are_refused(error, distribution, complaint):
    assert not_created(error, distribution=distribution).startswith(complaint)


@pytest.mark.parametrize(
    ("error", "orders", "complaint"),
    [
        (Unsupported, [{"sortTerm": call("year", field("day"))}], "sortOrders[0].sortTerm: Hive takes a column here"),
        (Invalid, [{"sortTerm": field("x")}], "sortOrders[0].sortTerm: no column 'x'"),
        (Invalid, [{"sortTerm": field("id")}, {"sortTerm": field("id")}], "sortOrders[1]: 'id' is sorted by already"),
        (
            Unsupported,
            [{"sortTerm": field("id"), "nullOrdering": "nulls_last"}],
            "sortOrders[0].nullOrdering: Hive puts nulls first ascending",
        ),
    ],
)
def test_other_sort_orders_are_refused(error, orders, complaint):
    assert not_created(error, sortOrders=orders).startswith(complaint)


def test_a_table_is_neither_bucketed_nor_sorted_by_a_partition_key():
    distribution = {"number": 4, "funcArgs": [field("day")]}
    message = not_created(Invalid, partitioning=BY_DAY, distribution=distribution)
    assert message == "distribution.funcArgs[0]: no column 'day' beside the partition columns"
    message = not_created(Invalid, partitioning=BY_DAY, sortOrders=[{"sortTerm": field("day")}])
    assert message == "sortOrders[0].sortTerm: no column 'day' beside the partition columns"


@pytest.mark.parametrize(
    ("error", "more", "complaint"),
    [
        (Unsupported, {"nullable": False}, "columns[4].nullable: 'extra' may hold nulls in Hive"),
        (Unsupported, {"autoIncrement": True}, "columns[4].autoIncrement: Hive does not count rows by itself"),
        (
            Unsupported,
            {"defaultValue": literal("x", "string")},
            "columns[4].defaultValue: Hive columns have no default",
        ),
        (Unsupported, {"type": "uuid"}, "columns[4].type: Hive has no type uuid; use string"),
        (Invalid, {"name": "Carrier"}, "columns[4].name: 'Carrier' is there already"),
        (Invalid, {"name": "a.b"}, "columns[4].name: Hive cannot keep '.' in the name of a column"),
        (Invalid, {"name": "a,b"}, "columns[4].name: Hive cannot keep ',' in the name of a column"),
    ],
)
def test_columns_that_hive_cannot_have_are_refused(error, more, complaint):
    assert not_created(error, columns=with_column(**more)).startswith(complaint)


def test_a_null_default_is_what_every_column_has():
    null = {"type": "literal", "dataType": "null", "value": "NULL"}
    assert created(columns=with_column(defaultValue=null)).columns[-1] == HiveColumn("extra", "string")


def test_tables_have_columns_and_no_indexes():
    assert not_created(Invalid, columns=[]) == "columns: a table has at least one column"
    index = {"indexType": "PRIMARY_KEY", "fieldNames": [["id"]]}
    assert not_created(Unsupported, indexes=[index]) == "indexes: Hive has no indexes"


def test_wide_tables_are_made():
    columns = [{"name": f"c{n}", "type": "long"} for n in range(2_000)]
    table = created(columns=columns, partitioning=[{"strategy": "identity", "fieldName": ["c1999"]}])
    assert len(table.columns) == 1_999
