"""Native alterations of Hive tables: order, atomicity, properties, columns, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.hive.alterations import altered, rename_of
from formats.hive.tables import HiveColumn, SortColumn
from formats.hive.translate import from_hive
from formats.native.tables import TableUpdatesRequest
from metalake.errors import Invalid, Unsupported
from metalake.wire import read
from tests.cases import each
from tests.formats.hive.samples import airports, changed, flights, named, refused
from tests.formats.iceberg.altering import add, comment, delete, drop, move, nullable, put, rename, retype
from tests.profiles import weighing


def say(text):
    return {"@type": "updateComment", "newComment": text}


def test_nothing_changes_nothing():
    assert changed(flights()) == flights()
    same = [say("all flights"), put("owner_team", "ops"), put("location", "s3://lake/flights"), drop("absent")]
    same += [
        move("carrier", to={"after": "id"}),
        retype("id", to="long"),
        rename("id", to="ID"),
        comment("id", to="who"),
    ]
    same += [add("x"), delete("x"), delete("y", if_exists=True)]
    assert changed(flights(), *same) == flights()


def test_the_comment_changes_where_it_is_kept():
    assert changed(flights(), say("late flights")) == flights(comment="late flights")
    assert changed(flights(), say(None)) == flights(comment=None)
    described = flights(parameters={"comment": "old", "k": "v"})
    assert changed(described, say("new")) == flights(comment="new", parameters={"comment": "new", "k": "v"})
    assert from_hive(changed(described, say(None)))["comment"] is None


def test_properties_change_in_their_places():
    after = changed(
        flights(),
        put("location", "s3://lake/moved"),
        put("serde-lib", "com.example.SerDe"),
        put("serde.parameter.field.delim", "|"),
        drop("serde.parameter.serialization.format"),
        drop("serde-name"),
        put("owner_team", "sales"),
        put("quality", "gold"),
        drop("numRows"),
    )
    assert after == flights(
        location="s3://lake/moved",
        serde_lib="com.example.SerDe",
        serde_parameters={"field.delim": "|"},
        serde_name=None,
        parameters={"owner_team": "sales", "quality": "gold"},
    )


def test_a_parameter_that_hides_a_place_is_what_changes():
    delta = flights(parameters={"location": "s3://delta", "serde.parameter.a": "1"})
    after = changed(delta, put("location", "s3://new"), drop("serde.parameter.a"))
    assert after == flights(parameters={"location": "s3://new"})
    assert changed(delta, drop("location")).location == "s3://lake/flights"


@each(
    "change, complaint",
    [
        (put("comment", "x"), "updates[0].property: comment is reserved; it is the table's comment"),
        (drop("EXTERNAL"), "updates[0].property: EXTERNAL is reserved; it follows from table-type"),
        (put("transient_lastDdlTime", "1"), "updates[0].property: transient_lastDdlTime is reserved"),
        (put("table-type", "MANAGED_TABLE"), "updates[0].property: table-type is decided at creation"),
        (put("format", "ORC"), "updates[0].property: format is decided at creation"),
        (put("input-format", "x"), "updates[0].property: input-format is decided at creation"),
        (drop("output-format"), "updates[0].property: output-format is decided at creation"),
        (put("table_type", "ICEBERG"), "updates[0].property: table_type is decided at creation"),
        (put("metadata_location", "s3://x"), "updates[0].property: metadata_location is decided at creation"),
        (put("spark.sql.sources.schema", "{}"), "updates[0].property: spark.sql.sources.schema is reserved"),
        (put("serde.parameter.path", "s3://x"), "updates[0].property: serde.parameter.path is reserved"),
        (drop("location"), "updates[0].property: a table always has a location; set another instead"),
        (drop("serde-lib"), "updates[0].property: a table always has a serde-lib; set another instead"),
    ],
)
def test_properties_that_do_not_change(change, complaint):
    assert refused(Invalid, flights(), change).startswith(complaint)


def test_columns_are_added_before_the_partition_keys():
    after = changed(
        flights(),
        add("last", type="string", comment="new"),
        add("First", position="first"),
        add("second", position={"after": "FIRST"}),
    )
    assert list(named(after)) == ["first", "second", "id", "carrier", "delay", "legs", "last"]
    assert after.columns[-1] == HiveColumn("last", "string", "new")
    assert after.partition_keys == flights().partition_keys


def test_columns_change_one_after_the_other():
    after = changed(
        flights(),
        rename("delay", to="Minutes"),
        retype("minutes", to="long"),
        comment("minutes", to="late"),
        move("minutes", to="first"),
        delete("legs"),
        comment("day", to=None),
    )
    assert after.columns == (
        HiveColumn("minutes", "bigint", "late", {"unit": "minutes"}),
        HiveColumn("id", "bigint", "who"),
        HiveColumn("carrier", "string"),
    )
    assert after.sort_columns == (SortColumn("id"), SortColumn("minutes", ascending=False))
    assert after.partition_keys == (HiveColumn("year", "int"), HiveColumn("day", "date"))
    columns = {name: getattr(flights(), name) for name in ("columns", "sort_columns", "partition_keys")}
    assert replace(after, **columns) == flights()


def test_a_renamed_column_still_buckets_the_table():
    assert changed(flights(), rename("carrier", to="airline")).bucket_columns == ("airline",)


def test_names_in_capitals_are_found():
    table = airports(columns=(HiveColumn("userId", "int"), HiveColumn("name", "string")))
    assert named(changed(table, comment("USERID", to="x")))["userId"].comment == "x"
    assert refused(Invalid, table, add("userid")) == "updates[0].fieldName: 'userid' is there already"


@each(
    "change, complaint",
    [
        (add("ID"), "updates[0].fieldName: 'id' is there already"),
        (add("Day"), "updates[0].fieldName: 'day' is there already"),
        (add("a:b"), "updates[0].fieldName: Hive cannot keep ':'"),
        (add("x", position={"after": "nope"}), "updates[0].position: no other column 'nope' beside 'x'"),
        (
            add("x", position={"after": "year"}),
            "updates[0].position: no column comes after the partition column 'year'",
        ),
        (delete("nope"), "updates[0].fieldName: no column 'nope'"),
        (delete("day"), "updates[0].fieldName: the table is partitioned by 'day', and that never changes"),
        (delete("day", if_exists=True), "updates[0].fieldName: the table is partitioned by 'day'"),
        (delete("carrier"), "updates[0].fieldName: 'carrier' is what the table is bucketed by"),
        (delete("delay"), "updates[0].fieldName: 'delay' is what the table is sorted by"),
        (rename("nope", to="x"), "updates[0].oldFieldName: no column 'nope'"),
        (rename("day", to="x"), "updates[0].oldFieldName: the table is partitioned by 'day'"),
        (rename("id", to="Carrier"), "updates[0].newFieldName: 'carrier' is there already"),
        (rename("id", to="year"), "updates[0].newFieldName: 'year' is there already"),
        (retype("year", to="long"), "updates[0].fieldName: the table is partitioned by 'year'"),
        (comment("nope", to="x"), "updates[0].fieldName: no column 'nope'"),
        (move("year", to="first"), "updates[0].fieldName: the table is partitioned by 'year'"),
        (move("id", to={"after": "day"}), "updates[0].newPosition: no column comes after the partition column 'day'"),
        (move("id", to={"after": "id"}), "updates[0].newPosition: no other column 'id' beside 'id'"),
    ],
)
def test_wrong_changes_of_columns_are_refused(change, complaint):
    assert refused(Invalid, flights(), change).startswith(complaint)


@each(
    "change, complaint",
    [
        (add("x", nullable=False), "updates[0].nullable: "),
        (add("x", autoIncrement=True), "updates[0].autoIncrement: "),
        (add("x", type="uuid"), "updates[0].type: Hive has no type uuid; use string"),
        (add("legs", "via"), "updates[0].fieldName: 'legs.via' lies inside a column; name a whole column"),
        (delete("legs", "from"), "updates[0].fieldName: 'legs.from' lies inside a column"),
        (rename("legs", "from", to="x"), "updates[0].oldFieldName: 'legs.from' lies inside a column"),
        (retype("id", to="uuid"), "updates[0].newType: Hive has no type uuid; use string"),
        (move("id", to="default"), "updates[0].newPosition: Hive has no default position"),
        (nullable("id", yes=True), "updates[0]: every Hive column may hold nulls"),
        (
            {"@type": "updateColumnAutoIncrement", "fieldName": ["id"], "autoIncrement": True},
            "updates[0]: Hive does not",
        ),
        (
            {
                "@type": "updateColumnDefaultValue",
                "fieldName": ["id"],
                "newDefaultValue": {"type": "literal", "dataType": "long", "value": "1"},
            },
            "updates[0]: Hive columns have no default but null",
        ),
        (
            {"@type": "addTableIndex", "index": {"indexType": "PRIMARY_KEY", "fieldNames": [["id"]]}},
            "updates[0]: Hive has no indexes",
        ),
        ({"@type": "deleteTableIndex", "name": "i"}, "updates[0]: Hive has no indexes"),
        ({"@type": "rename", "newName": "x"}, "updates[0]: a rename is made alone"),
    ],
)
def test_what_hive_cannot_do_is_refused(change, complaint):
    assert refused(Unsupported, flights(), change).startswith(complaint)


def test_a_refusal_names_the_change_and_undoes_those_before():
    table = flights()
    assert refused(Invalid, table, say("x"), add("x"), delete("nope")).startswith("updates[2].fieldName: ")
    assert table == flights()


def test_a_table_keeps_a_column():
    one = airports(columns=(HiveColumn("faa", "string"),))
    assert refused(Invalid, one, delete("faa")) == "updates[0].fieldName: 'faa' is the table's last column"
    keyed = replace(one, partition_keys=(HiveColumn("day", "date"),))
    assert changed(keyed, delete("faa")).columns == ()


@pytest.mark.parametrize("kind", ["ICEBERG", "DELTA", "HUDI"])
def test_columns_kept_in_a_log_are_left_to_engines(kind):
    table = flights(parameters={"table_type": kind})
    message = refused(Unsupported, table, put("k", "v"), add("x"))
    assert message == f"updates[1]: the columns of a table of format {kind.lower()} are changed by engines"
    assert changed(table, put("k", "v")).parameters == {"table_type": kind, "k": "v"}


def test_columns_that_share_a_name_are_left_alone():
    table = airports(columns=(HiveColumn("a", "int"), HiveColumn("A", "int"), HiveColumn("b", "int")))
    assert refused(Unsupported, table, delete("b")).startswith("updates[0]: the columns of this table cannot be told ")
    assert changed(table, put("k", "v")).columns == table.columns


def test_a_rename_comes_alone():
    def asked(*changes):
        return rename_of(read(TableUpdatesRequest, {"updates": list(changes)}).updates)

    to_x = {"@type": "rename", "newName": "x", "newSchemaName": "s"}
    assert asked() is asked(put("k", "v")) is None
    assert (asked(to_x).new_name, asked(to_x).new_schema_name) == ("x", "s")
    with pytest.raises(Invalid, match="cannot be combined"):
        asked(put("k", "v"), to_x)


NAMES = st.sampled_from(["a", "B", "c", "day", "x"])
CHANGES = st.one_of(
    st.builds(add, NAMES, position=st.one_of(st.sampled_from(["first", "default"]), NAMES.map(lambda n: {"after": n}))),
    st.builds(delete, NAMES, if_exists=st.booleans()),
    st.builds(lambda old, new: rename(old, to=new), NAMES, NAMES),
    st.builds(
        lambda name, to: move(name, to=to), NAMES, st.one_of(st.just("first"), NAMES.map(lambda n: {"after": n}))
    ),
)


def model(names: list[str], change: dict) -> list[str]:
    """The column names after a change, said in the plainest way; ValueError when it is refused."""
    path = change.get("fieldName") or change.get("oldFieldName")
    name = path[0].lower()
    kind = change["@type"]
    others = [other for other in names if other != name]
    if kind == "deleteColumn":
        if name not in names and name != "day" and change["ifExists"]:
            return names
        if name not in names:
            raise ValueError
        return others
    if kind == "renameColumn":
        new = change["newFieldName"].lower()
        if name not in names or new in [*others, "day"]:
            raise ValueError
        return [new if other == name else other for other in names]
    if (name in names) is (kind == "addColumn") or name == "day":
        raise ValueError
    where = change.get("position") or change.get("newPosition")
    if where == "first":
        return [name, *others]
    if where == "default":
        return [*others, name]
    at = others.index(where["after"].lower())
    return [*others[: at + 1], name, *others[at + 1 :]]


@weighing(4)
@given(st.lists(CHANGES, max_size=6))
def test_any_changes_of_columns_do_what_the_plainest_way_would(changes):
    table = airports(
        columns=(HiveColumn("a", "int"), HiveColumn("b", "int")), partition_keys=(HiveColumn("day", "date"),)
    )
    names = ["a", "b"]
    try:
        for change in changes:
            names = model(names, change)
    except ValueError:
        refused(Invalid, table, *changes)
    else:
        assert list(named(changed(table, *changes))) == names


def test_wide_tables_change():
    table = flights(
        columns=tuple(HiveColumn(f"c{n}", "bigint") for n in range(2_000)), bucket_columns=(), sort_columns=()
    )
    changes = [move(f"c{n}", to="first") for n in range(500)]
    changes += [rename(f"c{n}", to=f"d{n}") for n in range(500)]
    changes += [add(f"e{n}", position={"after": f"c{n + 1000}"}) for n in range(500)]
    changes += [delete(f"d{n}") for n in range(500)]
    updates = read(TableUpdatesRequest, {"updates": changes}).updates
    assert len(altered(table, updates).columns) == 2_000
