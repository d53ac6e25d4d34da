"""Which views read an object, and what a view reads, as far as the caller may load it."""

from __future__ import annotations

from typing import Any

import pytest

from catalogs.services import catalogs, metalakes
from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import actor, give
from tests.providers.world import World
from tests.views_mgmt.conftest import SCHEMA, VIEWS, body, sql, update
from views_mgmt.models import ViewMeta, ViewRead
from views_mgmt.services import dependencies
from views_mgmt.services.dependencies import read_new_versions
from views_mgmt.sql import process

pytestmark = [pytest.mark.store, pytest.mark.django_db]
TABLES = f"{SCHEMA}/tables"
FLIGHTS = [{"name": "carrier", "type": "string"}, {"name": "arr_delay", "type": "double"}]


def view(admin: Caller, name: str, *representations: dict[str, Any]) -> None:
    made = admin.send("POST", VIEWS, body(name, *representations, columns=[]))
    assert made.status == 200, made.body


@pytest.fixture
def chain(flights: World, admin: Caller) -> None:
    """worst reads late, which reads delays in two dialects, which reads the table flights; other reads a lost table."""
    made = admin.send("POST", TABLES, {"name": "flights", "columns": FLIGHTS, "properties": {}})
    assert made.status == 200, made.body
    trino = sql("trino", 'SELECT carrier, arr_delay AS delay FROM "flights".NYC.Flights')
    view(admin, "delays", sql("spark", "SELECT carrier, arr_delay AS delay FROM flights"), trino)
    view(admin, "late", sql("spark", "SELECT d.* FROM flights.nyc.delays d WHERE d.delay > 60"))
    view(admin, "worst", sql("spark", "SELECT carrier FROM late, flights"))
    view(admin, "other", sql("spark", "SELECT * FROM elsewhere.x.lost"))
    read_new_versions()


def links(caller: Caller, of: str, direction: str) -> set[tuple[str, str | None, int]]:
    answer = caller.send("GET", f"{SCHEMA}/{of}/lineage")
    assert answer.status == 200, answer.body
    return {(each["view"].rpartition(".")[2], each["fullName"], each["level"]) for each in answer[direction]}


def test_views_are_known_to_read_what_they_read(chain: None, admin: Caller) -> None:
    assert links(admin, "tables/flights", "readBy") == {
        ("delays", "flights.nyc.flights", 1),
        ("worst", "flights.nyc.flights", 1),
        ("late", "flights.nyc.delays", 2),
        ("worst", "flights.nyc.late", 3),
    }
    assert links(admin, "views/worst", "reads") == {
        ("worst", "flights.nyc.late", 1),
        ("worst", "flights.nyc.flights", 1),
        ("late", "flights.nyc.delays", 2),
        ("delays", "flights.nyc.flights", 3),
    }
    assert links(admin, "views/delays", "readBy") == {
        ("late", "flights.nyc.delays", 1),
        ("worst", "flights.nyc.late", 2),
    }
    assert links(admin, "views/other", "reads") == {("other", None, 1)}


def test_columns_and_dialects_are_named(chain: None, admin: Caller) -> None:
    first = admin.send("GET", f"{TABLES}/flights/lineage")["readBy"][0]
    assert first["dialects"] == ["spark", "trino"] and first["type"] == "table"
    assert first["columns"] == [{"column": "carrier", "madeOf": "carrier"}, {"column": "delay", "madeOf": "arr_delay"}]
    (lost,) = admin.send("GET", f"{VIEWS}/other/lineage")["reads"]
    assert lost["names"] == ["elsewhere", "x", "lost"] and lost["type"] is None


def test_nothing_is_named_that_the_caller_may_not_load(chain: None, admin: Caller, mia: Caller) -> None:
    assert mia.send("GET", f"{TABLES}/flights/lineage").status == mia.send("GET", f"{TABLES}/none/lineage").status
    for kind, name, privilege in [
        (Kind.CATALOG, "flights", "use_catalog"),
        (Kind.SCHEMA, "flights.nyc", "use_schema"),
        (Kind.TABLE, "flights.nyc.flights", "select_table"),
        (Kind.VIEW, "flights.nyc.worst", "select_view"),
    ]:
        give("mia", kind, name, privilege)
    assert links(mia, "tables/flights", "readBy") == {("worst", "flights.nyc.flights", 1)}
    assert links(mia, "views/worst", "reads") == {("worst", None, 1), ("worst", "flights.nyc.flights", 1)}
    assert mia.send("GET", f"{VIEWS}/late/lineage").status == 404


