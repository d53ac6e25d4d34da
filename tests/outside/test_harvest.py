"""Listings that a job delivers: what is taken from them, and that they remove no more than the server's own walk."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authz.actor import Actor
from catalogs.models import Catalog, HarvestedPart, Mirror, RefreshRun, Tombstone
from metalake.kinds import Kind
from metalake.models import Securable
from outside import harvest, refresh
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.outside.harvesting import CATALOGS, Harvester
from tests.outside.test_refresh import age, counts, run_now
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def full(actor: Actor, world: World) -> World:
    """Three schemas of seven tables, and one inside another."""
    for schema in (["flights"], ["sales"], ["weather"], ["weather", "north"]):
        world.put_schema(*schema)
        for number in range(7):
            world.put_table(*schema, f"t{number}")
    return world


@pytest.fixture
def job(full: World, admin: Caller) -> Harvester:
    return Harvester(admin, full)


def rows() -> set[tuple[Any, ...]]:
    """All that is known of the catalog but for ids and times."""
    fields = "wire_name", "identity", "version", "formats", "securable__name", "securable__kind", "securable__creator"
    return {
        (*values, str(definition))
        for *values, definition in Mirror.objects.values_list(*fields, "securable__parent__name", "definition")
    }


def change(world: World) -> None:
    world.put_table("sales", "new")
    world.drop("sales", "t1")
    world.drop("flights", "t3")
    world.put_table("flights", "t3", columns=["another"])
    world.put_schema("empty")
    with world.open() as state:
        state["tables"]["sales\x1ft2"]["definition"]["comment"] = "changed"


def test_a_harvest_ends_with_the_rows_of_a_refresh(job: Harvester, full: World) -> None:
    first = job.run()
    assert (first["state"], first["seen"], first["created"], first["dropped"]) == ("done", 32, 32, 0)
    harvested = rows()
    assert len(harvested) == 32
    assert counts(run_now()) == (32, 0, 0, 0)
    age()
    change(full)
    second = Harvester(job.caller, full).run()
    assert [second[name] for name in ("seen", "created", "changed", "dropped")] == [33, 3, 1, 2]
    harvested = rows()
    assert counts(run_now()) == (33, 0, 0, 0)
    assert rows() == harvested
    assert HarvestedPart.objects.count() == 0, "they go with the end of the run"
    assert RefreshRun.objects.filter(is_delivered=True, requested_by="admin").count() == 2


def test_what_is_known_is_not_delivered_again(job: Harvester) -> None:
    job.run()
    again = Harvester(job.caller, job.world)
    again.begin()
    for schema in ("", "flights"):
        assert all(answer.status == 200 for answer in again.part(schema))
    assert [again.known(name)["objects"][0][0] for name in ("", "weather")] == ["flights", "t0"]
    assert RefreshRun.objects.get(pk=again.begun["refresh"]["id"]).created == 0


def test_a_part_delivered_twice_counts_once(job: Harvester, full: World) -> None:
    full.put_table("sales", "no name here \x7f")
    job.begin()
    job.part("")
    for _ in range(2):
        job.part("sales")
        job.whole("sales")
    run = RefreshRun.objects.get()
    assert (run.seen, run.created, run.skipped) == (12, 11, 1)
    assert job.whole("") == job.caller.get(job.place)["refresh"]
    body = {"turn": job.begun["turn"], "missing": [], "missingInAll": 0, "listed": 4, "isLast": True}
    twice = job.caller.post(f"{job.place}/missing", body | {"askedAt": run.started_at.isoformat()})
    assert twice["refresh"]["state"] == "done", "the end of a run may be told twice, too"


def test_another_turn_goes_on_where_the_first_stopped(job: Harvester) -> None:
    job.begin()
    job.schema("flights")
    job.part("sales")
    later = Harvester(job.caller, job.world)
    later.begin()
    assert later.begun["refresh"]["id"] == job.begun["refresh"]["id"]
    assert later.begun["refresh"]["seen"] == 7, "of what was delivered whole"
    assert {answer.error[0] for answer in job.blind("weather")} == {409}, "another has taken over"
    assert later.known("flights")["isWhole"] and not later.known("sales")["isWhole"]
    ended = later.run()
    assert (ended["state"], ended["seen"], ended["created"]) == ("done", 32, 32)
    assert counts(run_now()) == (32, 0, 0, 0)


def test_what_began_long_ago_is_begun_anew(job: Harvester) -> None:
    first = job.begin()["refresh"]["id"]
    RefreshRun.objects.update(started_at=timezone.now() - harvest.RESUMED_WITHIN - timedelta(minutes=1))
    assert job.begin()["refresh"]["id"] != first
    assert RefreshRun.objects.get(pk=first).error == "Nothing was delivered any more."


@pytest.mark.parametrize("kind", ["schemas", "tables"])
def test_an_empty_answer_buries_nothing(job: Harvester, full: World, kind: str) -> None:
    for number in range(20):
        full.put_table("sales", f"more{number}")
    job.run()
    age()
    with full.open() as state:
        saved = state[kind]
        state[kind] = {}
    lost = Harvester(job.caller, full)
    ended = lost.run() if kind == "schemas" else _all_of(lost)
    assert (ended["state"], ended["heldBack"]) == ("done", 4 if kind == "schemas" else 27)
    with full.open() as state:
        state[kind] = saved
    assert counts(run_now())[1:] == (0, 0, 0) if kind == "schemas" else (21, 0, 0)
    with full.open() as state:
        state[kind] = {}
    age()
    accepted = Harvester(job.caller, full)
    ended = accepted.run(acceptDrops=True) if kind == "schemas" else _all_of(accepted, acceptDrops=True)
    assert ended["heldBack"] == 0
    assert not Securable.objects.filter(kind=Kind.TABLE, mirror__isnull=False).exists()


def _all_of(job: Harvester, **asked: Any) -> dict[str, Any]:
    job.begin(**asked)
    for schema in ("flights", "sales", "weather", "weather\x1fnorth"):
        job.schema(schema)
    return job.whole("")


def test_what_is_said_to_be_missing_is_asked_for_by_name(job: Harvester) -> None:
    job.run()
    age()
    job.begin()
    ended = job.whole("sales", missing=["t0", "t1", "nothing"], missingInAll=3, listed=4)
    assert (ended["dropped"], Tombstone.objects.count()) == (0, 0)
    many = job.whole("flights", missing=["t0"], missingInAll=12, listed=1)
    assert many["heldBack"] == 12
    again = job.whole("flights", missing=["t0"], missingInAll=12, listed=1)
    assert again["heldBack"] == 12, "counted once"


def test_what_was_written_since_a_listing_stays(job: Harvester, full: World) -> None:
    job.run()
    later = Harvester(job.caller, full)
    later.begin()
    known = later.known("sales")
    with full.open() as state:
        old = dict(state["tables"]["sales\x1ft2"])
        state["tables"]["sales\x1ft2"] = old | {"definition": old["definition"] | {"comment": "newer"}}
    age()
    full.drop("sales", "t5")
    assert run_of_schema(job.caller, "t2") == "newer"
    body = {"turn": later.begun["turn"], "schema": "sales", "askedAt": known["askedAt"]}
    part = {"part": "0", "seen": 1, "entries": [{"name": "t2", **old}]}
    assert job.caller.post(f"{later.place}/parts", body | part)["refresh"]["changed"] == 0
    assert Mirror.objects.get(wire_name="t2", securable__parent__name="sales").definition["comment"] == "newer"


def run_of_schema(caller: Caller, table: str) -> Any:
    return caller.get(f"{CATALOGS}/deep/schemas/sales/tables/{table}?refresh=true")["table"].get("comment")


def test_one_refresh_at_a_time(job: Harvester, admin: Caller) -> None:
    job.begin()
    joined = admin.post(f"{CATALOGS}/deep/refreshes")["refresh"]
    assert joined["id"] == job.begun["refresh"]["id"], "the run that is under way"
    assert refresh.carry_on(int(joined["id"])) is None and refresh.abandoned() == []
    RefreshRun.objects.update(lease_until=timezone.now() - timedelta(minutes=2))
    assert refresh.abandoned() == [] and refresh.carry_on(int(joined["id"])) is None
    walk = run_now()
    assert (walk.state, walk.is_delivered) == (RefreshRun.State.DONE, False)
    assert "Nothing was delivered any more" in RefreshRun.objects.get(pk=joined["id"]).error
    assert job.blind("sales")[0].error[0] == 409
    refresh.begin(Catalog.objects.get(name="deep").pk, here=True)
    refused = admin.post(f"{CATALOGS}/deep/harvests")
    assert refused.error[0] == 409 and "walks over the catalog" in refused.message


def test_who_may(job: Harvester, mia: Caller, admin: Caller) -> None:
    assert mia.post(f"{CATALOGS}/deep/harvests").error[0] == 404
    assert admin.post(f"{CATALOGS}/lake/harvests").error[:2] == (405, 1006)
    job.begin()
    other = Harvester(mia, job.world, begun=job.begun)
    for answer in (*other.blind("sales"), mia.get(f"{job.place}/known?turn=1")):
        assert answer.error[0] == 404
    admin.patch(f"{CATALOGS}/deep", in_use=False)
    assert {answer.error[1] for answer in job.blind("sales")} == {1009}
    assert RefreshRun.objects.get().seen == 0


@each(
    "wrong, names",
    [
        ({"entries": [{"definition": {}}]}, "name"),
        ({"entries": ["t"]}, "entries[0]"),
        ({"askedAt": "2020-01-01T00:00:00Z"}, "askedAt"),
        ({"askedAt": "yesterday"}, "askedAt"),
        ({"turn": 10**10}, "turn"),
        ({"part": ""}, "part"),
        ({"seen": -1}, "seen"),
        ({"entries": [{"name": str(number)} for number in range(1_001)]}, "entries"),
        ({"more": 1}, "more"),
    ],
)
def test_what_is_no_delivery_is_refused(job: Harvester, wrong: dict[str, Any], names: str) -> None:
    job.begin()
    job.part("")
    before = rows()
    answer = job.part("sales", **wrong)[0]
    assert answer.status == 400 and names in answer.message, answer.body
    assert rows() == before and RefreshRun.objects.get().seen == 4
