"""Metadata for people: columns with what is nested in them, snapshots, and what changed between schemas."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from formats.iceberg import outlines
from formats.iceberg.builder import apply_updates
from formats.iceberg.outlines import Amount, current_columns, outline_struct, outline_versions
from formats.native.outlines import matching, rows_of
from tests.formats.iceberg.table_samples import append, column, list_of, map_of, point, schema, struct, table

STREET = struct(column(5, "street", "string", doc="with its number"), column(6, "zip", "string", required=True))
NESTED = schema(
    column(1, "id", required=True),
    column(2, "homes", list_of(3, STREET)),
    column(7, "scores", map_of(8, "string", 9, list_of(10, "double"))),
    column(11, "by_place", map_of(12, "string", 13, struct(column(14, "at", "date")))),
)


def test_columns_are_listed_with_what_is_nested_in_them() -> None:
    rows = [(row.depth, ".".join(row.path), row.column.type, row.column.id) for row in rows_of(outline_struct(NESTED))]
    assert rows == [
        (0, "id", "long", 1),
        (0, "homes", "list<struct>", 2),
        (1, "homes.street", "string", 5),
        (1, "homes.zip", "string", 6),
        (0, "scores", "map<string, list<double>>", 7),
        (0, "by_place", "map<string, struct>", 11),
        (1, "by_place.at", "date", 14),
    ]
    zip_code = outline_struct(NESTED)[1].fields[1]
    assert zip_code.required and outline_struct(NESTED)[1].fields[0].comment == "with its number"


def test_columns_are_found_by_a_part_of_a_name() -> None:
    columns = outline_struct(NESTED)
    assert [one.name for one in matching(columns, "STREET")] == ["homes"], "by what is nested in it"
    assert [one.name for one in matching(columns, "e")] == ["homes", "scores", "by_place"]
    assert matching(columns, "nothing") == []


def changed_table() -> dict[str, Any]:
    """Two snapshots, a new schema, and a third snapshot with a tag."""
    summary = {"operation": "append", "added-records": "5", "total-records": "7", "added-data-files": "1"}
    metadata = append(append(table(), 1), 2, summary=summary)
    wider = schema(
        column(1, "number", required=True, doc="of the event"), column(2, "at", "timestamp"), column(9, "place", STREET)
    )
    updates: list[dict[str, Any]] = [
        {"action": "add-schema", "schema": wider},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    metadata = append(apply_updates(metadata, updates, now_ms=1_700_000_000_100), 200, **{"schema-id": 1})
    return apply_updates(metadata, [point("audited", 2, "tag")], now_ms=1_700_000_000_300)


def test_snapshots_say_what_they_did() -> None:
    third, second, first = outline_versions(changed_table()).snapshots
    assert (first.id, second.id, third.id) == (1, 2, 200)
    assert (third.is_current, third.refs, third.parent_id) == (True, ("main",), 2)
    assert (second.is_current, second.refs, second.parent_id) == (False, ("audited",), 1)
    assert second.rows == Amount(5, None, 7) and second.files == Amount(1, None, None)
    assert second.at and second.at.isoformat() == "2023-11-14T22:13:20.002000+00:00"
    assert first.schema_changes == second.schema_changes == ()
    assert third.schema_changes == (
        "dropped name",
        "renamed id to number",
        "the comment of number",
        "added place struct",
        "added place.street string",
        "added place.zip string",
    )


def test_schemas_say_what_changed_and_since_when() -> None:
    newest, oldest = outline_versions(changed_table()).schemas
    assert (newest.is_current, newest.column_count, oldest.is_current, oldest.column_count) == (True, 3, False, 3)
    assert newest.changes[0] == "dropped name" and oldest.changes == ()
    assert newest.first_used and oldest.first_used and newest.first_used > oldest.first_used


@pytest.mark.parametrize(
    "after, said",
    [
        ([column(1, "a", "long"), column(2, "b", "string", required=True)], ["a from int to long", "b required"]),
        ([column(2, "b", "string"), column(1, "a", "int")], ["the order of columns"]),
        ([column(1, "a", "int"), column(2, "b", "string")], []),
    ],
)
def test_each_change_is_a_sentence(after: list[dict[str, Any]], said: list[str]) -> None:
    metadata = {
        "schemas": [
            schema(column(1, "a", "int"), column(2, "b", "string"), **{"schema-id": 0}),
            schema(*after, **{"schema-id": 1}),
        ]
    }
    assert list(outline_versions(metadata).schemas[0].changes) == said


def test_much_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_SNAPSHOTS", "MOST_SCHEMAS", "MOST_CHANGES"):
        monkeypatch.setattr(outlines, limit, 1)
    versions = outline_versions(changed_table())
    assert [one.id for one in versions.snapshots] == [200] and versions.snapshot_count == 3
    assert [one.id for one in versions.schemas] == [1] and versions.schema_count == 2
    assert versions.schemas[0].changes == ("dropped name", "and 5 more changes")


def test_a_table_of_version_1_may_have_one_schema_alone() -> None:
    metadata = table(1)
    metadata["schema"] = metadata.pop("schemas")[0]
    assert [one.name for one in current_columns(metadata)] == ["id", "at", "name"]


def spoilt(value: Any) -> Iterator[Any]:
    """The value with one part of it replaced, for each part and each of several wrong values."""
    yield from (None, 7, "x", [], {}, [None, 3])
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            for part in spoilt(value[key]):
                changed = deepcopy(value)
                changed[key] = part
                yield changed


def test_what_is_malformed_is_left_out() -> None:
    metadata = changed_table()
    parts = {key: metadata[key] for key in ("schemas", "snapshots", "refs", "current-schema-id", "current-snapshot-id")}
    for wrong in spoilt(parts):
        if isinstance(wrong, dict):
            current_columns(wrong)
            outline_versions(wrong)


def test_what_nests_too_deep_is_cut() -> None:
    deep: Any = "long"
    for number in range(2_000):
        deep = {"type": "struct", "fields": [column(number, "a", deep)]}
    assert len(list(rows_of(outline_struct(schema(column(1, "a", deep)))))) < 200
