"""Every kind of change to a column, made or refused with its reason."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema

from formats.iceberg.translate import current_schema
from metalake.errors import Invalid, Unsupported
from tests.cases import each
from tests.catalogs.native import field, literal
from tests.formats.iceberg.altering import (
    LAST_ID,
    VERSION_3,
    add,
    altered,
    comment,
    delete,
    ids,
    move,
    named,
    nullable,
    plan,
    refused,
    rename,
    retype,
)
from tests.formats.iceberg.metadata import metadata_of


def test_a_column_is_added_last_with_the_next_id():
    after = altered(metadata_of(), add("a", comment="new"))
    assert list(named(after))[-1] == "a"
    assert named(after)["a"]["comment"] == "new"
    assert ids(after)["a"] == LAST_ID + 1
    assert {name: id for name, id in ids(after).items() if name != "a"} == ids(metadata_of())


@pytest.mark.parametrize(
    ("position", "place"), [("first", 0), ({"after": "id"}, 1), ({"after": "tags"}, 10), ("default", 10), (None, 10)]
)
def test_a_column_is_added_where_it_is_wanted(position, place):
    after = altered(metadata_of(), add("a", position=position))
    assert list(named(after)).index("a") == place


def test_a_nested_type_is_added_with_ids_of_its_own():
    struct = {"type": "struct", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "date"}]}
    after = altered(metadata_of(), add("deep", type={"type": "list", "elementType": struct}))
    assert sorted(ids(after).values()) == list(range(1, LAST_ID + 5))
    assert after["last-column-id"] == LAST_ID + 4


@pytest.mark.parametrize(
    ("path", "full_name"),
    [
        (("place", "zip"), "place.zip"),
        (("points", "y"), "points.element.y"),
        (("points", "element", "y"), "points.element.y"),
    ],
)
def test_a_field_is_added_to_a_struct_wherever_it_lies(path, full_name):
    assert ids(altered(metadata_of(), add(*path, type="string")))[full_name] == LAST_ID + 1


def test_a_field_is_added_to_the_values_of_a_map():
    value = {"type": "struct", "fields": [{"name": "x", "type": "long"}]}
    base = metadata_of(columns=[{"name": "m", "type": {"type": "map", "keyType": "string", "valueType": value}}])
    assert "m.value.y" in ids(altered(base, add("m", "y")))


@each(
    "error, change, message",
    [
        (Invalid, add("id"), "updates[0].fieldName: 'id' is there already"),
        (Invalid, add("place", "city"), "updates[0].fieldName: 'place.city' is there already"),
        (Invalid, add("nowhere", "x"), "updates[0].fieldName: no column 'nowhere'"),
        (Invalid, add("id", "x"), "updates[0].fieldName: 'id' is no struct, so it takes no fields"),
        (Invalid, add("tags", "x"), "updates[0].fieldName: 'tags' is no struct, so it takes no fields"),
        (Invalid, add("tags", "key", "x"), "updates[0].fieldName: 'tags.key' is a map key, and those never change"),
        (Invalid, add("a", nullable=False), "updates[0].nullable: 'a' needs a default to be required"),
        (Invalid, add("a", position={"after": "b"}), "updates[0].position: no other column 'b' beside 'a'"),
        (Invalid, add("a", position={"after": "a"}), "updates[0].position: no other column 'a' beside 'a'"),
        (Invalid, add("place.city"), "Two columns are called 'place.city'"),
        (Unsupported, add("a", autoIncrement=True), "updates[0].autoIncrement: Iceberg does not count rows"),
        (Unsupported, add("a", defaultValue=literal("1", "long")), "updates[0].defaultValue: default values need"),
        (Unsupported, add("a", type="short"), "updates[0].type: Iceberg has no type short; use integer"),
        (Unsupported, add("a", type="variant"), "updates[0].type: variant needs format version 3"),
    ],
)
def test_a_column_that_cannot_be_added_is_refused(error, change, message):
    assert refused(error, change).startswith(message)


def test_a_required_column_is_added_with_a_default_from_format_version_3_on():
    base = metadata_of(properties=VERSION_3)
    after = altered(base, add("a", nullable=False, defaultValue=literal("7", "long")))
    added = current_schema(after)["fields"][-1]
    assert (added["required"], added["initial-default"], added["write-default"]) == (True, 7, 7)
    assert named(after)["a"]["defaultValue"] == literal("7", "long")


def test_columns_are_deleted_with_everything_in_them():
    after = altered(metadata_of(), delete("count"), delete("place", "lat"), delete("points"))
    gone = {"count", "place.lat", "points", "points.element", "points.element.x"}
    assert set(ids(after)) == set(ids(metadata_of())) - gone
    assert after["last-column-id"] == LAST_ID, "ids are never used again"


def test_deleting_guards_the_partitions_and_sort_order_that_were_looked_at():
    requirements, _, _ = plan(metadata_of(), delete("count"))
    assert {"type": "assert-default-spec-id", "default-spec-id": 0} in requirements
    assert {"type": "assert-default-sort-order-id", "default-sort-order-id": 0} in requirements


def test_deleting_a_missing_column_is_refused_unless_told_otherwise():
    assert plan(metadata_of(), delete("nothing", if_exists=True)) == ([], [], None)
    assert refused(Invalid, delete("nothing")) == "updates[0].fieldName: no column 'nothing'"
    assert refused(Invalid, delete("ID")) == "updates[0].fieldName: no column 'ID'"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (("id",), "what rows are identified by"),
        (("at",), "what the table is partitioned by"),
        (("place",), "what the table is partitioned by"),
        (("place", "city"), "what the table is partitioned by"),
        (("name",), "what the table is sorted by"),
        (("points", "element"), "part of a list or map, not a field of a struct"),
        (("tags", "key", "k"), "a map key, and those never change"),
    ],
)
def test_a_column_in_use_is_not_deleted(path, reason):
    base = metadata_of(
        partitioning=[
            {"strategy": "day", "fieldName": ["at"]},
            {"strategy": "identity", "fieldName": ["place", "city"]},
        ],
        sortOrders=[{"sortTerm": field("name")}],
    )
    base["schemas"][0]["identifier-field-ids"] = [1]
    assert reason in refused(Invalid, delete(*path), metadata=base)
    assert reason in refused(Invalid, delete(*path, if_exists=True), metadata=base)


def test_a_column_that_only_a_void_field_names_can_go():
    base = metadata_of()
    void = {"source-id": 2, "field-id": 1000, "name": "count_void", "transform": "void"}
    base["partition-specs"] = [{"spec-id": 0, "fields": [void]}]
    assert "count" not in named(altered(base, delete("count")))


def test_the_last_column_stays():
    base = metadata_of(columns=[{"name": "only", "type": "long"}])
    assert "is the table's last column" in refused(Invalid, delete("only"), metadata=base)


def test_a_renamed_column_keeps_its_id_and_place():
    after = altered(metadata_of(), rename("count", to="number"), rename("place", "city", to="town"))
    assert list(named(after))[1] == "number"
    assert ids(after)["number"] == ids(metadata_of())["count"]
    assert ids(after)["place.town"] == ids(metadata_of())["place.city"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename("nothing", to="x"), "updates[0].oldFieldName: no column 'nothing'"),
        (rename("count", to="id"), "updates[0].newFieldName: 'id' is there already"),
        (rename("count", to="place.city"), "Two columns are called 'place.city'"),
        (rename("points", "element", to="x"), "updates[0].oldFieldName: 'points.element' is part of a list or map"),
        (rename("tags", "key", "k", to="x"), "updates[0].oldFieldName: 'tags.key.k' is a map key"),
    ],
)
def test_a_rename_that_cannot_be_is_refused(change, message):
    assert refused(Invalid, change).startswith(message)


@pytest.mark.parametrize(
    ("path", "new", "iceberg"),
    [
        (("count",), "long", "long"),
        (("ratio",), "double", "double"),
        (("price",), "decimal(38,2)", "decimal(38, 2)"),
        (("points", "element", "x"), "long", "long"),
        (("points", "x"), "long", "long"),
        (("tags", "value"), "long", "long"),
    ],
)
def test_types_widen(path, new, iceberg):
    after = altered(metadata_of(), retype(*path, to=new))
    schema = Schema.model_validate(current_schema(after))
    full = ".".join(path).replace("points.x", "points.element.x")
    assert str(schema.find_type(full)) == iceberg
    assert ids(after) == ids(metadata_of())


@each(
    "path, new",
    [
        (("id",), "integer"),
        (("count",), "string"),
        (("count",), "double"),
        (("ratio",), "decimal(10,2)"),
        (("price",), "decimal(9,2)"),
        (("price",), "decimal(12,3)"),
        (("day",), "timestamp(6)"),
        (("place",), "string"),
        (("count",), {"type": "list", "elementType": "long"}),
        (("tags", "key", "k"), "string"),
        (("nothing",), "long"),
    ],
)
def test_types_change_no_other_way(path, new):
    assert refused(Invalid, retype(*path, to=new)).startswith("updates[0].")


def test_a_type_that_iceberg_lacks_is_no_change_of_type():
    assert refused(Unsupported, retype("count", to="byte")).startswith("updates[0].newType: Iceberg has no type byte")


def test_comments_of_columns_come_and_go():
    after = altered(metadata_of(), comment("count", to="how many"), comment("id", to=None))
    assert named(after)["count"]["comment"] == "how many"
    assert "comment" not in named(after)["id"]
    assert refused(Invalid, comment("nothing", to="x")) == "updates[0].fieldName: no column 'nothing'"


@pytest.mark.parametrize(
    ("path", "to", "order"),
    [
        (("count",), "first", ["count", "id", "ratio"]),
        (("id",), {"after": "ratio"}, ["count", "ratio", "id"]),
        (("ratio",), {"after": "id"}, ["id", "ratio", "count"]),
    ],
)
def test_columns_move_among_their_siblings(path, to, order):
    assert list(named(altered(metadata_of(), move(*path, to=to))))[:3] == order


def test_nested_fields_move_too():
    after = altered(metadata_of(), move("place", "lat", to="first"))
    assert [part["name"] for part in named(after)["place"]["type"]["fields"]] == ["lat", "city"]


def test_a_move_that_cannot_be_is_refused():
    assert refused(Invalid, move("id", to={"after": "city"})).startswith("updates[0].newPosition: no other column")
    assert refused(Invalid, move("id", to={"after": "id"})).startswith("updates[0].newPosition: no other column")
    assert refused(Invalid, move("nothing", to="first")) == "updates[0].fieldName: no column 'nothing'"
    assert refused(Unsupported, move("id", to="default")).startswith("updates[0].newPosition: Iceberg has no default")


def test_a_required_column_becomes_optional_and_never_the_other_way():
    assert named(altered(metadata_of(), nullable("id")))["id"]["nullable"] is True
    assert plan(metadata_of(), nullable("id", yes=False)) == ([], [], None)
    assert "may hold nulls already" in refused(Invalid, nullable("count", yes=False))
    after = altered(metadata_of(), nullable("points", "element"))
    assert named(after)["points"]["type"]["containsNull"] is True
    identified = metadata_of()
    identified["schemas"][0]["identifier-field-ids"] = [1]
    assert "rows are identified by 'id'" in refused(Invalid, nullable("id"), metadata=identified)