def test_changes_renames_and_drops_are_followed(chain: None, admin: Caller) -> None:
    query = sql("spark", "SELECT 1 AS carrier")
    admin.send("PUT", f"{VIEWS}/worst", {"updates": [update("updateRepresentation", representation=query)]})
    admin.send("PUT", f"{VIEWS}/delays", {"updates": [update("rename", newName="lags")]})
    admin.send("DELETE", f"{VIEWS}/late")
    read_new_versions()
    assert links(admin, "tables/flights", "readBy") == {("lags", "flights.nyc.flights", 1)}
    assert not ViewRead.objects.filter(view__view_name="worst").exists()


def test_a_renamed_catalog_keeps_its_lineage(chain: None, admin: Caller) -> None:
    before = admin.send("GET", f"{SCHEMA}/tables/flights/lineage")["readBy"]
    renamed = {"updates": [update("rename", newName="planes")]}
    assert admin.send("PUT", "metalakes/demo/catalogs/flights", renamed).status == 200
    views = SCHEMA.replace("flights", "planes")
    after = admin.send("GET", f"{views}/tables/flights/lineage")["readBy"]
    assert [each["fullName"] for each in after] == [
        each["fullName"].replace("flights.nyc", "planes.nyc") for each in before
    ]
    assert len(after) == 4 and {each["names"][0] for each in after} == {"planes"}
    reads = admin.send("GET", f"{views}/views/worst/lineage")["reads"]
    assert [each["fullName"] for each in reads if each["level"] == 1] == ["planes.nyc.late", "planes.nyc.flights"]
    (lost,) = admin.send("GET", f"{views}/views/other/lineage")["reads"]
    assert lost["names"] == ["elsewhere", "x", "lost"]


def test_a_star_is_expanded_by_columns_that_are_known_here(flights: World, admin: Caller, mia: Caller) -> None:
    made = admin.send("POST", TABLES, {"name": "flights", "columns": FLIGHTS, "properties": {}})
    assert made.status == 200 and admin.send("POST", VIEWS, body("delays", sql("spark"))).status == 200
    view(admin, "everything", sql("spark", "SELECT f.*, d.delay AS late FROM flights f, delays d"))
    view(admin, "lost", sql("spark", "SELECT * FROM elsewhere.x.lost"))
    loads = flights.calls("load_table")
    read_new_versions()
    assert flights.calls("load_table") == loads, "no system is asked"

    def columns(caller: Caller) -> dict[str, list[tuple[str, str]]]:
        reads = caller.send("GET", f"{VIEWS}/everything/lineage")["reads"]
        return {
            each["names"][2]: [(one["column"], one["madeOf"]) for one in each["columns"]]
            for each in reads
            if each["level"] == 1
        }

    flights_columns = [("carrier", "carrier"), ("arr_delay", "arr_delay")]
    assert columns(admin) == {"flights": flights_columns, "delays": [("late", "delay")]}
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    give("mia", Kind.SCHEMA, "flights.nyc", "use_schema")
    give("mia", Kind.VIEW, "flights.nyc.everything", "select_view")
    assert columns(mia)["flights"] == [], "the names of hidden columns stand nowhere in the SQL"
    assert admin.send("GET", f"{VIEWS}/lost/lineage")["reads"][0]["columns"] == []


def test_a_star_is_expanded_by_the_columns_of_a_managed_table(admin: Caller) -> None:
    lake = "metalakes/demo/catalogs/lake/schemas"
    for path, asked in [
        ("", {"name": "nyc"}),
        ("/nyc/tables", {"name": "flights", "columns": FLIGHTS, "properties": {}}),
        ("/nyc/views", body("everything", sql("trino", "SELECT * FROM flights"), columns=[])),
    ]:
        assert admin.send("POST", f"{lake}{path}", asked).status == 200
    read_new_versions()
    (link,) = admin.send("GET", f"{lake}/nyc/tables/flights/lineage")["readBy"]
    assert [each["madeOf"] for each in link["columns"]] == ["carrier", "arr_delay"]


def test_circles_end(chain: None, admin: Caller) -> None:
    query = sql("hive", "SELECT * FROM worst")
    admin.send("PUT", f"{VIEWS}/delays", {"updates": [update("addRepresentation", representation=query)]})
    read_new_versions()
    assert ("delays", "flights.nyc.worst", 2) in links(admin, "tables/flights", "readBy")
    assert ("delays", "flights.nyc.worst", 3) in links(admin, "views/worst", "reads")


