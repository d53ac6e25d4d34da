"""Partitioning, sort orders and distribution to Iceberg and back."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortOrder

from formats.iceberg.translate import from_iceberg
from metalake.errors import Invalid, Unsupported
from tests.cases import each
from tests.catalogs.native import (
    PARTITIONING,
    SORT_TERMS,
    call,
    columns,
    field,
    literal,
)
from tests.formats.iceberg.metadata import metadata_of, refused, translated


@each("native, transform, name", PARTITIONING)
def test_each_partition_strategy_goes_both_ways(native, transform, name):
    schema, spec, _, _ = translated(partitioning=[native])
    theirs = PartitionSpec.model_validate(spec)
    theirs_schema = Schema.model_validate(schema)
    source = theirs_schema.find_column_name(theirs.fields[0].source_id)
    assert source is not None
    assert [source] == [".".join(native.get("fieldName") or native["fieldNames"][0])]
    assert (str(theirs.fields[0].transform), theirs.fields[0].name) == (transform, name)
    assert theirs.fields[0].transform.can_transform(theirs_schema.find_type(source))
    assert from_iceberg(metadata_of(partitioning=[native]))["partitioning"] == [native]


def test_several_partition_fields_keep_their_order():
    natives = [native for native, transform, _ in PARTITIONING if transform not in ("year", "month", "day")]
    _, spec, _, _ = translated(partitioning=natives)
    assert [item["field-id"] for item in spec["fields"]] == list(range(1000, 1000 + len(natives)))
    assert from_iceberg(metadata_of(partitioning=natives))["partitioning"] == natives


@pytest.mark.parametrize("name", ["identity", "year", "bucket", "TRUNCATE"])
def test_a_known_function_partitions_as_its_strategy(name):
    width = [literal("8")] if name.lower() in ("bucket", "truncate") else []
    source = "at" if name == "year" else "id"
    _, spec, _, _ = translated(
        partitioning=[{"strategy": "function", "funcName": name, "funcArgs": [*width, field(source)]}]
    )
    assert spec["fields"][0]["transform"] == name.lower() + ("[8]" if width else "")


@each(
    "error, native, complaint",
    [
        (Unsupported, {"strategy": "list", "fieldNames": [["id"]]}, "Iceberg has no list partitioning"),
        (Unsupported, {"strategy": "range", "fieldName": ["id"]}, "Iceberg has no range partitioning"),
        (Unsupported, {"strategy": "bucket", "numBuckets": 4, "fieldNames": [["id"], ["name"]]}, "takes one column"),
        (Unsupported, {"strategy": "function", "funcName": "zorder", "funcArgs": []}, "no transform 'zorder'"),
        (Invalid, {"strategy": "function", "funcName": "bucket", "funcArgs": [field("id")]},
         "bucket takes a positive integer literal and a column"),
        (Invalid, {"strategy": "function", "funcName": "bucket", "funcArgs": [literal("0"), field("id")]},
         "bucket takes a positive integer literal and a column"),
        (Invalid, {"strategy": "function", "funcName": "day", "funcArgs": [literal("1"), field("day")]},
         "day takes one column"),
        (Invalid, {"strategy": "identity", "fieldName": ["nothing"]}, "no column 'nothing'"),
        (Invalid, {"strategy": "identity", "fieldName": ["ID"]}, "no column 'ID'"),
        (Invalid, {"strategy": "identity", "fieldName": ["place"]}, "identity cannot be applied to 'place'"),
        (Invalid, {"strategy": "identity", "fieldName": ["points", "x"]}, "'points.x' lies in a list or map"),
        (Invalid, {"strategy": "identity", "fieldName": ["tags", "value"]}, "'tags.value' lies in a list or map"),
        (Invalid, {"strategy": "hour", "fieldName": ["day"]}, "hour cannot be applied to 'day', which is date"),
        (Invalid, {"strategy": "year", "fieldName": ["id"]}, "year cannot be applied to 'id', which is long"),
        (Invalid, {"strategy": "truncate", "width": 3, "fieldName": ["ratio"]}, "truncate cannot be applied to"),
        (Invalid, {"strategy": "bucket", "numBuckets": 3, "fieldNames": [["ratio"]]}, "bucket cannot be applied to"),
    ],
)  # fmt: skip
def test_a_partitioning_that_iceberg_lacks_is_refused(error, native, complaint):
    message = refused(error, partitioning=[native])
    assert message.startswith("partitioning[0]: ")
    assert complaint in message


def test_a_column_is_not_partitioned_the_same_way_twice():
    day, hour = {"strategy": "day", "fieldName": ["at"]}, {"strategy": "hour", "fieldName": ["at"]}
    assert refused(Invalid, partitioning=[day, hour]) == "partitioning[1]: 'at' is partitioned that way already"
    four, eight = ({"strategy": "bucket", "numBuckets": n, "fieldNames": [["id"]]} for n in (4, 8))
    assert "called 'id_bucket', which is taken" in refused(Invalid, partitioning=[four, eight])


def test_a_partition_field_does_not_take_a_column_s_name():
    taken = [*columns(), {"name": "at_day", "type": "date"}]
    message = refused(Invalid, columns=taken, partitioning=[{"strategy": "day", "fieldName": ["at"]}])
    assert message == "partitioning[0]: the partition field would be called 'at_day', which is taken"


@each("term, transform", SORT_TERMS)
@each("direction", ["asc", "desc"])
@each("nulls", ["nulls_first", "nulls_last"])
def test_each_sort_term_goes_both_ways(term, transform, direction, nulls):
    native = {"sortTerm": term, "direction": direction, "nullOrdering": nulls}
    _, _, order, _ = translated(sortOrders=[native])
    theirs = SortOrder.model_validate(order)
    assert str(theirs.fields[0].transform) == transform
    assert theirs.fields[0].direction.value == direction
    assert theirs.fields[0].null_order.value == nulls.replace("_", "-")
    assert from_iceberg(metadata_of(sortOrders=[native]))["sortOrders"] == [native]


@pytest.mark.parametrize(
    ("error", "term", "complaint"),
    [
        (Unsupported, literal("4"), "Iceberg sorts by a column or a function of one"),
        (Unsupported, {"type": "unparsed", "unparsedExpression": "a+b"}, "Iceberg sorts by a column"),
        (Unsupported, call("upper", field("name")), "no transform 'upper'"),
        (Invalid, call("truncate", field("name"), literal("4")), "truncate takes a positive integer literal"),
        (Invalid, call("bucket", literal("4", "string"), field("id")), "bucket takes a positive integer literal"),
        (Invalid, field("nothing"), "no column 'nothing'"),
        (Invalid, field("tags"), "identity cannot be applied to 'tags'"),
    ],
)
def test_a_sort_term_that_iceberg_lacks_is_refused(error, term, complaint):
    message = refused(error, sortOrders=[{"sortTerm": term}])
    assert message.startswith("sortOrders[0].sortTerm: ")
    assert complaint in message


@each(
    "wish, partitioned, ordered, mode",
    [
        (None, False, False, "none"),
        (None, True, False, "hash"),
        (None, True, True, "range"),
        ("none", False, True, "range"),
        ("none", False, False, "none"),
        ("hash", True, True, "hash"),
        ("range", True, False, "range"),
        ("range", False, True, "range"),
    ],
)
def test_the_distribution_is_a_table_property(wish, partitioned, ordered, mode):
    parts: dict[str, Any] = {
        "distribution": wish and {"strategy": wish, "number": 0, "funcArgs": []},
        "partitioning": [{"strategy": "identity", "fieldName": ["id"]}] if partitioned else [],
        "sortOrders": [{"sortTerm": field("id")}] if ordered else [],
    }
    assert translated(**parts)[3]["write.distribution-mode"] == mode
    assert from_iceberg(metadata_of(**parts))["distribution"] == {"strategy": mode, "number": 0, "funcArgs": []}


@pytest.mark.parametrize(
    ("error", "distribution", "place"),
    [
        (Unsupported, {"strategy": "even", "number": 0}, "distribution.strategy"),
        (Unsupported, {"strategy": "hash", "number": 0, "funcArgs": [field("id")]}, "distribution.funcArgs"),
        (Unsupported, {"strategy": "hash", "number": 8}, "distribution.number"),
        (Invalid, {"strategy": "hash", "number": 0}, "distribution.strategy: hash needs partitioning"),
        (Invalid, {"strategy": "range", "number": 0}, "distribution.strategy: range needs a sort order"),
    ],
)
def test_a_distribution_that_iceberg_lacks_is_refused(error, distribution, place):
    assert refused(error, distribution=distribution).startswith(place)


def test_transforms_of_newer_engines_become_functions_and_void_ones_nothing():
    metadata = metadata_of()
    fields = [
        {"source-id": 1, "field-id": 1000, "name": "gone", "transform": "void"},
        {"source-id": 999, "field-id": 1001, "name": "lost", "transform": "identity"},
        {"source-ids": [1, 5], "field-id": 1002, "name": "many", "transform": "bucket[4]"},
        {"source-id": 5, "field-id": 1003, "name": "new", "transform": "zorder[3]"},
    ]
    metadata["partition-specs"] = [{"spec-id": 0, "fields": fields}]
    assert from_iceberg(metadata)["partitioning"] == [
        {"strategy": "bucket", "numBuckets": 4, "fieldNames": [["id"], ["name"]]},
        {"strategy": "function", "funcName": "zorder[3]", "funcArgs": [field("name")]},
    ]
