"""Grants on outside objects that nobody met: met on the way, for who could load them or grant on them, in few calls."""

from __future__ import annotations

from typing import Any

import pytest

from authz.actor import Actor
from catalogs.services import finding
from metalake.kinds import Kind
from metalake.models import Securable
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

M = "metalakes/demo"
ALLOW = [{"name": "select_table", "condition": "allow"}]
ON = {"type": "table", "fullName": "deep.flights.delays"}
READ = "privilege=select_table&user=mia"
WISH = {"change": "grant", "role": "readers", "privilege": "select_table", "condition": "allow", "on": ON}
GRANT = ("PUT", f"{M}/permissions/roles/readers/table/deep.flights.delays/grant", {"privileges": ALLOW})
ASKED: list[tuple[str, str, Any]] = [
    GRANT,
    ("POST", f"{M}/roles", {"name": "new", "securableObjects": [ON | {"privileges": ALLOW}]}),
    ("PUT", f"{M}/permissions/roles/readers", {"overrides": [ON | {"privileges": ALLOW}]}),
    ("PUT", f"{M}/owners/table/deep.flights.delays", {"name": "mia", "type": "USER"}),
    ("GET", f"{M}/objects/table/deep.flights.delays/roles", None),
    ("GET", f"{M}/access/explain?type=table&fullName=deep.flights.delays&{READ}", None),
    ("POST", f"{M}/access/changes", {"changes": [WISH]}),
    ("POST", f"{M}/access/proposals", ON | {"users": ["mia"], "privileges": ALLOW}),
]


def file_of(*names: str) -> dict[str, Any]:
    grants = [{"type": "table", "fullName": f"deep.{name}", "allow": ["select_table"]} for name in names]
    return {"metalake": "demo", "roles": [{"name": "readers", "grants": grants}]}


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


@pytest.mark.parametrize("way", ASKED, ids=lambda way: way[1].partition("demo/")[2][:20])
def test_what_nobody_met_is_met_on_the_way(unmet: World, admin: Caller, way: tuple[str, str, Any]) -> None:
    answer = admin.send(*way)
    assert answer.status == 200, answer.body
    assert is_known()


def test_a_check_and_a_plan_file_meet_it_too(unmet: World, admin: Caller) -> None:
    unknown = ON | {"fullName": "deep.flights.none"}
    questions = [each | {"privilege": "select_table"} for each in (ON, unknown)]
    answers = admin.post(f"{M}/access/check", {"questions": questions})["answers"]
    assert [each["allowed"] for each in answers] == [True, False]
    unmet.put_table("flights", "weather")
    planned = admin.post(f"{M}/access/plan", file_of("flights.weather", "flights.delays"))["plan"]
    assert len(planned["changes"]) == 2


def test_who_may_grant_there_without_loading_has_it_met(unmet: World, admin: Caller, mia: Caller) -> None:
    assert mia.send(*GRANT).status == 404
    assert not is_known()
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema", "manage_grants")
    assert mia.send(*GRANT).status == 200


@pytest.mark.parametrize("way", [GRANT, ASKED[3], ASKED[4], ASKED[5], ASKED[7]])
def test_to_others_it_is_missing_and_nobody_is_asked(
    unmet: World, admin: Caller, mia: Caller, way: tuple[str, str, Any]
) -> None:
    admin.get(f"{M}/catalogs/deep/schemas/flights")
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema")
    before = asked(unmet)
    none = tuple(part.replace("delays", "none") if isinstance(part, str) else part for part in way)
    if isinstance(way[2], dict) and "fullName" in way[2]:
        none = (*none[:2], way[2] | {"fullName": "deep.flights.none"})
    there, missing = mia.send(*way), mia.send(*none)
    assert there.status == missing.status == 404
    assert there.message.replace("delays", "none") == missing.message
    assert (asked(unmet), is_known()) == (before, False)


def test_many_unknown_names_are_few_calls(unmet: World, admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        unmet.put_table("flights", f"day{number:02}")
    before = asked(unmet)
    known = [f"flights.day{number:02}" for number in range(40)]
    unknown = [f"flights.none{number}" for number in range(900)] + [f"none{number}.t" for number in range(100)]
    refused = admin.post(f"{M}/access/plan", file_of(*known, *unknown))
    assert refused.status == 404 and "none0" in refused.message
    listed = 41 // 3 + 1
    assert asked(unmet) - before <= listed + finding.LOOKS + 2 * finding.MOST_CONTAINERS
    assert all(map(is_known, (name.partition(".")[2] for name in known)))
    monkeypatch.setattr(finding, "SECONDS", -1.0)
    before = asked(unmet)
    assert admin.post(f"{M}/access/plan", file_of("none.t")).status == 404
    assert asked(unmet) == before, "time is up"
