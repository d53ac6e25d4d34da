"""A new table's metadata: numbered as pyiceberg numbers it, and refused when it makes no sense."""

import json

import pytest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.metadata import new_table_metadata as pyiceberg_new_table_metadata
from pyiceberg.table.sorting import SortOrder

from formats.iceberg.builder import new_table_metadata
from metalake.errors import Invalid
from tests.cases import each
from tests.formats.iceberg.table_samples import (
    EVENTS,
    NOW,
    UUID,
    Json,
    column,
    list_of,
    map_of,
    partition_field,
    schema,
    sort_field,
    struct,
    table,
)

NESTED_SCHEMAS = [
    EVENTS,
    schema(),
    schema(column(40, "b", "string"), column(7, "a", "int", required=True), **{"identifier-field-ids": [7]}),
    schema(
        column(10, "point", struct(column(11, "x", "double"), column(12, "y", "double")), required=True),
        column(20, "tags", list_of(21, "string")),
        column(1, "id", required=True),
    ),
    schema(
        column(1, "m", map_of(2, struct(column(4, "k", "int", required=True)), 3, list_of(5, "decimal(9, 2)"))),
        column(6, "deep", list_of(7, struct(column(8, "in", list_of(9, map_of(30, "string", 31, "fixed[4]")))))),
        column(50, "last", "uuid"),
    ),
    schema(
        column(5, "owner", struct(column(6, "id", required=True), column(9, "n", "string")), required=True),
        **{"identifier-field-ids": [6]},
    ),
]


@each("version", [1, 2, 3])
@each("wanted", NESTED_SCHEMAS)
def test_ids_are_those_pyiceberg_assigns(wanted, version):
    ids = [each["id"] for each in wanted["fields"] if isinstance(each["type"], str)]
    spec: Json = {"spec-id": 9, "fields": [partition_field(number, "identity", f"p{number}") for number in ids]}
    order = {"order-id": 5, "fields": [sort_field(number) for number in ids]}

    ours = table(version, schema=wanted, partition_spec=spec, sort_order=order)

    numbered = [dict(field, **{"field-id": 2000 + at}) for at, field in enumerate(spec["fields"])]
    theirs = pyiceberg_new_table_metadata(
        Schema.model_validate(wanted),
        PartitionSpec.model_validate({**spec, "fields": numbered}),
        SortOrder.model_validate(order) if ids else SortOrder(order_id=0),
        "s3://lake/events",
        {"format-version": str(version)},
    )
    parsed = TableMetadataUtil.parse_raw(json.dumps(ours))
    assert parsed.schema().model_dump_json() == theirs.schema().model_dump_json()
    assert parsed.schema().identifier_field_ids == theirs.schema().identifier_field_ids
    assert parsed.partition_specs == theirs.partition_specs
    assert parsed.sort_orders == theirs.sort_orders
    for same in (
        "last_column_id",
        "last_partition_id",
        "default_spec_id",
        "default_sort_order_id",
        "current_schema_id",
    ):
        assert getattr(parsed, same) == getattr(theirs, same), same


def test_level_is_numbered_before_what_it_holds():
    made = table(schema=NESTED_SCHEMAS[3], partition_spec=None)
    point, tags, number = made["schemas"][0]["fields"]
    assert [point["id"], tags["id"], number["id"]] == [1, 2, 3]
    assert [each["id"] for each in point["type"]["fields"]] == [4, 5]
    assert tags["type"]["element-id"] == 6
    assert made["last-column-id"] == 6


def test_sources_follow_their_columns():
    made = table(
        schema=schema(column(40, "b", "string"), column(7, "a", "int")),
        partition_spec={"fields": [partition_field(7, "bucket[16]", "a_bucket")]},
        sort_order={"fields": [sort_field(40)]},
    )
    assert made["partition-specs"] == [
        {"spec-id": 0, "fields": [partition_field(2, "bucket[16]", "a_bucket", **{"field-id": 1000})]}
    ]
    assert made["sort-orders"] == [{"order-id": 1, "fields": [sort_field(1)]}]
    assert made["default-sort-order-id"] == 1


def test_table_without_spec_and_order():
    made = table(partition_spec=None)
    assert made["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert made["last-partition-id"] == 999
    assert made["sort-orders"] == [{"order-id": 0, "fields": []}]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_format_version_is_chosen_by_a_property_that_is_not_stored(version):
    made = table(version)
    assert made["format-version"] == version
    assert "format-version" not in made["properties"]
    assert ("last-sequence-number" in made) == (version >= 2)
    assert made.get("next-row-id") == (0 if version == 3 else None)
    assert made["current-snapshot-id"] == (None if version == 3 else -1)


def test_version_1_says_schema_and_spec_twice():
    made = table(1)
    assert made["schema"] == made["schemas"][0]
    assert made["partition-spec"] == made["partition-specs"][0]["fields"]


def test_version_2_by_default():
    made = new_table_metadata(
        table_uuid=UUID,
        location="s3://lake/t/",
        schema=EVENTS,
        partition_spec=None,
        sort_order=None,
        properties={},
        now_ms=NOW,
    )
    assert (made["format-version"], made["location"], made["last-updated-ms"]) == (2, "s3://lake/t", NOW)
    assert "schema" not in made
    assert "partition-spec" not in made


def test_reserved_properties_are_not_stored():
    made = table(properties={"uuid": "x", "snapshot-count": "3", "current-schema": "{}", "owner": "ada"})
    assert made["properties"] == {"owner": "ada", "write.parquet.compression-codec": "zstd"}


def test_own_compression_is_kept():
    made = table(properties={"write.parquet.compression-codec": "snappy"})
    assert made["properties"]["write.parquet.compression-codec"] == "snappy"


def test_unknown_fields_of_the_request_are_kept_and_it_is_not_changed():
    wanted = schema(column(7, "id", note="n"), colour="red")
    made = table(schema=wanted, partition_spec={"fields": [], "hint": 1})
    assert made["schemas"][0]["colour"] == "red"
    assert made["schemas"][0]["fields"][0] == column(1, "id", note="n")
    assert made["partition-specs"][0]["hint"] == 1
    assert wanted["fields"][0]["id"] == 7


@each(
    "wrong, said",
    [
        ({"properties": {"format-version": "4"}}, "Unsupported format version: v4"),
        ({"properties": {"format-version": "two"}}, "format-version must be a whole number"),
        ({"properties": {"owner": 1}}, "owner"),
        ({"properties": None}, "properties must be an object"),
        ({"table_uuid": "no"}, "uuid must be a UUID"),
        ({"location": "///"}, "location must not be empty"),
        ({"schema": None}, "schema must be an object"),
        ({"partition_spec": []}, "partition-spec must be an object"),
        (
            {"partition_spec": {"fields": [partition_field(9, "identity", "p")]}},
            "Cannot find source column for partition",
        ),
        ({"sort_order": {"fields": [sort_field(9)]}}, "Cannot find source column for sort"),
        ({"sort_order": {"fields": None}}, "fields of the sort order is required"),
    ],
)
def test_wrong_request_is_refused(wrong, said):
    wanted = {
        "table_uuid": UUID,
        "location": "s3://lake/t",
        "schema": EVENTS,
        "partition_spec": None,
        "sort_order": None,
        "properties": {},
        "now_ms": NOW,
    }
    with pytest.raises(Invalid) as refusal:
        new_table_metadata(**{**wanted, **wrong})
    assert said in refusal.value.message
