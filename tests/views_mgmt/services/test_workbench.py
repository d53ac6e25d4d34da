"""The dialect workbench: checks of all dialects against what is there, and suggestions for one that is missing."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from metalake.kinds import Kind
from metalake.models import Metalake
from tests.catalogs.callers import Answer, Caller
from tests.demo import give
from tests.providers.world import World
from tests.views_mgmt.conftest import SCHEMA, VIEWS, body, sql, update
from views_mgmt.services import workbench
from views_mgmt.sql import process

pytestmark = pytest.mark.django_db
VIEW = f"{VIEWS}/delays"
TABLES = f"{SCHEMA}/tables"
FLIGHTS = [{"name": "carrier", "type": "string"}, {"name": "arr_delay", "type": "double"}]
SPARK = "SELECT carrier, avg(arr_delay) AS delay FROM flights GROUP BY carrier"
TRINO = 'SELECT carrier, CAST(avg(arr_delay) AS double) AS delay FROM "Flights".NYC.flights GROUP BY carrier'
FLINK = "SELECT carrier, arr_delay AS delay FROM `nyc`.`flights`"


@pytest.fixture
def delays(flights: World, admin: Caller) -> None:
    made = admin.send("POST", TABLES, {"name": "flights", "columns": FLIGHTS, "properties": {}})
    assert made.status == 200, made.body
    made = admin.send("POST", VIEWS, body("delays", sql("spark", SPARK), sql("Trino", TRINO), sql("flink", FLINK)))
    assert made.status == 200, made.body


def check(caller: Caller, *draft: dict[str, Any], view: str = VIEW) -> dict[str, dict[str, Any]]:
    answer = caller.send("POST", f"{view}/check", *({"representation": each} for each in draft))
    assert answer.status == 200, answer.body
    return {each["dialect"]: each for each in answer["dialects"]}


def suggest(caller: Caller, **asked: str) -> Answer:
    return caller.send("POST", f"{VIEW}/suggest", asked)


def test_every_dialect_is_read_and_resolved(delays: None, admin: Caller) -> None:
    checked = check(admin)
    assert list(checked) == ["spark", "Trino", "flink"]
    for each in checked.values():
        (read,) = each["reads"]
        assert (read["type"], read["fullName"], read["reason"]) == ("table", "flights.nyc.flights", None)
        assert [column["name"] for column in each["columns"]] == ["carrier", "delay"]
        assert [column["madeOf"] for column in each["columns"]] == [
            [{"source": 0, "name": "carrier"}],
            [{"source": 0, "name": "arr_delay"}],
        ]
        assert each["problems"] == each["differences"] == []
    assert [each["generic"] for each in checked.values()] == [False, False, True]
    assert [each["type"] for each in checked["Trino"]["columns"]] == ["string", "double"]


def test_what_broke_since_a_table_changed_is_said(delays: None, admin: Caller) -> None:
    changes = [update("renameColumn", oldFieldName=["arr_delay"], newFieldName="late")]
    changed = admin.send("PUT", f"{TABLES}/flights", {"updates": changes})
    assert changed.status == 200, changed.body
    assert [each["text"] for each in check(admin)["spark"]["problems"]] == ["No table here has a column “arr_delay”."]
    assert admin.send("DELETE", f"{TABLES}/flights")["dropped"]
    (read,) = check(admin)["spark"]["reads"]
    assert read == {
        "catalog": None,
        "schemaName": None,
        "name": "flights",
        "type": None,
        "fullName": None,
        "reason": workbench.UNSEEN,
    }


def test_what_a_caller_may_not_load_is_as_missing(delays: None, admin: Caller, mia: Caller) -> None:
    assert mia.send("POST", f"{VIEW}/check").status == mia.send("POST", f"{VIEWS}/none/check").status
    for kind, name, privilege in [
        (Kind.CATALOG, "flights", "use_catalog"),
        (Kind.SCHEMA, "flights.nyc", "use_schema"),
        (Kind.VIEW, "flights.nyc.delays", "select_view"),
    ]:
        give("mia", kind, name, privilege)
    star = sql("hive", "SELECT f.*, g.* FROM flights f, nothing g")
    reads = check(mia, star)["hive"]["reads"]
    assert len(reads) == 2 and all(each["reason"] == workbench.UNSEEN and each["type"] is None for each in reads)
    assert check(mia, star)["hive"]["columns"] is None
    assert check(admin, star)["hive"]["reads"][0]["type"] == "table"
    assert suggest(mia, dialect="hive").status == 200


def test_one_member_s_checks_leave_others_theirs(delays: None, admin: Caller, mia: Caller) -> None:
    for kind, name in ((Kind.CATALOG, "flights"), (Kind.SCHEMA, "flights.nyc")):
        give("mia", kind, name, f"use_{kind}")
    give("mia", Kind.VIEW, "flights.nyc.delays", "select_view")
    metalake = Metalake.objects.get(name="demo").pk
    with process._place(process.SqlCaller("admin", metalake)):
        for refused in (admin.send("POST", f"{VIEW}/check"), suggest(admin, dialect="hive")):
            assert (refused.status, refused.headers["Retry-After"]) == (429, "1") and "Try again" in refused.message
        assert list(check(mia)) == ["spark", "Trino", "flink"] and suggest(mia, dialect="hive").status == 200


def test_dialects_that_differ_from_the_declared_columns_are_marked(delays: None, admin: Caller) -> None:
    checked = check(admin, sql("TRINO", "SELECT carrier, carrier AS delay FROM flights"))
    assert checked["TRINO"]["differences"] == [{"text": "“delay” is string instead of double.", "position": 2}]
    assert checked["spark"]["differences"] == []
    new = check(admin, sql("hive", "SELECT 1 AS carrier"))
    assert new["hive"]["differences"] == [{"text": "It yields 1 column instead of 2.", "position": None}]
    assert [each["dialect"] for each in admin.send("GET", VIEW)["view"]["representations"]] == [
        "spark",
        "Trino",
        "flink",
    ]


def test_columns_that_spark_renames_are_no_differences(delays: None, admin: Caller) -> None:
    """Spark notes what the columns of an Iceberg view are called in its query."""
    query = sql("spark", "SELECT carrier AS c, arr_delay AS d FROM flights")
    for names, texts in (
        ("c,d", []),
        ("c", ["It yields “c” instead of “carrier”.", "It yields “d” instead of “delay”."]),
    ):
        made = body(f"of {names}", query, properties={workbench.SPARK_QUERY_COLUMNS: names})
        assert admin.send("POST", VIEWS, made).status == 200
        checked = check(admin, view=f"{VIEWS}/{quote(made['name'])}")["spark"]
        assert [each["text"] for each in checked["differences"]] == texts


def test_views_and_nested_names_are_read_too(delays: None, admin: Caller) -> None:
    text = "SELECT d.carrier, d.delay FROM spark_catalog.nyc.delays d JOIN flights.nyc.flights ON true"
    made = admin.send("POST", VIEWS, body("worst", sql("spark", text)))
    assert made.status == 200, made.body
    checked = check(admin, view=f"{VIEWS}/worst")["spark"]
    assert [(each["type"], each["fullName"]) for each in checked["reads"]] == [
        ("view", "flights.nyc.delays"),
        ("table", "flights.nyc.flights"),
    ]
    assert checked["problems"] == checked["differences"] == []


def test_nothing_is_looked_up_when_the_time_is_over(
    delays: None, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "time", SimpleNamespace(monotonic=lambda: inf))
    assert [each["reason"] for each in check(admin)["spark"]["reads"]] == [workbench.NOT_LOOKED_UP]


def test_a_view_that_reads_itself_is_no_trouble(delays: None, admin: Caller) -> None:
    checked = check(admin, sql("spark", "SELECT * FROM delays"))
    (read,) = checked["spark"]["reads"]
    assert read["fullName"] == "flights.nyc.delays"
    assert "It reads the view itself, which no engine runs." in [each["text"] for each in checked["spark"]["problems"]]
    assert checked["flink"]["problems"] == []


def test_hostile_sql_leaves_the_other_dialects_their_answers(delays: None, admin: Caller) -> None:
    deep = sql("hive", f"SELECT {'(' * 3000}1{')' * 3000}")
    checked = check(admin, deep)
    assert [each["text"] for each in checked["hive"]["problems"]] == ["It is nested too deeply to be read here."]
    assert checked["hive"]["reads"] == [] and checked["hive"]["columns"] is None
    assert checked["spark"]["reads"][0]["type"] == "table"


def test_a_draft_is_checked_as_an_alteration_is(delays: None, admin: Caller) -> None:
    blank = admin.send("POST", f"{VIEW}/check", {"representation": sql("hive", "  ")})
    large = admin.send("POST", f"{VIEW}/check", {"representation": sql("hive", "x" * (2**20 + 1))})
    other = admin.send("POST", f"{VIEW}/check", {"representation": {"dialect": "hive"}})
    assert (blank.status, large.status, other.status) == (400, 413, 400)
    assert "must not be blank" in blank.message and "1048576" in large.message


def test_a_suggestion_is_stored_nowhere(delays: None, admin: Caller) -> None:
    suggested = suggest(admin, dialect="hive", source="trino")["suggestion"]
    assert suggested["source"] == "Trino" and suggested["representation"]["dialect"] == "hive"
    assert "FROM `Flights`.NYC.flights" in suggested["representation"]["sql"]
    assert suggested["notCarriedOver"] == suggested["problems"] == [] and not suggested["generic"]
    assert suggest(admin, dialect="spark")["suggestion"]["source"] == "Trino"  # another one than itself
    assert suggest(admin, dialect="hive", source="flink")["suggestion"]["generic"]
    assert admin.send("GET", VIEW)["view"]["version"] == 1


def test_a_suggestion_needs_a_source(delays: None, admin: Caller) -> None:
    none = suggest(admin, dialect="hive", source="snowflake")
    assert none.status == 400 and "it has spark, Trino, flink" in none.message
    assert suggest(admin, dialect=" ").status == 400
    assert admin.send("POST", VIEWS, body("broken", sql("spark", "SELECT FROM"))).status == 200
    broken = admin.send("POST", f"{VIEWS}/broken/suggest", {"dialect": "trino"})["suggestion"]
    assert broken["representation"] is None and broken["problems"]
