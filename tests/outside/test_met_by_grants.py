"""Grants on outside objects that nobody met: met on the way, for who could load them or grant on them, in few calls."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from authz.actor import Actor
from authz.services.grant_entries import Ask
from authz.services.roles import create_role
from catalogs.services import resolution
from metalake.errors import Invalid, NotFound, ProviderBusy, ProviderTimeout, ProviderUnavailable
from metalake.kinds import Kind
from metalake.models import Securable
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.memory import MemoryTables
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

M = "metalakes/demo"
ALLOW = [{"name": "select_table", "condition": "allow"}]
ON = {"type": "table", "fullName": "deep.flights.delays"}
WISH = {"change": "grant", "role": "readers", "privilege": "select_table", "condition": "allow", "on": ON}
GRANT = ("PUT", f"{M}/permissions/roles/readers/table/deep.flights.delays/grant", {"privileges": ALLOW})
OWNER = ("PUT", f"{M}/owners/table/deep.flights.delays", {"name": "mia", "type": "USER"})
QUESTIONS: list[tuple[str, str, Any]] = [
    ("GET", f"{M}/objects/table/deep.flights.delays/roles", None),
    ("GET", f"{M}/owners/table/deep.flights.delays", None),
    ("GET", f"{M}/access/explain?type=table&fullName=deep.flights.delays&privilege=select_table&user=mia", None),
    ("GET", f"{M}/access/objects/table/deep.flights.delays", None),
]
CHANGES: list[tuple[str, str, Any]] = [
    GRANT,
    ("POST", f"{M}/roles", {"name": "new", "securableObjects": [ON | {"privileges": ALLOW}]}),
    ("PUT", f"{M}/permissions/roles/readers", {"overrides": [ON | {"privileges": ALLOW}]}),
    OWNER,
    ("POST", f"{M}/access/changes", {"changes": [WISH]}),
    ("POST", f"{M}/access/proposals", ON | {"users": ["mia"], "privileges": ALLOW}),
]


def about(name: str, way: tuple[str, str, Any]) -> tuple[str, str, Any]:
    """The same request about another table."""
    return orjson.loads(orjson.dumps(way).replace(b"delays", name.encode()))


def file_of(*names: str) -> dict[str, Any]:
    grants = [{"type": "table", "fullName": f"deep.{name}", "allow": ["select_table"]} for name in names]
    return {"metalake": "demo", "roles": [{"name": "readers", "grants": grants}]}


def asks(*names: str) -> list[Ask]:
    return [Ask(Kind.TABLE, f"deep.{name}", [("select_table", "allow")]) for name in names]


@pytest.fixture
def unmet(actor: Actor, admin: Caller, mia: Caller, world: World) -> World:
    """A schema with a table in it, which an engine made a moment ago; and a role without grants."""
    world.put_schema("flights")
    world.put_table("flights", "delays")
    admin.post(f"{M}/roles", {"name": "readers"})
    return world


def asked(world: World) -> int:
    with world.open() as state:
        return sum(state["calls"].values())


def is_known(name: str = "delays") -> bool:
    return Securable.objects.filter(name=name, kind=Kind.TABLE).exists()


def test_what_nobody_met_is_met_on_the_way(unmet: World, admin: Caller) -> None:
    for number, way in enumerate([*CHANGES, *QUESTIONS]):
        unmet.put_table("flights", f"table{number}")
        answer = admin.send(*about(f"table{number}", way))
        assert answer.status == 200, (way, answer.body)
        assert is_known(f"table{number}"), way
    planned = admin.post(f"{M}/access/plan", file_of("flights.delays"))["plan"]
    assert planned["changes"] and is_known()


def test_a_check_asks_no_outside_system(unmet: World, admin: Caller) -> None:
    before = asked(unmet)
    questions = [
        ON | {"privilege": "select_table"},
        {"type": "metalake", "fullName": "demo", "privilege": "use_catalog"},
    ]
    answers = admin.post(f"{M}/access/check", {"questions": questions})["answers"]
    assert [each["allowed"] for each in answers] == [False, True]
    assert (asked(unmet), is_known()) == (before, False)


def test_a_system_that_is_down_fails_changes_by_its_name_and_no_questions(
    unmet: World, admin: Caller, actor: Actor
) -> None:
    unmet.fail("load_schema", *["denied"] * 50)
    for way in QUESTIONS:
        there, missing = admin.send(*way), admin.send(*about("none", way))
        assert there.status == missing.status == 404, way
        assert there.message.replace("delays", "none") == missing.message
    with pytest.raises(ProviderUnavailable, match="Catalog deep: Memory knows no such key"):
        create_role(actor, "demo", "new", {}, asks("flights.delays"))
    for way in CHANGES:
        with pytest.raises(AssertionError, match="Catalog deep: Memory knows no such key"):  # a status of 5xx
            admin.send(*way)


def test_who_may_grant_there_without_loading_has_it_met(unmet: World, admin: Caller, mia: Caller) -> None:
    assert mia.send(*GRANT).status == 404
    assert not is_known()
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema", "manage_grants")
    assert mia.send(*GRANT).status == 200


def test_to_others_it_is_missing_and_nobody_is_asked(unmet: World, admin: Caller, mia: Caller) -> None:
    admin.get(f"{M}/catalogs/deep/schemas/flights")
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema")
    before = asked(unmet)
    for way in (GRANT, OWNER, *QUESTIONS, CHANGES[-1]):
        there, missing = mia.send(*way), mia.send(*about("none", way))
        assert there.status == missing.status == 404, way
        assert there.message.replace("delays", "none") == missing.message
    assert (asked(unmet), is_known()) == (before, False)


def test_many_unknown_names_are_few_calls(unmet: World, admin: Caller, actor: Actor) -> None:
    for number in range(40):
        unmet.put_table("flights", f"day{number:02}")
    before = asked(unmet)
    known = [f"flights.day{number:02}" for number in range(40)]
    unknown = [f"flights.none{number}" for number in range(900)] + [f"none{number}.t" for number in range(100)]
    with pytest.raises(ProviderBusy, match="Send it again"):
        create_role(actor, "demo", "new", {}, asks(*known, *unknown))
    listed = 41 // 3 + 1
    assert asked(unmet) - before <= listed + resolution.LOOKS + 2 * resolution.MOST_CONTAINERS
    assert all(map(is_known, (name.partition(".")[2] for name in known)))
    refused = admin.post(f"{M}/access/plan", file_of(*known, *unknown))
    assert refused.status == 404 and "none0" in refused.message, "what was asked for and is not there"


def test_names_that_stay_unasked_are_no_missing_ones(
    unmet: World, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(25):
        unmet.put_schema(f"s{number}")
        unmet.put_table(f"s{number}", "t")
    names = asks(*(f"s{number}.t" for number in range(25)))
    with pytest.raises(ProviderBusy):
        create_role(actor, "demo", "new", {}, names)
    create_role(actor, "demo", "new", {}, names)
    ticks = iter(range(100))
    monkeypatch.setattr(resolution, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(resolution, "SECONDS", 2)
    for number in range(10):
        unmet.put_table("s0", f"u{number}")
    before = asked(unmet)
    with pytest.raises(ProviderBusy):
        create_role(actor, "demo", "newer", {}, asks(*(f"s0.u{number}" for number in range(10))))
    assert asked(unmet) - before == 2, "the time is read before each call"


def test_a_listing_ends_in_time_and_a_recent_one_serves(
    unmet: World, admin: Caller, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        unmet.put_table("flights", f"day{number:02}")
    names = asks(*(f"flights.day{number:02}" for number in range(30)))
    monkeypatch.setattr(resolution, "monotonic", lambda: time.monotonic() - resolution.SECONDS)
    with pytest.raises(ProviderTimeout, match=r"Catalog deep: .* end of list_tables in time"):
        create_role(actor, "demo", "new", {}, names)
    assert unmet.calls("list_tables") == 1
    monkeypatch.undo()
    changed = {"@type": "setProperty", "property": "cache-ttl", "value": "3600"}
    admin.send("PUT", f"{M}/catalogs/deep", {"updates": [changed]})
    admin.get(f"{M}/catalogs/deep/schemas/flights/tables")
    for number in range(15):
        unmet.put_table("flights", f"later{number:02}")
    listed, loaded = unmet.calls("list_tables"), unmet.calls("load_table")
    later = asks(*(f"flights.later{number:02}" for number in range(15)))
    with pytest.raises(ProviderBusy):
        create_role(actor, "demo", "new", {}, later)
    create_role(actor, "demo", "new", {}, later)
    assert (unmet.calls("list_tables"), unmet.calls("load_table")) == (listed, loaded + 15)


def test_a_name_with_dots_is_asked_for_only_if_they_are_escaped(unmet: World, admin: Caller, actor: Actor) -> None:
    unmet.put_table("flights", "t.v2")
    before = asked(unmet)
    with pytest.raises(Invalid, match="Write a dot inside a name as its percent escape"):
        create_role(actor, "demo", "new", {}, asks("flights.t.v2", *(f"s{n}.a.b.c.d.e.f.g" for n in range(50))))
    assert asked(unmet) == before
    create_role(actor, "demo", "new", {}, asks("flights.t%2Ev2"))
    create_role(actor, "demo", "newer", {}, asks("flights.t.v2"))


def test_a_table_that_the_catalog_hides_is_missing(
    unmet: World, admin: Caller, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.send(*GRANT)
    monkeypatch.setattr(MemoryTables, "hides_some", True)
    monkeypatch.setattr(MemoryTables, "shows", lambda self, table: table.name.startswith("day"))
    for number in range(20):
        unmet.put_table("flights", f"day{number:02}")
        unmet.put_table("flights", f"night{number:02}")
    admin.get(f"{M}/catalogs/deep/schemas/flights/tables")
    with pytest.raises(NotFound, match="night00"):
        create_role(actor, "demo", "new", {}, asks(*(f"flights.night{number:02}" for number in range(20))))
    assert is_known("day19") and not is_known("night19")
    assert is_known(), "what is hidden later keeps its row and its grants"
