"""Refreshes of catalogs that are no more, on demand and by their schedules."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from authz.actor import Actor
from catalogs.models import Catalog, RefreshRun
from catalogs.services import catalogs, metalakes
from metalake import outbox
from metalake.errors import Conflict, NotFound
from outside import refresh, schedule, tasks
from tests.catalogs.callers import Caller
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

GONE = 404


@pytest.fixture
def scheduled(actor: Actor, world: World) -> Catalog:
    """A catalog in a metalake of its own, refreshed every minute; `deep` is refreshed, too."""
    metalakes.create_metalake(actor, "other", None, {})
    for metalake, name in (("other", "often"), ("demo", "too")):
        properties = {"world": f"{world.path}-{metalake}", "refresh-interval": "60"}
        catalogs.create_catalog(actor.refreshed(), metalake, name, "relational", "memory", None, properties)
    outbox.drain()
    assert PeriodicTask.objects.filter(task=schedule.TASK).count() == 2
    return Catalog.objects.get(name="often")


def put_schedule(arguments: str, name: str) -> None:
    """By an operator, like another."""
    like = PeriodicTask.objects.filter(task=schedule.TASK)[0]
    PeriodicTask.objects.create(name=name, task=schedule.TASK, interval=like.interval, args=arguments)


def arguments() -> set[str]:
    return set(PeriodicTask.objects.filter(task=schedule.TASK).values_list("args", flat=True))


def test_a_dropped_metalake_takes_its_schedules(scheduled: Catalog, admin: Caller) -> None:
    too = json.dumps([Catalog.objects.get(name="too").pk])
    put_schedule("[ 1, 2 ]", "an operator's own")
    assert admin.delete("metalakes/other?force=true").body["dropped"] is True
    outbox.drain()
    assert arguments() == {too, "[ 1, 2 ]"}


def test_a_schedule_ends_with_its_catalog(scheduled: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    """Also one that was left by an earlier version, or by an operator."""
    before = arguments()
    put_schedule(json.dumps([GONE]), "of what is gone")
    tasks.scheduled_refresh(GONE)
    assert arguments() == before
    assert not RefreshRun.objects.exists()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_clock_of_what_is_gone_does_not_ring(scheduled: Catalog) -> None:
    put_schedule(json.dumps([GONE]), "of what is gone")
    PeriodicTask.objects.update(last_run_at=None, date_changed=timezone.now() - timedelta(days=1))
    schedule.begin_due()
    assert PeriodicTask.objects.get(args=json.dumps([GONE])).last_run_at is None
    assert PeriodicTask.objects.get(args=json.dumps([scheduled.pk])).last_run_at is not None


def test_a_catalog_that_goes_as_its_turn_comes(
    scheduled: Catalog, actor: Actor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    PeriodicTask.objects.update(date_changed=timezone.now() - timedelta(seconds=61))
    real: Callable[..., RefreshRun] = refresh.begin

    def begin(catalog_id: int, *rest: Any, **more: Any) -> RefreshRun:
        if catalog_id == scheduled.pk:
            metalakes.drop_metalake(actor.refreshed(), "other", force=True)
        return real(catalog_id, *rest, **more)

    monkeypatch.setattr(refresh, "begin", begin)
    schedule.begin_due()
    assert json.dumps([scheduled.pk]) not in arguments()
    assert RefreshRun.objects.count() == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_refresh_of_a_catalog_that_is_gone(actor: Actor, admin: Caller) -> None:
    """While one is asked for, the catalog is held: it goes before or after."""
    with pytest.raises(NotFound, match="was dropped"):
        refresh.begin(GONE)
    catalogs.drop_catalog(actor, "demo", "deep", force=True)
    assert admin.post("metalakes/demo/catalogs/deep/refreshes", {}).status == 404


def end_what_runs(monkeypatch: pytest.MonkeyPatch, *, another: bool) -> int:
    """A run is in the way and ends before it is looked for; whether another begins at once. The catalog's id."""
    deep, real = Catalog.objects.get(name="deep").pk, refresh._running

    def begin_another() -> None:
        RefreshRun.objects.create(in_catalog_id=deep, lease_until=timezone.now())

    def too_late(*asked: Any) -> RefreshRun | None:
        RefreshRun.objects.filter(state=RefreshRun.State.RUNNING).update(state=RefreshRun.State.DONE)
        found = real(*asked)
        if another:
            begin_another()
        return found

    begin_another()
    monkeypatch.setattr(refresh, "_running", too_late)
    return deep


def test_a_run_that_ends_as_the_next_is_asked_for(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = refresh.begin(end_what_runs(monkeypatch, another=False))
    assert begun.state == RefreshRun.State.RUNNING
    assert RefreshRun.objects.count() == 2


def test_runs_that_keep_ending(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Conflict, match="try again"):
        refresh.begin(end_what_runs(monkeypatch, another=True))
