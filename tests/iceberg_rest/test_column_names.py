"""Columns with the name of a partition field, and columns that differ by case alone, wherever columns come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from catalogs.models import Catalog
from providers.metadata_files import METADATA
from tests.catalogs.callers import Caller as Native
from tests.catalogs.callers import update
from tests.iceberg_rest.world import Caller, replacing, view_version

pytestmark = pytest.mark.django_db

TABLE = "namespaces/a/tables/t"
NATIVE = "metalakes/demo/catalogs/lake/schemas/a"
TAKEN = "Cannot create identity partition sourced from different field in schema: ts_day"
TWINS = "Columns 'body' and 'Body' differ only in case"
BY_DAY = {"fields": [{"source-id": 1, "name": "ts_day", "transform": "day"}]}
UNPARTITIONED: dict[str, Any] = {"action": "add-spec", "spec": {"fields": []}}
DEFAULT_SPEC = {"action": "set-default-spec", "spec-id": -1}
CURRENT = {"action": "set-current-schema", "schema-id": -1}


def schema(*names: str, first: str = "ts") -> dict[str, Any]:
    """A timestamp of id 1, and integers of these names."""
    fields = [{"id": 1, "name": first, "type": "timestamp", "required": False}]
    fields += [{"id": 2 + at, "name": name, "type": "int", "required": False} for at, name in enumerate(names)]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def evolve(caller: Caller, *updates: dict[str, Any], to: dict[str, Any] | None = None) -> tuple[int, str]:
    added = [{"action": "add-schema", "schema": to}, CURRENT] if to else []
    answer = caller.post(TABLE, {"requirements": [], "updates": [*updates, *added]})
    return (answer.status, "") if answer.status == 200 else (answer.status, answer.error[2])


def rewritten(made: dict[str, Any], name: str, **parts: Any) -> str:
    """The metadata as another writer might have left it, in a folder of its own."""
    metadata = made["metadata"] | {"table-uuid": f"00000000-0000-4000-8000-{len(name):012}"} | parts
    metadata["location"] += name
    file = Path(metadata["location"].removeprefix("file://")) / "metadata" / "v1.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(orjson.dumps(metadata))
    return f"file://{file}"


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    return owner


def test_a_column_cannot_take_the_name_of_a_partition_field(home: Caller) -> None:
    made = home.make_table("a", "t", **{"schema": schema("n"), "partition-spec": BY_DAY})
    refused = (400, TAKEN)
    assert evolve(home, to=schema("n", "ts_day")) == refused
    assert evolve(home, to=schema("ts_day")) == refused
    native = Native("admin")
    added = update("addColumn", fieldName=["ts_day"], type="date", nullable=True)
    renamed = update("renameColumn", oldFieldName=["n"], newFieldName="ts_day")
    for change in (added, renamed):
        answer = native.put(f"{NATIVE}/tables/t", change)
        assert (answer.status, answer.message) == (400, TAKEN)
    own = evolve(home, to=schema("n", first="ts_day"))
    assert own == (200, ""), "the source itself may be called so"
    spoilt = rewritten(made, "x", schemas=[schema("n", "ts_day")])
    assert home.post("namespaces/a/register", {"name": "r", "metadata-location": spoilt}).error[2] == TAKEN


def test_specs_of_the_past_count_and_those_whose_source_is_gone_do_not(home: Caller) -> None:
    home.make_table("a", "t", **{"schema": schema("n"), "partition-spec": BY_DAY})
    assert evolve(home, UNPARTITIONED, DEFAULT_SPEC) == (200, "")
    assert evolve(home, to=schema("n", "ts_day")) == (400, TAKEN), "Java binds every spec"
    without: dict[str, Any] = schema("n") | {"fields": schema("n", "ts_day")["fields"][1:]}
    assert evolve(home, to=without) == (200, "")
    assert evolve(home, {"action": "remove-partition-specs", "spec-ids": [0]}, to=schema("ts_day")) == (200, "")


def test_a_staged_table_is_checked_when_it_is_made(home: Caller) -> None:
    place = home.make_table("a", "near")["metadata"]["location"] + "x"
    updates = [
        {"action": "assign-uuid", "uuid": "00000000-0000-4000-8000-000000000001"},
        {"action": "add-schema", "schema": schema("body", "ts_day")},
        CURRENT,
        {"action": "add-spec", "spec": {"fields": []}},
        DEFAULT_SPEC,
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": place},
    ]
    for spec, fields, said in ((BY_DAY, ("ts_day",), TAKEN), ({"fields": []}, ("body", "Body"), TWINS)):
        updates[1]["schema"], updates[3]["spec"] = schema(*fields), spec
        answer = home.post(TABLE, {"requirements": [{"type": "assert-create"}], "updates": updates})
        assert answer.status == 400 and answer.error[2].startswith(said), answer.content


def test_a_table_that_has_such_a_column_is_written_to_and_mended(home: Caller) -> None:
    made = home.make_table("a", "t", **{"schema": schema("n", "body"), "partition-spec": BY_DAY})
    pointed = Path(made["metadata-location"].removeprefix("file://"))
    spoilt = schema("ts_day", "body", "Body")
    pointed.write_bytes(orjson.dumps(made["metadata"] | {"schemas": [spoilt], "last-column-id": 4}))
    METADATA.forget(Catalog.objects.get().pk, made["metadata-location"])
    assert evolve(home, {"action": "set-properties", "updates": {"k": "v"}}) == (200, "")
    assert evolve(home, to=schema("ts_day", "body", "Body", "more")) == (200, "")
    assert evolve(home, to=schema("ts_day", "body", "Body", "BODY"))[0] == 400
    assert evolve(home, to=schema("day", "body", "Body")) == (200, "")
    assert evolve(home, to=schema("day", "body")) == (200, "")
    assert evolve(home, to=schema("ts_day", "body")) == (400, TAKEN)


INNER = schema("body", "Body")["fields"]
NESTED = {"id": 9, "name": "s", "required": False, "type": {"type": "struct", "fields": INNER}}


@pytest.mark.parametrize("fields", [INNER, [NESTED]])
def test_columns_that_differ_by_case_alone_are_refused_wherever_they_come_from(
    home: Caller, fields: list[dict[str, Any]]
) -> None:
    native, wanted = Native("admin"), {**schema(), "fields": fields}
    last = NESTED["name"] if fields == [NESTED] else ""
    said = TWINS.replace("'b", "'s.b").replace("'B", "'s.B") if last else TWINS
    made = home.make_table("a", "t", schema=schema("body"))

    def require_refused(message: str) -> None:
        assert message.startswith(said) and "allow-case-distinct-columns" in message, message

    require_refused(home.post("namespaces/a/tables", {"name": "u", "schema": wanted}).error[2])
    if not last:
        require_refused(evolve(home, to=wanted)[1])
        require_refused(native.put(f"{NATIVE}/tables/t", update("addColumn", fieldName=["Body"], type="long")).message)
        columns = [{"name": name, "type": "long"} for name in ("body", "Body")]
        require_refused(native.post(f"{NATIVE}/tables", {"name": "u", "columns": columns}).message)
        query = {"type": "sql", "dialect": "trino", "sql": "SELECT 1"}
        view = {"name": "v", "columns": columns, "representations": [query]}
        require_refused(native.post(f"{NATIVE}/views", view).message)
    strange = rewritten(made, "xx", schemas=[wanted], **{"last-column-id": 9})
    register = {"name": "r", "metadata-location": strange}
    require_refused(home.post("namespaces/a/register", register).error[2])

    allowing = update("setProperty", property="allow-case-distinct-columns", value="true")
    assert native.put("metalakes/demo/catalogs/lake", allowing).status == 200
    assert home.post("namespaces/a/tables", {"name": "u", "schema": wanted}).status == 200
    assert home.post("namespaces/a/register", register).status == 200


def test_columns_of_a_view(home: Caller) -> None:
    home.make_view("a", "v", schema=schema("body"))
    body = {"name": "w", "schema": schema("body", "Body"), "view-version": view_version(), "properties": {}}
    assert home.post("namespaces/a/views", body).error[2].startswith(TWINS)
    change = replacing()
    change["updates"][0]["schema"] = schema("body", "Body")
    assert TWINS in home.post("namespaces/a/views/v", change).error[2]
