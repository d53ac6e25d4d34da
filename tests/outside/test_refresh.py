"""Refreshing: by difference, resumable, and never believing that everything is gone."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from authz.actor import Actor
from authz.models import AuditEntry
from catalogs.models import Catalog, Mirror, RefreshRun, Tombstone
from metalake import outbox
from metalake.kinds import Kind
from metalake.models import Outbox, Securable
from outside import refresh, schedule
from tests.catalogs.callers import Caller
from tests.providers.world import World
from tests.waiting import eventually

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

CATALOG = "metalakes/demo/catalogs/deep"


@pytest.fixture
def full(actor: Actor, world: World) -> World:
    """Three schemas of seven tables; pages hold three."""
    for schema in ("flights", "sales", "weather"):
        world.put_schema(schema)
        for number in range(7):
            world.put_table(schema, f"t{number}")
    return world


def run_now(*, accept_drops: bool = False) -> RefreshRun:
    begun = refresh.begin(Catalog.objects.get(name="deep").pk, here=True, accept_drops=accept_drops)
    ended = refresh.carry_on(begun.pk)
    assert ended is not None
    return ended


def age() -> None:
    """As if all that is known had been known for long."""
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))


def counts(run: RefreshRun) -> tuple[int, ...]:
    return run.seen, run.created, run.changed, run.dropped


def test_it_finds_what_was_made_changed_and_dropped(full: World) -> None:
    first = run_now()
    assert (first.state, counts(first)) == (RefreshRun.State.DONE, (24, 24, 0, 0))
    age()
    full.put_table("sales", "new")
    full.drop("sales", "t1")
    with full.open() as state:
        state["tables"]["sales\x1ft2"]["definition"]["comment"] = "changed"
    second = run_now()
    assert counts(second) == (24, 1, 1, 1)
    names = Securable.objects.filter(parent__name="sales").values_list("name", flat=True)
    assert set(names) == {"t0", "t2", "t3", "t4", "t5", "t6", "new"}
    assert AuditEntry.objects.filter(event="table.dropped_outside").count() == 1
    assert Tombstone.objects.get().full_name == "deep.sales.t1"


def test_an_unchanged_catalog_costs_no_row(full: World) -> None:
    run_now()
    age()
    run = refresh.begin(Catalog.objects.get(name="deep").pk, here=True)
    before = {model: model.objects.count() for model in (Securable, Mirror, AuditEntry, Outbox)}
    with CaptureQueriesContext(connection) as queries:
        refresh.carry_on(run.pk)
    written = {
        sql.split('"')[1] for query in queries if (sql := query["sql"]).split(" ")[0] in ("INSERT", "UPDATE", "DELETE")
    }
    assert written == {"catalogs_refreshrun"}
    assert {model: model.objects.count() for model in before} == before


def test_who_takes_over_goes_on_where_it_stopped(full: World) -> None:
    begun = refresh.begin(Catalog.objects.get(name="deep").pk, here=True)
    pages = 0

    class Killed(BaseException):
        pass

    def kill(run: RefreshRun) -> None:
        nonlocal pages
        pages += 1
        if pages == 6:  # in the middle of the second schema
            raise Killed

    with pytest.raises(Killed):
        refresh.carry_on(begun.pk, kill)
    assert refresh.carry_on(begun.pk) is None, "somebody may still be at it"
    RefreshRun.objects.update(lease_until=timezone.now() - timedelta(minutes=2))
    assert eventually(lambda: full.calls("list_tables") == 6), "the page after, which was fetched ahead"
    assert refresh.abandoned() == [begun.pk]
    refresh.carry_on(begun.pk)
    ended = RefreshRun.objects.get()
    assert (ended.state, ended.seen) == (RefreshRun.State.DONE, 24)
    assert full.calls("list_tables") == 12, "the finished schema was walked again"
    assert Securable.objects.filter(kind=Kind.TABLE).count() == 21


@pytest.mark.parametrize("kind", ["schemas", "tables"])
def test_an_empty_answer_drops_nothing(full: World, kind: str) -> None:
    for number in range(20):
        full.put_table("sales", f"more{number}")
    run_now()
    age()
    with full.open() as state:
        saved = state[kind]
        state[kind] = {}
    run = run_now()
    assert (run.state, run.dropped) == (RefreshRun.State.DONE, 0 if kind == "schemas" else 14)
    assert run.held_back == (3 if kind == "schemas" else 27)
    with full.open() as state:
        state[kind] = saved
    assert run_now().held_back == 0
    age()
    with full.open() as state:
        state[kind] = {}
    assert run_now(accept_drops=True).held_back == 0
    assert Securable.objects.filter(kind=Kind.TABLE).count() == 0


def test_a_failure_half_way_drops_nothing_and_says_why(full: World) -> None:
    run_now()
    age()
    full.fail("list_tables", "", "", "", "", *["down"] * 3)
    run = run_now()
    assert (run.state, run.dropped) == (RefreshRun.State.FAILED, 0)
    assert run.error == "Memory refused the connection."
    assert Securable.objects.filter(kind=Kind.TABLE).count() == 21


def test_the_wire_shows_a_run(full: World, admin: Caller, mia: Caller) -> None:
    begun = admin.send("POST", f"{CATALOG}/refreshes", {})["refresh"]
    again = admin.send("POST", f"{CATALOG}/refreshes")["refresh"]
    assert (begun["state"], again["id"]) == ("running", begun["id"]), "there is one at a time"
    while outbox.drain():
        pass
    refresh.carry_on(int(begun["id"]))
    for _ in range(100):
        shown = admin.get(f"{CATALOG}/refreshes/{begun['id']}")["refresh"]
        if shown["state"] != "running":
            break
    assert (shown["state"], shown["seen"], shown["created"]) == ("done", 24, 24)
    assert [run["id"] for run in admin.get(f"{CATALOG}/refreshes")["refreshes"]] == [begun["id"]]
    assert mia.get(f"{CATALOG}/refreshes").error[0] == 404
    assert admin.get("metalakes/demo/catalogs/lake/refreshes")["refreshes"] == []
    assert admin.send("POST", "metalakes/demo/catalogs/lake/refreshes").error[:2] == (405, 1006)
    assert admin.get(f"{CATALOG}/refreshes/1").error[0] == 404


def test_the_command_says_what_it_found(full: World) -> None:
    out = StringIO()
    call_command("refresh_catalog", "demo", "deep", stdout=out)
    assert "24 objects in" in out.getvalue()
    assert "24 new, 0 changed, 0 dropped, 0 skipped." in out.getvalue()
    with pytest.raises(CommandError, match="nothing to refresh"):
        call_command("refresh_catalog", "demo", "lake")
    with pytest.raises(CommandError, match="no catalog none"):
        call_command("refresh_catalog", "demo", "none")


def test_a_schedule_follows_the_catalog(actor: Actor, admin: Caller) -> None:
    def interval(value: str | None) -> Any:
        kind = {"@type": "setProperty", "value": value} if value else {"@type": "removeProperty"}
        admin.put(CATALOG, kind | {"property": "refresh-interval"})
        while outbox.drain():
            pass
        return PeriodicTask.objects.filter(task=schedule.TASK).first()

    task = interval("60")
    assert task is not None
    assert task.interval.every == 60
    assert schedule.begin_due() == 0
    PeriodicTask.objects.update(date_changed=timezone.now() - timedelta(seconds=61))
    assert schedule.begin_due() == 1
    assert schedule.begin_due() == 0
    assert RefreshRun.objects.get().requested_by == "metalake"
    assert interval(None) is None
