"""Runs as people watch them: interrupted, stopped, gone on with; their schedules, and what monitors see."""

from __future__ import annotations

import gc
import json
import logging
import threading
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from authz.actor import Actor
from authz.models import User
from catalogs.models import Catalog, RefreshRun
from metalake.models import Securable
from outside import listing_diff, refresh, schedule
from tests.catalogs.callers import Caller
from tests.outside.crashes import Killed, stopping
from tests.outside.writes import Bench
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def deep(actor: Actor, world: World) -> Catalog:
    """Thirty tables in three schemas; pages hold three."""
    for schema in ("flights", "sales", "weather"):
        world.put_schema(schema)
        for number in range(10):
            world.put_table(schema, f"t{number}")
    return Catalog.objects.get(name="deep")


def test_a_walk_that_is_interrupted_goes_on_at_once(
    deep: Catalog, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = 0

    def interrupt(run: RefreshRun) -> tuple[float, int | None]:
        nonlocal pages
        pages += 1
        begun = {type(each).__name__ for each in threading.enumerate()}
        assert "_RefreshThread" not in begun, "the bar's own thread, which ends when it likes"
        if pages == 7:
            raise KeyboardInterrupt
        return 0.0, None

    with monkeypatch.context() as patch, pytest.raises(CommandError, match=r"Interrupted\. What was compared stays"):
        patch.setattr(refresh, "speed", interrupt)
        call_command("refresh_catalog", "demo", "deep", stdout=StringIO())
    gc.collect()  # the interrupted walk's generator, which then lets go of its thread
    for ahead in [each for each in threading.enumerate() if "list_tables ahead" in each.name]:
        ahead.join(20)
        assert not ahead.is_alive()
    left = RefreshRun.objects.get()
    assert (left.state, left.is_left_alone, refresh.speed(left)[1]) == (RefreshRun.State.RUNNING, True, None)
    assert refresh.abandoned() == [left.pk]
    asked = world.calls("list_tables")
    out = StringIO()
    call_command("refresh_catalog", "demo", "deep", stdout=out)
    assert "33 objects in" in out.getvalue()
    assert world.calls("list_tables") - asked < 12, "the finished schema was walked again"
    assert RefreshRun.objects.get().state == RefreshRun.State.DONE


def test_drops_may_be_accepted_while_a_walk_is_on(deep: Catalog, world: World) -> None:
    refresh.carry_on(refresh.begin(deep.pk, here=True).pk)
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))
    with world.open() as state:
        state["tables"] = {}
    run = refresh.begin(deep.pk, here=True)
    assert refresh.begin(deep.pk, accept_drops=True).pk == run.pk
    ended = refresh.carry_on(run.pk)
    assert ended is not None
    assert (ended.dropped, ended.held_back) == (30, 0)


