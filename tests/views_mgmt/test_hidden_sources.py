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
