"""Native alterations to one Iceberg commit: order, atomicity, properties, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema

from formats.iceberg.translate import current_schema, from_iceberg
from metalake.errors import Invalid, Unsupported
from tests.cases import each
from tests.catalogs.native import columns_of, literal
from tests.formats.iceberg.altering import (
    LAST_ID,
    add,
    altered,
    comment,
    delete,
    drop,
    ids,
    move,
    named,
    nullable,
    plan,
    put,
    refused,
    rename,
    retype,
)
from tests.formats.iceberg.metadata import UUID, metadata_of
from tests.profiles import weighing


def test_one_commit_adds_one_schema_and_guards_what_it_was_made_from():
    requirements, updates, rename_to = plan(metadata_of(), add("a"), comment("count", to="how many"))
    assert [update["action"] for update in updates] == ["add-schema", "set-current-schema"]
    assert updates[0]["last-column-id"] == LAST_ID + 1
    assert updates[1] == {"action": "set-current-schema", "schema-id": -1}
    assert requirements == [
        {"type": "assert-table-uuid", "uuid": UUID},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": LAST_ID},
    ]
    assert rename_to is None


@pytest.mark.parametrize(
    "change",
    [
        {"@type": "updateColumnAutoIncrement", "fieldName": ["id"], "autoIncrement": True},
        {"@type": "updateColumnDefaultValue", "fieldName": ["id"], "newDefaultValue": literal("1", "long")},
        {"@type": "addTableIndex", "index": {"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}},
        {"@type": "deleteTableIndex", "name": "pk", "ifExists": True},
    ],
)
def test_what_iceberg_cannot_do_is_refused_with_the_reason(change):
    message = refused(Unsupported, comment("id", to="x"), change)
    assert message.startswith("updates[1]: ")
    assert "Iceberg" in message


def test_changes_are_made_in_order_each_on_the_one_before():
    after = altered(
        metadata_of(),
        add("a", type="integer"),
        retype("a", to="long"),
        rename("a", to="b"),
        move("b", to="first"),
        comment("b", to="c"),
        rename("id", to="a"),
        add("id", type="string"),
    )
    assert list(named(after))[:2] == ["b", "a"]
    assert (named(after)["b"]["type"], named(after)["b"]["comment"]) == ("long", "c")
    assert (ids(after)["a"], ids(after)["id"]) == (1, LAST_ID + 2)


def test_a_refused_change_says_which_and_leaves_nothing():
    assert refused(Invalid, add("a"), delete("a"), delete("a")) == "updates[2].fieldName: no column 'a'"


def test_names_may_be_swapped_through_a_third():
    after = altered(metadata_of(), rename("id", to="t"), rename("count", to="id"), rename("t", to="count"))
    assert (ids(after)["id"], ids(after)["count"]) == (2, 1)


def test_changes_that_come_to_nothing_commit_nothing():
    base = metadata_of(comment="c", properties={"k": "v"})
    same = {"@type": "updateComment", "newComment": "c"}
    nothing = [add("a"), delete("a"), rename("id", to="x"), rename("x", to="id"), put("k", "v"), drop("absent"), same]
    assert plan(base, *nothing) == ([], [], None)


def test_going_back_to_an_old_schema_makes_that_one_current():
    there = altered(metadata_of(), rename("count", to="number"))
    requirements, updates, _ = plan(there, rename("number", to="count"))
    assert updates == [{"action": "set-current-schema", "schema-id": 0}]
    assert {"type": "assert-current-schema-id", "current-schema-id": 1} in requirements
    assert named(altered(there, rename("number", to="count"))) == named(metadata_of())


def test_identifiers_and_what_newer_engines_wrote_stay():
    base = metadata_of()
    base["schemas"][0] |= {"identifier-field-ids": [1], "note": "kept"}
    base["schemas"][0]["fields"][1] |= {"write-default": 4, "colour": "red"}
    schema = current_schema(altered(base, rename("count", to="number")))
    assert (schema["identifier-field-ids"], schema["note"], schema["schema-id"]) == ([1], "kept", 1)
    assert (schema["fields"][1]["write-default"], schema["fields"][1]["colour"]) == (4, "red")


def test_properties_and_the_comment_are_set_and_removed_in_order():
    base = metadata_of(comment="old", properties={"k": "v", "gone": "x"})
    after = altered(
        base,
        put("k", "1"),
        put("k", "2"),
        drop("gone"),
        put("brief", "x"),
        drop("brief"),
        drop("never"),
        {"@type": "updateComment", "newComment": "new"},
    )
    assert after["properties"] == {"k": "2", "comment": "new", "write.distribution-mode": "none"}
    assert "comment" not in altered(base, {"@type": "updateComment", "newComment": None})["properties"]


def test_properties_alone_guard_only_the_table_s_identity():
    requirements, updates, _ = plan(metadata_of(), put("k", "v"))
    assert requirements == [{"type": "assert-table-uuid", "uuid": UUID}]
    assert updates == [{"action": "set-properties", "updates": {"k": "v"}}]


@each("make", [lambda name: put(name, "x"), drop])
@each("name", ["comment", "creator", "sort-order", "identifier-fields", "write.distribution-mode",
                                  "current-snapshot-id", "cherry-pick-snapshot-id", "uuid", "snapshot-count",
                                  "format-version", "provider", "format", "location"])  # fmt: skip
def test_properties_that_are_not_the_caller_s_are_refused(name, make):
    assert refused(Invalid, make(name)).startswith(f"updates[0].property: {name} is ")


def test_a_table_moves_only_where_the_catalog_allows_it():
    after = altered(metadata_of(), put("location", "s3://b/new"), may_move=True)
    assert after["location"] == "s3://b/new"
    assert "location" not in after["properties"]
    with pytest.raises(Invalid, match="location is decided at creation"):
        plan(metadata_of(), drop("location"), may_move=True)


def test_a_rename_of_the_table_is_handed_back():
    assert plan(metadata_of(), {"@type": "rename", "newName": "b"}) == ([], [], ("b", None))
    moved = {"@type": "rename", "newName": "b", "newSchemaName": "A:B"}
    assert plan(metadata_of(), moved) == ([], [], ("b", "A:B"))


def test_a_rename_of_the_table_comes_alone():
    to_b = {"@type": "rename", "newName": "b"}
    assert refused(Invalid, to_b, put("k", "v")) == "updates: a rename cannot be combined with other changes"
    assert refused(Invalid, to_b, to_b) == "updates: a rename cannot be combined with other changes"


def test_old_metadata_with_one_schema_is_altered():
    base = metadata_of()
    old = {
        "format-version": 1,
        "location": base["location"],
        "last-column-id": base["last-column-id"],
        "schema": base["schemas"][0],
        "partition-spec": [{"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"}],
    }
    requirements, updates, _ = plan(old, add("a"))
    assert updates[0]["schema"]["fields"][-1]["name"] == "a"
    assert requirements[0] == {"type": "assert-current-schema-id", "current-schema-id": 0}
    assert "partitioned by" in refused(Invalid, delete("id"), metadata=old)


def test_a_schema_does_not_grow_too_deep():
    deep: Any = "long"
    for _ in range(40):
        deep = {"type": "list", "elementType": deep}
    changes = [add("a", type={"type": "struct", "fields": [{"name": "x", "type": "long"}]})]
    path = ["a"]
    for step in range(60):
        inner = {"type": "struct", "fields": [{"name": "x", "type": "long"}]}
        changes.append(add(*path, f"s{step}", type=inner))
        path.append(f"s{step}")
    changes.append(add(*path, "deep", type=deep))
    assert "nests deeper than" in refused(Invalid, *changes)


PATHS = [["id"], ["count"], ["ratio"], ["price"], ["place"], ["place", "city"], ["points", "element"], ["points", "x"],
         ["tags"], ["tags", "key", "k"], ["tags", "value"], ["a"], ["place", "a"], ["nothing"]]  # fmt: skip
path_of = st.sampled_from(PATHS)
type_of = st.sampled_from(
    ["long", "double", "decimal(20,2)", "string", "byte", {"type": "list", "elementType": "long"}]
)
change_of = st.one_of(
    st.builds(
        lambda path, type, required: add(*path, type=type, nullable=not required), path_of, type_of, st.booleans()
    ),
    st.builds(lambda path, sure: delete(*path, if_exists=sure), path_of, st.booleans()),
    st.builds(lambda path, name: rename(*path, to=name), path_of, st.sampled_from(["a", "b", "id", "place.city"])),
    st.builds(lambda path, type: retype(*path, to=type), path_of, type_of),
    st.builds(lambda path, text: comment(*path, to=text), path_of, st.none() | st.text(max_size=3)),
    st.builds(
        lambda path, to: move(*path, to=to), path_of, st.sampled_from(["first", {"after": "id"}, {"after": "city"}])
    ),
    st.builds(lambda path, yes: nullable(*path, yes=yes), path_of, st.booleans()),
    st.builds(put, st.sampled_from(["k", "comment", "location"]), st.text(max_size=3)),
    st.builds(drop, st.sampled_from(["k", "uuid"])),
)


@weighing(4)
@given(st.lists(change_of, min_size=1, max_size=5))
def test_any_changes_are_made_or_refused_and_ids_stay_unique(changes):
    base = metadata_of(properties={"k": "v"})
    try:
        after = altered(base, *changes)
    except (Invalid, Unsupported) as refusal:
        assert refusal.message
        return
    theirs = Schema.model_validate(current_schema(after))
    assert len(theirs.field_ids) == len(set(theirs.field_ids)) > 0
    assert theirs.highest_field_id <= after["last-column-id"]
    kept = {id: name for name, id in ids(base).items()}
    assert all(id in kept or id > LAST_ID for id in theirs.field_ids)
    from_iceberg(after)


@weighing(0.6)
@given(columns_of(["integer", "float", "decimal(5,1)", "string"]), st.data())
def test_renaming_there_and_back_changes_nothing(native, data):
    base = metadata_of(columns=native)
    name = data.draw(st.sampled_from([column["name"] for column in native]))
    there = altered(base, rename(name, to="elsewhere"))
    assert ids(there)["elsewhere"] == ids(base)[name]
    assert named(altered(there, rename("elsewhere", to=name))) == named(base)
