"""Whatever a client sends, it is answered with one of our errors or with metadata that can be written."""

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from formats.iceberg.builder import ACTIONS, apply_updates, new_table_metadata
from formats.iceberg.metadata_json import dump
from formats.iceberg.requirements import check_requirements
from metalake.errors import Invalid, MetalakeError
from tests.formats.iceberg.spoiling import GARBAGE, spoilt
from tests.formats.iceberg.table_samples import (
    EVENTS,
    NOW,
    UUID,
    add,
    append,
    column,
    list_of,
    map_of,
    partition_field,
    point,
    schema,
    snapshot,
    sort_field,
    struct,
    table,
)
from tests.profiles import weighing

NESTED = schema(
    *EVENTS["fields"],
    column(4, "s", struct(column(5, "x", "decimal(9, 2)")), **{"initial-default": None}),
    column(6, "l", list_of(7, "string")),
    column(8, "m", map_of(9, "string", 10, "fixed[3]")),
    **{"schema-id": 3, "identifier-field-ids": [1]},
)
STATISTICS = {
    "snapshot-id": 1,
    "statistics-path": "s3://lake/s",
    "file-size-in-bytes": 1,
    "file-footer-size-in-bytes": 1,
    "blob-metadata": [{"type": "t", "snapshot-id": 1, "sequence-number": 1, "fields": [1], "properties": {"a": "b"}}],
}
GOOD = [
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "add-schema", "schema": NESTED, "last-column-id": 12},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "remove-schemas", "schema-ids": [5]},
    {"action": "add-spec", "spec": {"spec-id": 1, "fields": [partition_field(1, "bucket[4]", "b")]}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "remove-partition-specs", "spec-ids": [5]},
    {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [sort_field(3)]}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    add(snapshot(3, sequence=3, parent=2, **{"first-row-id": 0, "added-rows": 4})),
    point("main", 3, **{"min-snapshots-to-keep": 1, "max-ref-age-ms": 5}),
    {"action": "remove-snapshots", "snapshot-ids": [1]},
    {"action": "remove-snapshot-ref", "ref-name": "main"},
    {"action": "set-location", "location": "s3://lake/t"},
    {"action": "set-properties", "updates": {"a": "b"}},
    {"action": "remove-properties", "removals": ["a"]},
    {"action": "set-statistics", "snapshot-id": 1, "statistics": STATISTICS},
    {"action": "remove-statistics", "snapshot-id": 1},
    {"action": "set-partition-statistics", "partition-statistics": STATISTICS},
    {"action": "remove-partition-statistics", "snapshot-id": 1},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "YQ=="}},
    {"action": "remove-encryption-key", "key-id": "k"},
]
BASES = [None, table(1), append(append(table(2), 1), 2), table(3)]


@st.composite
def spoilt_updates(draw):
    chosen = draw(st.lists(st.sampled_from(GOOD), min_size=1, max_size=4))
    return [*draw(st.permutations(chosen))[:-1], spoilt(draw, chosen[-1])]


def answer(base, updates):
    try:
        return apply_updates(base, updates, now_ms=NOW + 100, previous_location="s3://lake/v1.json")
    except MetalakeError as error:
        assert error.message
        return None


def test_the_good_ones_cover_every_action_and_are_accepted():
    assert {update["action"] for update in GOOD} == set(ACTIONS)
    assert answer(BASES[2], GOOD) is not None


@weighing(6, suppress_health_check=[HealthCheck.too_slow])
@given(base=st.sampled_from(BASES), updates=spoilt_updates())
def test_spoilt_updates(base, updates):
    before = deepcopy(base)
    after = answer(base, updates)
    assert base == before
    if after is not None and after is not base:
        with suppress(Invalid):  # a number over 64 bits, which no JSON of ours carries
            dump(after)


@weighing(2)
@given(base=st.sampled_from(BASES), updates=GARBAGE)
def test_garbage_for_updates(base, updates):
    answer(base, updates)


@weighing(2)
@given(action=st.sampled_from(sorted(ACTIONS)), rest=st.dictionaries(st.text(max_size=4), GARBAGE, max_size=2))
def test_action_with_garbage(action, rest):
    answer(BASES[2], [{**rest, "action": action}])


@st.composite
def spoilt_creations(draw):
    good = {
        "schema": NESTED,
        "partition_spec": {"fields": [partition_field(2, "day", "d")]},
        "sort_order": {"order-id": 1, "fields": [sort_field(3)]},
        "properties": {"format-version": "2", "a": "b"},
        "location": "s3://lake/t",
    }
    part = draw(st.sampled_from(sorted(good)))
    return good | {part: spoilt(draw, good[part])}


@weighing(3)
@given(wanted=spoilt_creations())
def test_spoilt_creation(wanted):
    try:
        dump(new_table_metadata(table_uuid=UUID, now_ms=NOW, **wanted))
    except MetalakeError as error:
        assert error.message


@weighing(3)
@given(base=st.sampled_from(BASES), requirements=st.data())
def test_spoilt_requirements(base, requirements):
    good = [
        {"type": "assert-table-uuid", "uuid": UUID},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
    ]
    try:
        check_requirements(spoilt(requirements.draw, good), base)
    except MetalakeError as error:
        assert error.message


@pytest.mark.parametrize("depth", [100, 5_000])
def test_nesting_without_end(depth):
    kind: Any = "int"
    for _ in range(depth):
        kind = {"type": "list", "element-id": 1, "element": kind, "element-required": True}
    assert answer(BASES[2], [{"action": "add-schema", "schema": schema(column(0, "c", kind))}]) is None
