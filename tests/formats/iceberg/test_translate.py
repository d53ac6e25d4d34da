"""Native tables to Iceberg and back: types, defaults, properties, and how the client sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gravitino.client.relational_table import RelationalTable
from gravitino.dto.responses.table_response import TableResponse
from gravitino.namespace import Namespace
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import SortOrder

from formats.iceberg.translate import from_iceberg, to_iceberg
from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid, Unsupported
from metalake.wire import read
from tests.cases import each
from tests.catalogs.native import (
    ICEBERG_2_PRIMITIVES,
    ICEBERG_3_PRIMITIVES,
    NOT_IN_ICEBERG,
    PARTITIONING,
    SORT_TERMS,
    call,
    columns,
    columns_of,
    field,
    literal,
    table,
)
from tests.formats.iceberg.metadata import as_wire, metadata_of, refused, translated
from tests.profiles import weighing

VERSION_3 = {"format-version": "3"}
ICEBERG_SPELLING = {
    "boolean": "boolean", "integer": "int", "long": "long", "float": "float", "double": "double", "date": "date",
    "time": "time", "time(6)": "time", "timestamp": "timestamp", "timestamp(6)": "timestamp",
    "timestamp_tz": "timestamptz", "timestamp_tz(6)": "timestamptz", "string": "string", "binary": "binary",
    "uuid": "uuid", "decimal(10,2)": "decimal(10, 2)", "fixed(16)": "fixed[16]", "timestamp(9)": "timestamp_ns",
    "timestamp_tz(9)": "timestamptz_ns", "variant": "variant", "null": "unknown", "geometry": "geometry",
    "geometry(srid:3857)": "geometry(srid:3857)", "geography(EPSG:4326,karney)": "geography(EPSG:4326, karney)",
}  # fmt: skip


def one_column(data_type: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "type": data_type, **more}]


@each("native, iceberg", ICEBERG_SPELLING.items())
def test_a_primitive_has_one_spelling_in_iceberg(native, iceberg):
    schema, *_ = translated(columns=one_column(native), properties=VERSION_3)
    assert schema["fields"] == [{"id": 1, "name": "c", "required": False, "type": iceberg}]


@each("native", NOT_IN_ICEBERG)
def test_a_type_that_iceberg_lacks_is_refused(native):
    assert refused(Unsupported, columns=one_column(native)).startswith(f"columns[0].type: Iceberg has no type {native}")


def test_a_refused_type_comes_with_what_to_use_instead():
    assert refused(Unsupported, columns=one_column("short")).endswith("; use integer")
    assert refused(Unsupported, columns=one_column("varchar(5)")).endswith("; use string")
    assert refused(Unsupported, columns=one_column("long unsigned")).endswith("; use decimal(20,0)")
    assert refused(Unsupported, columns=one_column("time(3)")).endswith("; its precision is 6")


@each("native", ICEBERG_3_PRIMITIVES)
def test_newer_types_need_format_version_3(native):
    message = refused(Unsupported, columns=one_column(native))
    assert message == f"columns[0].type: {native} needs format version 3, and the table has 2"


@pytest.mark.parametrize(
    ("data_type", "complaint"),
    [
        ({"type": "union", "types": ["long", "string"]}, "columns[0].type: Iceberg has no union type"),
        ({"type": "external", "catalogString": "XML"}, "columns[0].type: Iceberg has no type 'XML'"),
        ("hllsketch", "columns[0].type: unknown type 'hllsketch'"),
        (
            {"type": "list", "elementType": {"type": "map", "keyType": "string", "valueType": "byte"}},
            "columns[0].type.elementType.valueType: Iceberg has no type byte",
        ),
        (
            {"type": "struct", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "char(1)"}]},
            "columns[0].type.fields[1].type: Iceberg has no type char(1)",
        ),
    ],
)
def test_a_nested_refusal_names_the_place(data_type, complaint):
    assert refused(Unsupported, columns=one_column(data_type)).startswith(complaint)


@weighing(2)
@given(columns_of([*ICEBERG_2_PRIMITIVES, *ICEBERG_3_PRIMITIVES]))
def test_columns_come_back_from_iceberg_as_they_went(native):
    metadata = metadata_of(columns=native, properties=VERSION_3)
    assert as_wire(from_iceberg(metadata)["columns"]) == as_wire(native)
    assert metadata == json.loads(json.dumps(metadata))


@given(columns_of([*ICEBERG_2_PRIMITIVES, "timestamp(9)", "timestamp_tz(9)", "null"]))
def test_pyiceberg_reads_the_schema_and_gives_every_field_an_id_of_its_own(native):
    schema, *_ = translated(columns=native, properties=VERSION_3)
    theirs = Schema.model_validate(schema)
    assert len(theirs.field_ids) == len(set(theirs.field_ids))
    assert theirs.column_names == list(dict.fromkeys(theirs.column_names))
    assert Schema.model_validate(theirs.model_dump()) == theirs


def test_indexes_and_counting_columns_are_refused():
    key = {"indexType": "PRIMARY_KEY", "fieldNames": [["id"]]}
    assert refused(Unsupported, indexes=[key]).startswith("indexes: Iceberg has no indexes")
    counting = one_column("long", autoIncrement=True)
    assert refused(Unsupported, columns=counting).startswith("columns[0].autoIncrement: ")


def test_a_table_has_columns_with_names_of_their_own():
    assert refused(Invalid, columns=[]) == "columns: a table has at least one column"
    assert refused(Invalid, columns=one_column("long") * 2) == "Two columns are called 'c'"
    inner = {"name": "b", "type": "long"}
    dotted = [{"name": "a", "type": {"type": "struct", "fields": [inner]}}, {"name": "a.b", "type": "long"}]
    assert refused(Invalid, columns=dotted) == "Two columns are called 'a.b'"
    assert translated(columns=[{"name": "c", "type": "long"}, {"name": "C", "type": "long"}])


@each(
    "data_type, value, single",
    [
        ("boolean", "TRUE", True),
        ("integer", "-7", -7),
        ("long", "9223372036854775807", 9223372036854775807),
        ("float", "1.5", 1.5),
        ("double", "1e300", 1e300),
        ("decimal(5,2)", "1.5", "1.50"),
        ("decimal(38,0)", "9" * 38, "9" * 38),
        ("date", "2024-02-29", "2024-02-29"),
        ("time(6)", "23:59:01", "23:59:01.000000"),
        ("timestamp(6)", "2024-02-29T01:02:03.5", "2024-02-29T01:02:03.500000"),
        ("timestamp_tz(6)", "2024-02-29T01:02:03+01:00", "2024-02-29T00:02:03.000000+00:00"),
        ("string", "", ""),
        ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ],
)
def test_a_default_is_kept_from_format_version_3_on(data_type, value, single):
    wanted = one_column(data_type, defaultValue=literal(value, data_type))
    schema, *_ = translated(columns=wanted, properties=VERSION_3)
    assert schema["fields"][0]["write-default"] == single
    assert "initial-default" not in schema["fields"][0]
    told = from_iceberg(metadata_of(columns=wanted, properties=VERSION_3))["columns"][0]["defaultValue"]
    again, *_ = translated(columns=one_column(data_type, defaultValue=told), properties=VERSION_3)
    assert again == schema
    assert "need Iceberg format version 3" in refused(Unsupported, columns=wanted)


@each(
    "error, data_type, default",
    [
        (Invalid, "integer", literal("2147483648", "integer")),
        (Invalid, "integer", literal("1.0", "integer")),
        (Invalid, "integer", literal("1", "string")),
        (Invalid, "boolean", literal("1", "boolean")),
        (Invalid, "double", literal("NaN", "double")),
        (Invalid, "decimal(5,2)", literal("1.555", "decimal(5,2)")),
        (Invalid, "decimal(5,2)", literal("1000", "decimal(5,2)")),
        (Invalid, "decimal(5,2)", literal("Infinity", "decimal(5,2)")),
        (Invalid, "date", literal("2023-02-29", "date")),
        (Invalid, "timestamp(6)", literal("2024-01-01T00:00:00Z", "timestamp(6)")),
        (Invalid, "timestamp_tz(6)", literal("2024-01-01T00:00:00", "timestamp_tz(6)")),
        (Invalid, "timestamp_tz(6)", literal("0001-01-01T00:00:00+10:00", "timestamp_tz(6)")),
        (Invalid, "uuid", literal("x", "uuid")),
        (Unsupported, "timestamp_tz(6)", call("now")),
        (Unsupported, "variant", literal("1", "variant")),
        (Unsupported, {"type": "list", "elementType": "long"}, literal("[]", "string")),
    ],
)
def test_a_default_of_the_wrong_type_is_refused(error, data_type, default):
    wanted = one_column(data_type, defaultValue=default)
    assert refused(error, columns=wanted, properties=VERSION_3).startswith("columns[0].defaultValue: ")


def test_a_null_default_is_no_default_in_any_version():
    schema, *_ = translated(columns=one_column("long", defaultValue=literal("NULL", "null")))
    assert "write-default" not in schema["fields"][0]


def test_the_comment_is_a_property_in_iceberg_and_none_in_the_native_form():
    metadata = metadata_of(comment="all of them", properties={"owner": "me"})
    assert metadata["properties"]["comment"] == "all of them"
    told = from_iceberg(metadata)
    assert told["comment"] == "all of them"
    assert "comment" not in told["properties"]
    assert told["properties"]["owner"] == "me"
    assert from_iceberg(metadata_of())["comment"] is None


def test_the_native_form_tells_what_iceberg_keeps_elsewhere():
    order = [{"sortTerm": field("id"), "direction": "desc"}, {"sortTerm": call("bucket", literal("4"), field("name"))}]
    order += [{"sortTerm": call("truncate", literal("3"), field("name"))}, {"sortTerm": call("day", field("at"))}]
    metadata = metadata_of(sortOrders=order, properties={**VERSION_3, "location": "s3://b/t", "provider": "orc"})
    metadata["current-snapshot-id"] = 55
    metadata["schemas"][0]["identifier-field-ids"] = [1]
    properties = from_iceberg(metadata)["properties"]
    assert properties == {
        "current-snapshot-id": "55",
        "format": "iceberg/orc",
        "format-version": "3",
        "identifier-fields": "[id]",
        "location": "s3://b/t",
        "provider": "iceberg",
        "sort-order": "id DESC NULLS LAST, bucket(4, name) ASC NULLS FIRST, truncate(name, 3) ASC NULLS FIRST, "
        "days(at) ASC NULLS FIRST",
        "write.distribution-mode": "range",
        "write.format.default": "orc",
    }
    assert from_iceberg(metadata_of())["properties"]["current-snapshot-id"] == "none"


@each("name", ["comment", "creator", "current-snapshot-id", "cherry-pick-snapshot-id", "sort-order",
                                  "identifier-fields", "write.distribution-mode", "uuid"])  # fmt: skip
def test_reserved_properties_are_not_set(name):
    assert refused(Invalid, properties={name: "x"}).startswith(f"properties.{name}: is reserved; ")


@pytest.mark.parametrize(
    ("properties", "file_format"),
    [
        ({"provider": "iceberg"}, None),
        ({"provider": "Parquet"}, "parquet"),
        ({"format": "iceberg/orc", "provider": "iceberg"}, "orc"),
        ({"format": "avro", "write.format.default": "avro"}, "avro"),
    ],
)
def test_the_provider_and_format_say_the_file_format(properties, file_format):
    made = translated(properties=properties)[3]
    assert made.get("write.format.default") == file_format
    assert not {"provider", "format"} & set(made)


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"provider": "delta"}, "properties.provider: 'delta' is none of iceberg, parquet, avro, orc"),
        ({"provider": "orc", "format": "avro"}, "properties.format: 'avro' contradicts orc"),
        ({"format-version": "4"}, "properties.format-version: '4' is none of 1, 2, 3"),
        ({"format-version": "two"}, "properties.format-version: 'two' is none of 1, 2, 3"),
    ],
)
def test_properties_that_cannot_hold_are_refused(properties, complaint):
    assert refused(Invalid, properties=properties) == complaint


def test_types_of_newer_engines_become_external():
    metadata = metadata_of(columns=one_column("long"))
    metadata["schemas"][0]["fields"][0]["type"] = "decfloat(34)"
    assert from_iceberg(metadata)["columns"][0]["type"] == {"type": "external", "catalogString": "decfloat(34)"}


def test_old_metadata_with_one_schema_and_spec_is_read():
    metadata = metadata_of(partitioning=[{"strategy": "day", "fieldName": ["at"]}])
    old = {
        "format-version": 1,
        "location": metadata["location"],
        "last-column-id": metadata["last-column-id"],
        "schema": metadata["schemas"][0],
        "partition-spec": metadata["partition-specs"][0]["fields"],
    }
    told = from_iceberg(old)
    assert as_wire(told["columns"]) == as_wire(columns())
    assert told["partitioning"] == [{"strategy": "day", "fieldName": ["at"]}]
    assert (told["sortOrders"], told["properties"]["format-version"]) == ([], "1")


def test_metadata_nested_too_deep_is_refused():
    data_type: Any = "long"
    for _ in range(50_000):
        data_type = {"type": "list", "element-id": 1, "element": data_type, "element-required": True}
    metadata = metadata_of(columns=one_column("long"))
    metadata["schemas"][0]["fields"][0]["type"] = data_type
    with pytest.raises(Invalid, match="nests deeper than"):
        from_iceberg(metadata)


@weighing(0.6)
@given(columns_of(ICEBERG_2_PRIMITIVES), st.booleans())
def test_the_client_reads_what_we_tell(native, commented):
    parts: dict[str, Any] = {"comment": "c"} if commented else {}
    told = from_iceberg(metadata_of(columns=native, **parts))
    seen = seen_by_client(told)
    assert [column.name() for column in seen.columns()] == [column["name"] for column in native]
    assert [column.nullable() for column in seen.columns()] == [column["nullable"] for column in native]
    assert seen.comment() == parts.get("comment")


def test_the_client_reads_partitions_orders_and_defaults():
    partitioning = [native for native, transform, _ in PARTITIONING if transform not in ("year", "month", "day")]
    orders = [{"sortTerm": term} for term, _ in SORT_TERMS]
    wanted = [*columns(), {"name": "d", "type": "integer", "defaultValue": literal("4")}]
    told = from_iceberg(metadata_of(columns=wanted, partitioning=partitioning, sortOrders=orders, properties=VERSION_3))
    seen = seen_by_client(told)
    assert [item.name() for item in seen.partitioning()] == [native["strategy"] for native in partitioning]
    assert len(seen.sort_order()) == len(orders)
    assert seen.distribution().strategy().value == "RANGE"
    assert seen.columns()[-1].default_value().value() == "4"
    assert seen.properties()["provider"] == "iceberg"


def seen_by_client(told: dict[str, Any]) -> RelationalTable:
    """The table as the reference client shows it to its user."""
    body = {"name": "orders", "audit": {"creator": "me", "createTime": "2024-01-01T00:00:00Z"}, **told}
    response = TableResponse.from_json(json.dumps({"code": 0, "table": body}), infer_missing=True)
    response.validate()
    return RelationalTable(Namespace.of("metalake", "catalog", "schema"), response.table(), None)


def test_pyiceberg_makes_a_table_of_the_translation():
    partitioning = [native for native, transform, _ in PARTITIONING if transform not in ("year", "month", "day")]
    schema, spec, order, properties = to_iceberg(
        read(
            CreateTableRequest,
            table(partitioning=partitioning, sortOrders=[{"sortTerm": term} for term, _ in SORT_TERMS]),
        )
    )
    made = new_table_metadata(
        Schema.model_validate(schema), PartitionSpec.model_validate(spec), SortOrder.model_validate(order), "file:///t",
        dict(properties),
    )  # fmt: skip
    told = from_iceberg(json.loads(made.model_dump_json(by_alias=True)))
    assert as_wire(told["columns"]) == as_wire(columns())
    assert told["partitioning"] == partitioning
    assert [order["sortTerm"] for order in told["sortOrders"]] == [term for term, _ in SORT_TERMS]
