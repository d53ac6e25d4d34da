"""Partition specs and sort orders: add-spec, set-default-spec, remove-partition-specs, add-sort-order,
set-default-sort-order."""

import pytest

from metalake.errors import Invalid
from tests.cases import each
from tests.formats.iceberg.table_samples import (
    column,
    commit,
    list_of,
    map_of,
    partition_field,
    schema,
    sort_field,
    struct,
    table,
)

COLUMNS = schema(
    column(1, "id", required=True),
    column(2, "at", "timestamp"),
    column(3, "name", "string"),
    column(4, "owner", struct(column(7, "city", "string"))),
    column(5, "tags", list_of(8, "string")),
    column(6, "ratio", "double"),
)


def add_spec(*fields, **more):
    return {"action": "add-spec", "spec": {"fields": list(fields), **more}}


def default_spec(number):
    return {"action": "set-default-spec", "spec-id": number}


def add_order(*fields, **more):
    return {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": list(fields), **more}}


def default_order(number):
    return {"action": "set-default-sort-order", "sort-order-id": number}


def test_new_spec():
    after = commit(table(), add_spec(partition_field(3, "identity", "name"), **{"spec-id": 40}), default_spec(-1))
    assert after["default-spec-id"] == 1
    assert after["last-partition-id"] == 1001
    assert after["partition-specs"][1] == {
        "spec-id": 1,
        "fields": [partition_field(3, "identity", "name", **{"field-id": 1001})],
    }


def test_equal_spec_is_used_again():
    base = table()
    assert commit(base, add_spec(partition_field(2, "day", "at_day", **{"field-id": 1000}))) is base
    assert commit(base, add_spec(partition_field(2, "day", "at_day"))) is base
    with pytest.raises(Invalid, match="Cannot set last added spec: no spec has been added"):
        commit(base, add_spec(partition_field(2, "day", "at_day")), default_spec(-1))


def test_same_source_and_transform_keep_their_field_id():
    after = commit(table(), add_spec(partition_field(1, "bucket[8]", "b"), partition_field(2, "day", "renamed")))
    assert [field["field-id"] for field in after["partition-specs"][1]["fields"]] == [1001, 1000]
    assert after["last-partition-id"] == 1001


def test_given_field_ids_are_kept():
    after = commit(table(), add_spec(partition_field(1, "bucket[8]", "b", **{"field-id": 1007})))
    assert after["partition-specs"][1]["fields"][0]["field-id"] == 1007
    assert after["last-partition-id"] == 1007


def test_field_ids_run_out():
    full = commit(table(), add_spec(partition_field(1, "bucket[8]", "b", **{"field-id": 2**31 - 1})))
    with pytest.raises(Invalid, match="the next partition field id must be between"):
        commit(full, add_spec(partition_field(3, "identity", "name")))


def test_version_1_numbers_in_sequence():
    after = commit(table(1), add_spec(partition_field(1, "bucket[8]", "b"), partition_field(2, "day", "d")))
    assert [field["field-id"] for field in after["partition-specs"][1]["fields"]] == [1000, 1001]
    with pytest.raises(Invalid, match="sequential IDs that are required in v1"):
        commit(table(1), add_spec(partition_field(1, "bucket[8]", "b", **{"field-id": 1001})))


def test_version_1_mirrors_the_default_spec():
    after = commit(table(1), add_spec(), default_spec(-1))
    assert after["partition-spec"] == []


def test_unknown_spec_cannot_be_default():
    with pytest.raises(Invalid, match="unknown spec: 4"):
        commit(table(), default_spec(4))


def test_removing_specs():
    base = commit(table(), add_spec(), default_spec(-1))
    after = commit(base, {"action": "remove-partition-specs", "spec-ids": [0]})
    assert [spec["spec-id"] for spec in after["partition-specs"]] == [1]
    with pytest.raises(Invalid, match="Cannot remove the default partition spec"):
        commit(base, {"action": "remove-partition-specs", "spec-ids": [1]})
    assert commit(base, {"action": "remove-partition-specs", "spec-ids": [6]}) is base


@each(
    "field, said",
    [
        (partition_field(99, "identity", "p"), "Cannot find source column for partition field: None: p: identity(99)"),
        (partition_field(4, "identity", "p"), "Cannot partition by non-primitive source field: owner"),
        (partition_field(8, "identity", "p"), "Invalid partition field parent: list tags"),
        (partition_field(3, "day", "p"), "Invalid source type string for transform: day"),
        (partition_field(6, "bucket[4]", "p"), "Invalid source type double for transform: bucket[4]"),
        (partition_field(2, "truncate[4]", "p"), "Invalid source type timestamp"),
        (partition_field(1, "bucket[0]", "p"), "the parameter must be 1"),
        (partition_field(1, "bucket[99999999999]", "p"), "malformed transform"),
        (partition_field(1, "bucket", "p"), "malformed transform 'bucket'"),
        (partition_field(1, "bucket[]", "p"), "malformed transform"),
        (partition_field(1, "zorder", "p"), "malformed transform"),
        (partition_field(1, "identity", "name"), "sourced from different field in schema: name"),
        (partition_field(1, "identity", ""), "empty or null partition name"),
        (partition_field(True, "identity", "p"), "source-id of partition field p"),
        (partition_field(1, None, "p"), "transform of partition field p is required"),
        (partition_field(1, "identity", None), "name of a partition field is required"),
        (partition_field(1, "identity", "p", **{"field-id": "x"}), "field-id of partition field p"),
        (None, "must be an object"),
    ],
)
def test_wrong_partition_field_is_refused(field, said):
    with pytest.raises(Invalid) as refusal:
        commit(table(schema=COLUMNS), add_spec(field))
    assert said in refusal.value.message
    assert "'add-spec', updates[0]" in refusal.value.message


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([partition_field(1, "identity", "p"), partition_field(2, "day", "p")], "more than once: p"),
        ([partition_field(1, "identity", "p", **{"field-id": 1000}), partition_field(2, "day", "q")], "all partition"),
        ([partition_field(number, "identity", f"p{number}", **{"field-id": 1000}) for number in (1, 2)], "must differ"),
    ],
)
def test_fields_that_do_not_go_together(fields, said):
    with pytest.raises(Invalid, match=said):
        commit(table(), add_spec(*fields))


