"""Whatever a client sends for a view, it is answered with one of our errors or with metadata that can be read again."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import orjson
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from formats.iceberg.metadata_json import dump
from formats.iceberg.requirements import check_view_requirements
from formats.iceberg.views.builder import ACTIONS, apply_view_updates, new_view_metadata
from formats.iceberg.views.metadata_json import parse_view_metadata
from formats.iceberg.views.translate import from_iceberg_view, updates_for
from metalake.errors import Invalid, MetalakeError
from tests.formats.iceberg.spoiling import GARBAGE, spoilt
from tests.formats.iceberg.table_samples import NOW, UUID, Json, column, schema
from tests.formats.iceberg.test_malformed_updates import NESTED
from tests.formats.iceberg.views.view_samples import (
    LATER,
    SPARK_CREATE,
    add_schema,
    add_version,
    make_current,
    put,
    query,
    replaced,
    version,
    view,
)
from tests.profiles import weighing

GOOD = [
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 1},
    add_schema(NESTED),
    {"action": "set-location", "location": "s3://lake/elsewhere"},
    put(a="b"),
    {"action": "set-properties", "updates": {"version.history.num-entries": "2"}},
    {"action": "remove-properties", "removals": ["a"]},
    add_version(query("select 3"), query("select 3", "trino"), **{"schema-id": -1, "default-catalog": "c"}),
    add_version(query("select 4"), **{"storage-table": {"namespace": ["n"], "name": "st"}}),
    make_current(),
    make_current(1),
]
BASES = [view(), replaced(view(query("select 1"), properties={"a": "b"}), query("select 2"), query("x", "trino"))]


def answer(base: Json, updates: Any) -> Json | None:
    try:
        return apply_view_updates(base, updates, now_ms=LATER)
    except MetalakeError as error:
        assert error.message
        return None


@st.composite
def spoilt_updates(draw: st.DrawFn) -> Any:
    chosen = draw(st.lists(st.sampled_from(GOOD), min_size=1, max_size=4))
    return [*draw(st.permutations(chosen))[:-1], spoilt(draw, chosen[-1])]


def test_the_good_ones_cover_every_action_and_are_accepted() -> None:
    assert {update["action"] for update in GOOD} == set(ACTIONS)
    assert answer(BASES[0], GOOD) is not None


@weighing(2, suppress_health_check=[HealthCheck.too_slow])
@given(base=st.sampled_from(BASES), updates=spoilt_updates())
def test_spoilt_updates(base: Json, updates: Any) -> None:
    before = deepcopy(base)
    after = answer(base, updates)
    assert base == before
    if after is not None:
        with suppress(Invalid):  # a number over 64 bits, which no JSON of ours carries
            from_iceberg_view(parse_view_metadata(dump(after)))


@weighing(1)
@given(base=st.sampled_from(BASES), updates=GARBAGE)
def test_garbage_for_updates(base: Json, updates: Any) -> None:
    answer(base, updates)


@weighing(1)
@given(action=st.sampled_from(sorted(ACTIONS)), rest=st.dictionaries(st.text(max_size=4), GARBAGE, max_size=2))
def test_action_with_garbage(action: str, rest: Any) -> None:
    answer(BASES[1], [{**rest, "action": action}])


@st.composite
def spoilt_creations(draw: st.DrawFn) -> Any:
    good = {
        "schema": NESTED,
        "version": SPARK_CREATE["view-version"],
        "properties": {"comment": "c", "version.history.num-entries": "5"},
        "location": "s3://lake/v",
    }
    part = draw(st.sampled_from(sorted(good)))
    return good | {part: spoilt(draw, good[part])}


@weighing(1)
@given(wanted=spoilt_creations())
def test_spoilt_creation(wanted: Any) -> None:
    with suppress(MetalakeError):
        dump(new_view_metadata(view_uuid=UUID, now_ms=NOW, **wanted))


@weighing(0.5)
@given(requirements=st.data())
def test_spoilt_requirements(requirements: st.DataObject) -> None:
    good = [{"type": "assert-view-uuid", "uuid": UUID}, {"type": "assert-view-uuid", "uuid": UUID}]
    with suppress(MetalakeError):
        check_view_requirements(spoilt(requirements.draw, good), view())


WRITTEN = view(query(), query("x", "trino"), properties={"a": "b"}) | {
    "schemas": [schema(column(1, "a"), column(2, "s", {"type": "struct", "fields": [column(3, "x")]}))]
}


@weighing(2)
@given(data=st.data())
def test_a_spoilt_file_is_read_or_refused_and_what_is_read_can_be_changed(data: st.DataObject) -> None:
    with suppress(MetalakeError, orjson.JSONEncodeError):
        metadata = parse_view_metadata(orjson.dumps(spoilt(data.draw, WRITTEN)))
        definition = from_iceberg_view(metadata)
        dump(definition.as_json())
        answer(metadata, [put(c="d"), add_schema(NESTED), add_version(**version(query("y"), **{"schema-id": -1}))])
        answer(metadata, [make_current(1), put(c="d")])
        updates_for(definition, from_iceberg_view(BASES[1]), metadata)
        updates_for(from_iceberg_view(BASES[1]), definition, metadata)
