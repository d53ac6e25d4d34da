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
from views_mgmt.services.dependencies import read_new_versions

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


def make_view(caller: Caller, name: str, text: str) -> None:
    made = caller.send("POST", VIEWS, body(name, sql("spark", text), columns=[]))
    assert made.status == 200, made.body


def reads(caller: Caller, view: str) -> Any:
    answer = caller.send("GET", f"{VIEWS}/{view}/lineage")
    assert answer.status == 200, answer.body
    return answer["reads"]


def test_lineage_of_a_hidden_table_is_that_of_a_missing_one(mia: Caller) -> None:
    texts = [
        "SELECT d.*, h.* FROM dict d, hr.{} h",
        "SELECT d.*, salary, nothing FROM dict d, hr.{} h",
        "SELECT word, x.* FROM dict d, (SELECT * FROM hr.{}) x",
        "SELECT * FROM dict JOIN hr.{} USING (id)",
        "SELECT h.salary, d.word FROM dict d, hr.{} h",
        "SELECT * FROM flights.hr.{}",  # which may be a schema of the view's catalog, too
    ]
    for number, text in enumerate(texts):
        for name in (HIDDEN, MISSING):
            make_view(mia, f"{name}{number}", text.format(name))
    read_new_versions()
    for number, text in enumerate(texts):
        hidden = json.dumps(reads(mia, f"{HIDDEN}{number}")).replace(HIDDEN, MISSING)
        assert hidden == json.dumps(reads(mia, f"{MISSING}{number}")), text


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


def deliver(admin: Caller, view: str, problem: str = "", read: str = "", *columns: str) -> None:
    schema, _, name = read.rpartition(".")
    dialect = {
        "dialect": "spark",
        "problems": [{"text": problem}] if problem else [],
        "differences": [],
        "reads": [{"catalog": "flights", "schemaName": schema, "name": name}] if read else [],
        "columns": [{"name": each, "type": "string", "madeOf": [{"source": 0, "name": each}]} for each in columns],
    }
    findings = [{"view": ViewMeta.objects.get(view_name=view).pk, "version": 1, "dialects": [dialect]}]
    delivered = admin.send("POST", "bulk/metalakes/demo/views/findings", {"engine": "Spark", "findings": findings})
    assert delivered["stored"] == [findings[0]["view"]]


def unseen(caller: Caller, view: str) -> bool:
    """Whether nothing is told of the only dialect of a view's finding, or all."""
    finding = caller.get(f"{VIEWS}/{view}/finding")["finding"]
    assert finding["unseen"] == ([] if finding["dialects"] else ["spark"])
    assert finding["dialects"] or not finding["broken"]
    return not finding["dialects"]


def broken(caller: Caller) -> set[str]:
    return {each["fullName"].rpartition(".")[2] for each in caller.get("metalakes/demo/views/broken")["views"]}


def events(caller: Caller, view: str) -> set[str]:
    changes = caller.get(f"metalakes/demo/access/objects/view/flights.nyc.{view}/changes")["changes"]
    return {each["event"] for each in changes}


def test_findings_are_for_those_who_may_load_what_is_read(admin: Caller, mia: Caller) -> None:
    """All that it reads, by views between too; whoever owns a view is told no more by its audit."""
    for name in (HIDDEN, MISSING):
        for view in ("read", "refused", "untold"):
            make_view(mia, f"{view}_{name}", f"SELECT * FROM hr.{name}")
        make_view(mia, f"called_{name}", f"SELECT d.*, h.* FROM dict d, IDENTIFIER('hr.' || '{name}') h")
        make_view(mia, f"over_{name}", f"SELECT * FROM read_{name}")
    make_view(mia, "own", "SELECT * FROM dict")
    read_new_versions()
    deliver(admin, "own", "There is no column `x`.")
    for name in (HIDDEN, MISSING):
        deliver(admin, f"read_{name}", "", f"hr.{name}", "id", "salary")
        deliver(admin, f"refused_{name}", "There is no column `salary`.")
        deliver(admin, f"untold_{name}", "", "", "salary")
        deliver(admin, f"called_{name}", "", "nyc.dict", "salary")
        deliver(admin, f"over_{name}", "", f"nyc.read_{name}", "id")
        views = [f"{view}_{name}" for view in ("read", "refused", "untold", "called", "over")]
        assert all(unseen(mia, view) for view in views) and not any(unseen(admin, view) for view in views)
    assert broken(mia) == {"own"} and broken(admin) == {"own", f"refused_{HIDDEN}", f"refused_{MISSING}"}
    assert events(mia, f"refused_{HIDDEN}") == {"view.created"} < events(admin, f"refused_{HIDDEN}")
    give("mia", Kind.SCHEMA, "flights.hr", "use_schema")
    give("mia", Kind.TABLE, f"flights.hr.{HIDDEN}", "select_table")
    assert not any(unseen(mia, f"{view}_{HIDDEN}") for view in ("read", "refused", "untold", "over"))
    assert unseen(mia, f"read_{MISSING}"), "another table there could be hidden"


def test_what_is_missing_is_told_where_nothing_could_be_hidden(admin: Caller, mia: Caller) -> None:
    make_view(mia, "lost", "SELECT * FROM nothing")
    deliver(admin, "lost", "Spark finds no nothing.")
    assert unseen(mia, "lost"), "nobody has looked yet what it reads"
    read_new_versions()
    assert not unseen(mia, "lost")
    deliver(admin, "lost", "", "elsewhere.nothing", "id")
    assert unseen(mia, "lost")