def test_each_answer_renews_the_lease(deep: Catalog, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that says that an object is there after all, which changes nothing else."""
    refresh.carry_on(refresh.begin(deep.pk, here=True).pk)
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))
    world.drop("weather", "t9")

    def takes_long(*_: object) -> bool:
        RefreshRun.objects.filter(state=RefreshRun.State.RUNNING).update(lease_until=timezone.now())
        return False

    monkeypatch.setattr(listing_diff, "remove_if_dropped", takes_long)
    run = refresh.carry_on(refresh.begin(deep.pk, here=True).pk)
    assert run is not None and (run.state, run.dropped) == (RefreshRun.State.DONE, 0)
    assert run.lease_until > timezone.now() + timedelta(seconds=90)


def test_a_stopped_run_counts_what_it_did(deep: Catalog, admin: Caller) -> None:
    run = refresh.begin(deep.pk, here=True)
    owner = refresh_owner()

    def stop(seen: RefreshRun) -> None:
        if seen.seen == 6:
            refresh.cancel(owner, "demo", "deep", str(run.pk))

    refresh.carry_on(run.pk, stop)
    ended = RefreshRun.objects.get()
    assert (ended.state, ended.error) == (RefreshRun.State.FAILED, "Stopped by admin.")
    assert ended.created == Securable.objects.filter(mirror__in_catalog=deep).count()


def refresh_owner() -> Actor:
    from authz.callers.identity import actor_of

    return actor_of(User.objects.get(username="admin"))


def test_what_is_passed_over_is_named_in_the_log(deep: Catalog, world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.put_table("sales", "a\nb")
    with caplog.at_level(logging.INFO):
        ended = refresh.carry_on(refresh.begin(deep.pk, here=True).pk)
    assert ended is not None and ended.skipped == 1
    assert "a\nb in deep.sales: it cannot be a name here" in caplog.text


def test_how_long_it_takes_is_not_told_of_what_is_not_known(deep: Catalog) -> None:
    ago = timezone.now() - timedelta(seconds=10)
    run = RefreshRun(in_catalog=deep, expected=7, seen=3, started_at=ago, lease_until=timezone.now())
    assert refresh.speed(run)[1] in (13, 14)
    run.seen = 300
    assert refresh.speed(run)[1] is None


def test_no_bad_schedule_keeps_others_from_their_turn(deep: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    centuries = IntervalSchedule.objects.create(every=2_000_000_000, period=IntervalSchedule.DAYS)
    minute = IntervalSchedule.objects.create(every=60, period=IntervalSchedule.SECONDS)
    for name, interval, arguments in (
        ("a too long one", centuries, json.dumps([deep.pk])),
        ("b of nothing", minute, "no JSON"),
        ("c good", minute, json.dumps([deep.pk])),
    ):
        PeriodicTask.objects.create(name=name, task=schedule.TASK, interval=interval, args=arguments)
    PeriodicTask.objects.update(date_changed=timezone.now() - timedelta(seconds=61))
    assert schedule.begin_due() == 1
    assert [record.args for record in caplog.records if record.levelno == logging.ERROR][:2] == [
        ("a too long one",),
        ("b of nothing",),
    ]


def test_an_interval_is_a_year_at_most(admin: Caller, deep: Catalog) -> None:
    change = {"@type": "setProperty", "property": "refresh-interval", "value": "999999999999"}
    refusal = admin.put("metalakes/demo/catalogs/deep", change)
    assert refusal.status == 400
    assert "'refresh-interval' must be 31536000 or less" in refusal.body["message"]


def test_monitors_see_walks_and_writes(benches: dict[str, Bench], deep: Catalog) -> None:
    def shown() -> set[str]:
        lines = Client().get("/metrics").content.decode().splitlines()
        told = ("metalake_outside", "metalake_refresh", "metalake_writes")
        return {line for line in lines if line.startswith(told) and "{catalog=" in line}

    assert shown() == set()
    with pytest.raises(Killed), stopping(3):
        benches["deep"].make_schema("sales_of_2013")
    refresh.carry_on(refresh.begin(deep.pk, here=True).pk)
    told = shown()
    assert f'metalake_writes_under_way{{catalog="{deep.pk}"}} 1.0' in told
    assert f'metalake_writes_stuck{{catalog="{deep.pk}"}} 0.0' in told
    assert f'metalake_refresh_failed{{catalog="{deep.pk}"}} 0.0' in told
    assert any(line.startswith(f'metalake_refresh_age_seconds{{catalog="{deep.pk}"}}') for line in told)
    RefreshRun.objects.update(state=RefreshRun.State.FAILED)
    assert f'metalake_refresh_failed{{catalog="{deep.pk}"}} 1.0' in shown()


def test_monitors_learn_names_with_the_token_alone(settings: Any, benches: dict[str, Bench], deep: Catalog) -> None:
    settings.METALAKE_METRICS_TOKEN = "a token of many letters"
    refresh.carry_on(refresh.begin(deep.pk, here=True).pk)
    names = f'metalake_outside_catalog{{catalog="{deep.pk}",metalake="demo",name="deep"}} 1.0'
    walked = f'metalake_refresh_failed{{catalog="{deep.pk}"}} 0.0'
    told = Client().get("/metrics").content.decode()
    assert walked in told
    assert '"deep"' not in told and '"demo"' not in told
    named = Client().get("/metrics", headers={"Authorization": "Bearer a token of many letters"}).content.decode()
    assert walked in named and names in named


def test_a_scrape_reads_each_catalog_once(settings: Any, benches: dict[str, Bench], deep: Catalog) -> None:
    settings.METALAKE_METRICS_TOKEN = "a token of many letters"
    refresh.carry_on(refresh.begin(deep.pk, here=True).pk)

    def reads(**headers: str) -> list[str]:
        with CaptureQueriesContext(connection) as asked:
            assert Client().get("/metrics", headers=headers).status_code == 200
        return [query["sql"] for query in asked.captured_queries if '"catalogs_catalog"."provider"' in query["sql"]]

    (walked,) = reads()
    assert "catalogs_refreshrun" in walked  # only those that were walked
    assert len(reads(Authorization="Bearer a token of many letters")) == 2  # and all of them, for their names