def test_a_check_finds_circles_of_one_dialect(chain: None, admin: Caller) -> None:
    circle = "It reads “flights.nyc.worst”, which reads this view: no engine runs that."
    for dialect, problems in (("spark", [circle]), ("trino", []), ("hive", [])):
        draft = sql(dialect, "SELECT carrier FROM flights.nyc.worst")
        answer = admin.send("POST", f"{VIEWS}/delays/check", {"representation": draft})
        checked = {each["dialect"]: [one["text"] for one in each["problems"]] for each in answer["dialects"]}
        assert checked == {"spark": [], "trino": [], dialect: problems}


def test_what_could_not_be_reached_is_read_in_the_next_round(
    flights: World, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(admin, "short", sql("spark", "SELECT * FROM t"))
    view(admin, "broken", sql("spark", "SELECT FROM WHERE"))
    view(admin, "long", sql("spark", "SELECT * FROM t -- " + "x" * 100))
    monkeypatch.setattr(process, "MOST_AT_ONCE", 60)
    read_new_versions()
    assert set(ViewMeta.objects.filter(read_version=0).values_list("view_name", flat=True)) == {"long"}
    monkeypatch.undo()
    read_new_versions()
    assert not ViewMeta.objects.filter(read_version=0).exists()
    assert set(ViewRead.objects.values_list("view__view_name", flat=True)) == {"short", "long"}


def test_what_can_never_be_read_whole_holds_up_nobody(
    flights: World, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is tried twice, the second time behind the others; the dialects of it that could be read are noted."""
    long = "SELECT * FROM t -- " + "x" * 100
    view(admin, "plain", sql("spark", "SELECT * FROM t"))
    view(admin, "half", sql("spark", "SELECT * FROM u"), sql("trino", long), sql("hive", long))
    view(admin, "longer", sql("spark", long + "y"))
    monkeypatch.setattr(process, "MOST_AT_ONCE", 60)
    for left in (*[{"half", "longer"}] * 3, {"longer"}, set()):
        read_new_versions()
        assert set(ViewMeta.objects.filter(read_version=0).values_list("view_name", flat=True)) == left
    assert set(ViewRead.objects.values_list("view__view_name", "name")) == {("plain", "t"), ("half", "u")}


def test_views_that_take_all_the_time_hold_up_nobody_else_s(
    flights: World, admin: Caller, mia: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each author in each metalake has a line; before the second of one's slow views is tried, all others are read."""
    for number in range(2):
        view(admin, f"slow{number}", sql("spark", "SELECT * FROM t -- " + "x" * 100))
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    for privilege in ("use_schema", "create_view"):
        give("mia", Kind.SCHEMA, "flights.nyc", privilege)
    view(mia, "mias", sql("spark", "SELECT * FROM t"))
    metalakes.create_metalake(actor("admin"), "other", None, {})
    world = {"world": f"{flights.path}.other"}
    catalogs.create_catalog(actor("admin"), "other", "flights", "relational", "half", None, world)
    other = SCHEMA.replace("demo", "other")
    others = body("others", sql("spark", "SELECT * FROM t"), columns=[])
    for path, asked in ((other.removesuffix("/nyc"), {"name": "nyc"}), (f"{other}/views", others)):
        made = admin.send("POST", path, asked)
        assert made.status == 200, made.body
    monkeypatch.setattr(process, "MOST_AT_ONCE", 80)
    monkeypatch.setattr(dependencies, "BATCH", 2)  # which the older ones fill
    monkeypatch.setattr(dependencies, "LONGEST_ROUND", float("inf"))
    read_new_versions()
    unread = ViewMeta.objects.filter(read_version=0)
    assert sorted(unread.values_list("view_name", "slow_version")) == [("slow0", 1), ("slow1", 0)]
    view(admin, "quick", sql("spark", "SELECT * FROM t"))
    read_new_versions()
    assert {each.view_name for each in unread.all()} == {"slow0", "slow1"}


def test_reading_for_lineage_and_for_people_do_not_wait_for_each_other(flights: World, admin: Caller) -> None:
    view(admin, "delays", sql("spark", "SELECT * FROM t"))
    people = [process.PROCESSES.take() for _ in range(process.PROCESSES.size)]
    try:
        read_new_versions()
        assert ViewRead.objects.exists()
    finally:
        for place in people:
            assert place is not None
            process.PROCESSES.leave(place)
    place = process.IN_BACKGROUND.take()
    assert place is not None
    try:
        view(admin, "late", sql("spark", "SELECT * FROM t"))
        read_new_versions()
        assert not ViewRead.objects.filter(view__view_name="late").exists(), "one at a time"
        assert admin.send("POST", f"{VIEWS}/delays/check").status == 200
    finally:
        process.IN_BACKGROUND.leave(place)
