"""add-schema, set-current-schema and remove-schemas, and which schemas are none."""

from typing import Any

import pytest

from formats.iceberg import schemas
from formats.iceberg.schemas import check_schema, shape
from metalake.errors import Invalid
from tests.cases import each
from tests.formats.iceberg.table_samples import (
    EVENTS,
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

WIDER = schema(*EVENTS["fields"], column(4, "size", "int"))


def add_schema(wanted, **more):
    return {"action": "add-schema", "schema": wanted, **more}


def make_current(number):
    return {"action": "set-current-schema", "schema-id": number}


def test_new_schema_gets_the_next_id_whatever_the_client_says():
    after = commit(table(), add_schema({**WIDER, "schema-id": 77}), make_current(-1))
    assert [each["schema-id"] for each in after["schemas"]] == [0, 1]
    assert after["current-schema-id"] == 1
    assert after["last-column-id"] == 4


def test_equal_schema_is_used_again():
    base = table()
    assert commit(base, add_schema({**EVENTS, "schema-id": 5})) is base


def test_reused_schema_is_not_the_last_added():
    with pytest.raises(Invalid, match="Cannot set last added schema: no schema has been added"):
        commit(table(), add_schema(EVENTS), make_current(-1))


def test_schema_added_twice_in_one_request_is_still_the_last_added():
    after = commit(table(), add_schema(WIDER), add_schema(WIDER), make_current(-1))
    assert len(after["schemas"]) == 2
    assert after["current-schema-id"] == 1


def test_switching_back_to_an_older_schema():
    wide = commit(table(), add_schema(WIDER), make_current(-1))
    back = commit(wide, make_current(0))
    assert back["current-schema-id"] == 0
    assert back["last-column-id"] == 4
    assert commit(back, make_current(0)) is back


def test_last_column_id_never_falls():
    after = commit(table(), add_schema(WIDER, **{"last-column-id": 9}))
    assert after["last-column-id"] == 9
    again = commit(after, add_schema(schema(column(1, "id", required=True)), **{"last-column-id": 2}))
    assert again["last-column-id"] == 9


def test_unknown_schema_cannot_be_current():
    with pytest.raises(Invalid, match="unknown schema: 8"):
        commit(table(), make_current(8))


def test_removing_schemas():
    wide = commit(table(), add_schema(WIDER), make_current(-1))
    after = commit(wide, {"action": "remove-schemas", "schema-ids": [0, 33]})
    assert [each["schema-id"] for each in after["schemas"]] == [1]
    with pytest.raises(Invalid, match="Cannot remove the current schema"):
        commit(wide, {"action": "remove-schemas", "schema-ids": [1]})
    assert commit(wide, {"action": "remove-schemas", "schema-ids": [33]}) is wide


def test_removing_and_adding_schemas_in_turns_looks_at_each_schema_once(monkeypatch):
    seen = []

    def counted(wanted):
        seen.append(wanted)
        return shape(wanted)

    monkeypatch.setattr(schemas, "shape", counted)
    known = [add_schema(schema(*EVENTS["fields"], column(4, f"old{number}", "int"))) for number in range(50)]
    base = commit(table(), *known)
    seen.clear()
    turns = [
        update
        for number in range(50)
        for update in (
            {"action": "remove-schemas", "schema-ids": [number + 1]},
            add_schema(schema(*EVENTS["fields"], column(4, f"new{number}", "int"))),
        )
    ]
    after = commit(base, *turns, known[0], known[0])
    assert len(seen) == len(base["schemas"]) - 1 + 52, "one was removed before anything was looked at"
    assert [each["schema-id"] for each in after["schemas"]] == [0, *range(51, 102)], "what was removed is added again"


def test_the_next_id_is_above_those_that_are_left():
    removal = {"action": "remove-schemas", "schema-ids": [1]}
    after = commit(table(), add_schema(WIDER), removal, add_schema(schema(*EVENTS["fields"], column(4, "a", "int"))))
    assert [each["schema-id"] for each in after["schemas"]] == [0, 1]


def test_version_1_mirrors_the_current_schema():
    after = commit(table(1), add_schema(WIDER), make_current(-1))
    assert after["schema"] == after["schemas"][1]


@pytest.mark.parametrize("version", [2, 3])
def test_dropping_a_partitioned_column_is_refused(version):
    narrow = schema(column(1, "id", required=True))
    with pytest.raises(Invalid, match="Cannot find source column for partition field: 1000: at_day: day"):
        commit(table(version), add_schema(narrow), make_current(-1))


def test_dropping_a_sorted_column_is_refused():
    base = table(partition_spec=None, sort_order={"fields": [sort_field(3)]})
    with pytest.raises(Invalid, match="Cannot find source column for sort field"):
        commit(base, add_schema(schema(column(1, "id", required=True))), make_current(-1))


def test_dropping_the_column_of_an_older_spec():
    unpartitioned = commit(
        table(), {"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1}
    )
    after = commit(unpartitioned, add_schema(schema(column(1, "id", required=True))), make_current(-1))
    assert [len(spec["fields"]) for spec in after["partition-specs"]] == [1, 0]


def test_version_1_voids_the_field_of_a_dropped_column():
    voided = {"fields": [partition_field(2, "void", "at_day", **{"field-id": 1000})]}
    after = commit(
        table(1),
        {"action": "add-spec", "spec": voided},
        {"action": "set-default-spec", "spec-id": -1},
        add_schema(schema(column(1, "id", required=True), column(5, "at_day", "int"))),
        make_current(-1),
    )
    assert after["partition-spec"] == voided["fields"]


@pytest.mark.parametrize(
    "kind", ["timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography(srid:1)"]
)
def test_types_of_version_3(kind):
    wanted = schema(*EVENTS["fields"], column(4, "new", kind))
    with pytest.raises(Invalid, match="is not supported until v3"):
        commit(table(2), add_schema(wanted))
    assert len(commit(table(3), add_schema(wanted))["schemas"]) == 2


@pytest.mark.parametrize("key", ["initial-default", "write-default"])
def test_defaults_need_version_3(key):
    wanted = schema(*EVENTS["fields"], column(4, "size", "int", **{key: 7}))
    with pytest.raises(Invalid, match="not supported until v3"):
        commit(table(2), add_schema(wanted))
    assert commit(table(3), add_schema(wanted))["schemas"][1]["fields"][3][key] == 7


@each(
    "kind, value",
    [
        ("int", "7"),
        ("int", True),
        ("int", 2**31),
        ("long", 2**63),
        ("boolean", 1),
        ("double", float("nan")),
        ("string", 1),
        ("date", 5),
        ("variant", {}),
        ("unknown", 1),
        (list_of(9, "int"), [1]),
    ],
)
def test_default_of_another_type_is_refused(kind, value):
    with pytest.raises(Invalid, match="initial-default of column c must be"):
        check_schema(schema(column(1, "c", kind, **{"initial-default": value})), 3)


@each(
    "kind",
    [
        "decimal(",
        "decimal(39, 2)",
        "decimal(0, 0)",
        "decimal(9,-1)",
        "fixed[0]",
        "fixed[]",
        "fixed[99999999999]",
        "INT",
        "varchar",
        "",
        " int",
        "int\n",
        "geography(a, flat)",
        None,
        7,
        True,
        [],
        {},
        {"type": None},
        {"type": []},
        {"type": "set"},
        {"type": "struct"},
        {"type": "struct", "fields": [None]},
        {"type": "list", "element-id": 2, "element": "int"},
        {"type": "list", "element": "int", "element-required": True},
        {"type": "list", "element-id": 2, "element-required": True},
        {"type": "map", "key-id": 2, "key": "int", "value-id": 3, "value": "int", "value-required": "no"},
    ],
)
def test_malformed_type_is_refused_by_the_name_of_its_column(kind):
    with pytest.raises(Invalid) as refusal:
        commit(table(), add_schema(schema(column(1, "c", kind))))
    assert " c" in refusal.value.message
    assert "'add-schema', updates[0]" in refusal.value.message


@each(
    "wrong, said",
    [
        ({"type": "struct"}, "fields of the schema is required"),
        ({"type": "list", "fields": []}, "type of the schema"),
        (schema(column(1, "a"), column(2, "a")), "multiple columns named a: 1 and 2"),
        (schema(column(1, "a.b"), column(2, "a", struct(column(3, "b")))), "multiple columns named a.b"),
        (schema(column(1, "a"), column(1, "b")), "column id 1 is used by a and b"),
        (schema(column(1, "a", list_of(1, "int"))), "column id 1 is used by a and a.element"),
        (schema(column(True, "a")), "id of column a must be a whole number, not a boolean"),
        (schema(column("1", "a")), "id of column a must be a whole number, not a string"),
        (schema(column(1.0, "a")), "id of column a must be a whole number"),
        (schema(column(2**31, "a")), "id of column a must be between"),
        (schema(column(-1, "a")), "id of column a must be between"),
        (schema({"id": 1, "type": "int", "required": True}), "name of a column of the schema is required"),
        (schema({"id": 1, "name": "a", "type": "int"}), "required of column a is required"),
        (schema(column(1, "a", doc=3)), "doc of column a"),
        (schema(column(1, "a"), **{"schema-id": "x"}), "schema-id"),
        (schema(column(1, "a"), **{"identifier-field-ids": 1}), "identifier-field-ids must be a list"),
        (schema(column(1, "a"), **{"identifier-field-ids": [None]}), "identifier-field-ids"),
    ],
)
def test_malformed_schema_is_refused(wrong, said):
    with pytest.raises(Invalid) as refusal:
        commit(table(), add_schema(wrong))
    assert said in refusal.value.message


@each(
    "owner, said",
    [
        (column(1, "a"), "a as an identifier field: not a required field"),
        (column(1, "a", "float", required=True), "must not be float or double"),
        (column(1, "a", "double", required=True), "must not be float or double"),
        (column(1, "a", struct(), required=True), "not a primitive type field"),
        (column(2, "l", list_of(1, "int"), required=True), "must not be nested in list l"),
        (column(2, "m", map_of(1, "int", 3, "int"), required=True), "must not be nested in map m"),
        (column(2, "s", struct(column(1, "a", required=True))), "must not be nested in an optional field s"),
        (column(2, "s", struct(), required=True), "fieldId 1 as an identifier field: field does not exist"),
    ],
)
def test_what_cannot_identify_a_row(owner, said):
    with pytest.raises(Invalid) as refusal:
        commit(table(), add_schema(schema(owner, **{"identifier-field-ids": [1]})))
    assert said in refusal.value.message


def test_identifier_inside_required_structs():
    wanted = schema(
        column(1, "s", struct(column(2, "a", required=True)), required=True), **{"identifier-field-ids": [2]}
    )
    assert len(commit(table(), add_schema(wanted))["schemas"]) == 2


def nested(levels):
    kind: Any = "int"
    for number in range(levels, 1, -1):
        kind = struct(column(number, "c", kind))
    return schema(column(1, "c", kind))


def test_nesting_up_to_the_limit_and_beyond():
    assert len(check_schema(nested(64), 2).columns) == 64
    for levels in (65, 5_000):
        with pytest.raises(Invalid, match="more than 64 levels"):
            check_schema(nested(levels), 2)


def same(one, other):
    return shape(one) == shape(other)


def test_what_makes_two_schemas_the_same():
    one = schema(column(1, "a", "decimal(9,2)", doc=None), **{"schema-id": 3, "identifier-field-ids": []})
    assert same(one, schema(column(1, "a", "decimal(9, 2)")))
    assert not same(one, schema(column(1, "a", "decimal(9, 3)")))
    assert not same(one, schema(column(1, "a", "decimal(9, 2)", doc="d")))
    assert not same(one, schema(column(1, "a", "decimal(9, 2)", required=True)))
    assert not same(schema(column(1, "a"), column(2, "b")), schema(column(2, "b"), column(1, "a")))
    ids = [schema(column(1, "a", required=True), **{"identifier-field-ids": each}) for each in ([1], [])]
    assert not same(*ids)
