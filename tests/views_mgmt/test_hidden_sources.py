"""What a view reads and its reader may not load is as missing, whatever is stored or delivered about the view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.world import World
from tests.views_mgmt.conftest import SCHEMA, VIEWS, body, sql
from views_mgmt.models import ViewMeta
from views_mgmt.services.reading import read_new_versions

pytestmark = [pytest.mark.store, pytest.mark.django_db]
HR = SCHEMA.replace("nyc", "hr")
HIDDEN, MISSING = "salaries", "nobodies"


@pytest.fixture(autouse=True)
def tables(flights: World, admin: Caller, mia: Caller) -> None:
    """mia may do everything in `nyc`, which has the table `dict`, and load nothing of `hr`, which has `salaries`."""
    assert admin.send("POST", "metalakes/demo/catalogs/flights/schemas", {"name": "hr"}).status == 200
    make_table(admin, SCHEMA, "dict", "id", "word")
    make_table(admin, HR, HIDDEN, "id", "salary")
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    for privilege in ("use_schema", "create_view", "select_view", "alter_view", "create_table", "select_table"):
        give("mia", Kind.SCHEMA, "flights.nyc", privilege)


def make_table(caller: Caller, schema: str, name: str, *columns: str) -> None:
    asked = {"name": name, "columns": [{"name": each, "type": "string"} for each in columns], "properties": {}}
    made = caller.send("POST", f"{schema}/tables", asked)
    assert made.status == 200, made.body


def make_view(caller: Caller, name: str, text: str) -> int:
    made = caller.send("POST", VIEWS, body(name, sql("spark", text), columns=[]))
    assert made.status == 200, made.body
    return ViewMeta.objects.get(view_name=name, deleted_at=0).pk


def reads(caller: Caller, view: str) -> Any:
    answer = caller.send("GET", f"{VIEWS}/{view}/lineage")
    assert answer.status == 200, answer.body
    return answer["reads"]


def alike(one: Any, other: Any) -> bool:
    """Whether an answer about the view of the missing table is that about the view of the hidden one."""
    return json.dumps(one).replace("of_hidden", "of_missing").replace(HIDDEN, MISSING) == json.dumps(other)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT d.*, h.* FROM dict d, hr.{} h",
        "SELECT d.*, salary, nothing FROM dict d, hr.{} h",
        "SELECT word, x.* FROM dict d, (SELECT * FROM hr.{}) x",
        "SELECT * FROM dict JOIN hr.{} USING (id)",
        "SELECT h.salary, d.word FROM dict d, hr.{} h",
        "SELECT * FROM flights.hr.{}",  # which may be a schema of the view's catalog, too
    ],
)
def test_lineage_of_a_hidden_table_is_that_of_a_missing_one(text: str, mia: Caller) -> None:
    make_view(mia, "of_hidden", text.format(HIDDEN))
    make_view(mia, "of_missing", text.format(MISSING))
    read_new_versions()
    assert alike(reads(mia, "of_hidden"), reads(mia, "of_missing"))


def test_a_star_tells_of_the_object_alone_that_was_read(admin: Caller, mia: Caller) -> None:
    """Not of a namesake that was there before, whose columns its reader could not load."""
    make_view(mia, "all_of_it", f"SELECT d.*, h.* FROM dict d, hr.{HIDDEN} h")
    read_new_versions()
    columns = {each["names"][2]: [one["madeOf"] for one in each["columns"]] for each in reads(admin, "all_of_it")}
    assert columns == {"dict": ["id", "word"], HIDDEN: ["id", "salary"]}
    assert [len(each["columns"]) for each in reads(mia, "all_of_it")] == [2, 0]
    assert admin.send("DELETE", f"{HR}/tables/{HIDDEN}").status == 200
    make_table(admin, HR, HIDDEN, "id")
    for privilege in ("use_schema", "select_table"):
        give("mia", Kind.SCHEMA, "flights.hr", privilege)
    link = reads(mia, "all_of_it")[1]
    assert link["type"] == "table" and link["columns"] == []


def deliver(admin: Caller, view: int, problem: str = "", read: str = "", *columns: str) -> None:
    schema, _, name = read.rpartition(".")
    dialect = {
        "dialect": "spark",
        "problems": [{"text": problem}] if problem else [],
        "differences": [],
        "reads": [{"catalog": "flights", "schemaName": schema, "name": name}] if read else [],
        "columns": [{"name": each, "type": "string", "madeOf": [{"source": 0, "name": each}]} for each in columns],
    }
    findings = [{"view": view, "version": 1, "dialects": [dialect]}]
    delivered = admin.send("POST", "bulk/metalakes/demo/views/findings", {"engine": "Spark", "findings": findings})
    assert delivered["stored"] == [view]


def told(caller: Caller, view: str) -> dict[str, Any]:
    """What the caller is told of a view's finding, wherever it is."""
    finding = caller.get(f"{VIEWS}/{view}/finding")["finding"]
    broken = [each["fullName"] for each in caller.get("metalakes/demo/views/broken")["views"]]
    changes = caller.get(f"metalakes/demo/access/objects/view/flights.nyc.{view}/changes")["changes"]
    events = [each["event"] for each in changes]
    return {name: finding[name] for name in ("broken", "dialects", "unseen")} | {"listed": broken, "events": events}


@pytest.mark.parametrize(
    ("problem", "read", "columns"),
    [
        ("", "hr.{}", ("id", "salary")),
        ("There is no column `salary`.", "", ()),
        ("", "", ("salary",)),
    ],
)
def test_findings_are_for_those_who_may_load_what_is_read(
    problem: str, read: str, columns: tuple[str, ...], admin: Caller, mia: Caller
) -> None:
    for view, name in (("of_hidden", HIDDEN), ("of_missing", MISSING)):
        id = make_view(mia, view, f"SELECT * FROM hr.{name}")
        make_view(mia, f"over_{view}", f"SELECT * FROM {view}")
        read_new_versions()
        deliver(admin, id, problem, read.format(name), *columns)
        deliver(admin, ViewMeta.objects.get(view_name=f"over_{view}").pk, problem, read and f"nyc.{view}", "id")
        unseen = {"broken": False, "dialects": [], "unseen": ["spark"], "listed": [], "events": ["view.created"]}
        assert told(mia, view) == told(mia, f"over_{view}") == unseen
        whole = told(admin, view)
        assert whole["unseen"] == [] and whole["dialects"] and whole["broken"] == bool(problem)
        assert ("view.drifted" in whole["events"]) == bool(problem)
        for each in (view, f"over_{view}"):
            deliver(admin, ViewMeta.objects.get(view_name=each).pk)
    give("mia", Kind.SCHEMA, "flights.hr", "use_schema")
    give("mia", Kind.TABLE, f"flights.hr.{HIDDEN}", "select_table")
    deliver(admin, ViewMeta.objects.get(view_name="of_hidden").pk, problem, read.format(HIDDEN), *columns)
    assert told(mia, "of_hidden")["unseen"] == []


def test_what_is_missing_is_told_where_nothing_could_be_hidden(admin: Caller, mia: Caller) -> None:
    lost = make_view(mia, "lost", "SELECT * FROM nothing")
    deliver(admin, lost, "Spark finds no nothing.")
    assert told(mia, "lost")["unseen"] == ["spark"], "nobody has read yet what it reads"
    read_new_versions()
    assert told(mia, "lost")["listed"] == ["flights.nyc.lost"]
    deliver(admin, lost, "", "elsewhere.nothing", "id")
    assert told(mia, "lost")["unseen"] == ["spark"], "her schema has no such table, another could"