def test_partitioning_by_a_column_of_a_struct():
    base = table(schema=COLUMNS)
    city = base["schemas"][0]["fields"][3]["type"]["fields"][0]["id"]
    assert len(commit(base, add_spec(partition_field(city, "identity", "city")))["partition-specs"]) == 2


def test_new_order():
    after = commit(table(), add_order(sort_field(3), **{"order-id": 9}), default_order(-1))
    assert after["sort-orders"][1] == {"order-id": 1, "fields": [sort_field(3)]}
    assert after["default-sort-order-id"] == 1
    again = commit(after, add_order(sort_field(3, direction="desc")), default_order(-1))
    assert [order["order-id"] for order in again["sort-orders"]] == [0, 1, 2]


def test_equal_order_is_used_again():
    base = commit(table(), add_order(sort_field(3)), default_order(-1))
    assert commit(base, add_order(sort_field(3), **{"order-id": 5})) is base
    with pytest.raises(Invalid, match="Cannot set last added sort order: no sort order has been added"):
        commit(base, add_order(sort_field(3)), default_order(-1))


def test_unsorted_is_order_0():
    base = table(sort_order={"fields": [sort_field(3)]})
    after = commit(base, add_order(**{"order-id": 4}), default_order(-1))
    assert after["sort-orders"][1] == {"order-id": 0, "fields": []}
    assert after["default-sort-order-id"] == 0


def test_unknown_order_cannot_be_default():
    with pytest.raises(Invalid, match="unknown order: 3"):
        commit(table(), default_order(3))


@each(
    "field, said",
    [
        (sort_field(99), "Cannot find source column for sort field: identity(99)"),
        (sort_field(4), "Cannot sort by non-primitive source field: owner"),
        (sort_field(3, "hour"), "Invalid source type string for transform: hour"),
        (sort_field(3, "sideways"), "malformed transform"),
        (sort_field(3, direction="up"), "'asc' or 'desc'"),
        (sort_field(3, nulls="nulls"), "'nulls-first' or 'nulls-last'"),
        ({"source-id": 3, "transform": "identity", "direction": "asc"}, "null-order of a sort field is required"),
        ([], "must be an object"),
    ],
)
def test_wrong_sort_field_is_refused(field, said):
    with pytest.raises(Invalid) as refusal:
        commit(table(schema=COLUMNS), add_order(field))
    assert said in refusal.value.message


def test_map_values_can_be_sorted_by_no_one_but_refused_as_partitions():
    base = table(schema=schema(column(1, "m", map_of(2, "string", 3, "int"))), partition_spec=None)
    with pytest.raises(Invalid, match="Invalid partition field parent: map m"):
        commit(base, add_spec(partition_field(3, "identity", "p")))
