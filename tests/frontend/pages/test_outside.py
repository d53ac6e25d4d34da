"""What the owners of an outside catalog see of it and do about it; nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from authz.models import AuditEntry
from catalogs.models import Catalog, Intent, RefreshRun, Reservation
from catalogs.services import browsing
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from outside import monitoring, refresh, schedule
from providers import circuit_breaker, registry
from tests.demo import actor, give
from tests.frontend.conftest import add_outside, add_stuck_intent, find, sign_in
from tests.frontend.test_pages import below, names
from tests.providers.world import World

Ids = dict[str, int]
PART = {"HX-Request": "true"}


@pytest.fixture
def station(ids: Ids, world: World) -> Located:
    return add_outside(world)


def walk(station: Located) -> RefreshRun:
    run = refresh.carry_on(refresh.begin(station.id, here=True).pk)
    assert run
    return run


def age(station: Located) -> None:
    """What is missing now was not just made."""
    Securable.objects.filter(lineage__startswith=station.lineage).update(create_time="2020-01-01T00:00:00Z")


def shown(client: Client, station: Located) -> str:
    answer = client.get(f"/catalogs/{station.id}/outside", headers=PART)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def post(client: Client, path: str, **body: str) -> tuple[int, str]:
    answer = client.post(path, body, headers=PART)
    return answer.status_code, " ".join(answer.content.decode().split())


# Refreshing


def test_a_refresh_is_begun_watched_and_stopped(admin: Client, station: Located) -> None:
    assert "It was never refreshed" in shown(admin, station)
    assert "every 1s" not in shown(admin, station), "nothing moves, so nothing is asked"
    status, page = post(admin, f"/catalogs/{station.id}/refreshes")
    assert (status, "The refresh begins." in page) == (200, True)
    run = RefreshRun.objects.get()
    # So long ago that the seconds until the page is there change nothing that it says.
    RefreshRun.objects.update(seen=30_000, expected=120_000, started_at=timezone.now() - timedelta(seconds=10_000))
    page = shown(admin, station)
    assert "30000 of about 120000 objects, 3 a second, 8 hours to go" in page
    assert f'hx-get="/catalogs/{station.id}/outside?run={run.pk}" hx-trigger="every 1s"' in page
    status, page = post(admin, f"/catalogs/{station.id}/refreshes/{run.pk}/stop")
    assert (status, "The refresh is stopped." in page) == (200, True)
    assert "Stopped by admin." in page
    assert "every 1s" not in page
    ended = admin.get(f"/catalogs/{station.id}/outside?run={run.pk}", headers=PART).content.decode()
    assert "The refresh did not finish. Stopped by admin." in ended
    assert post(admin, f"/catalogs/{station.id}/refreshes/1/stop")[0] == 422


def test_the_end_of_a_refresh_is_said_to_who_watched_it(admin: Client, station: Located) -> None:
    run = walk(station)
    ended = admin.get(f"/catalogs/{station.id}/outside?run={run.pk}", headers=PART).content.decode()
    assert "The refresh is done: 3 seen, 3 new, 0 changed, 0 gone." in ended
    assert "The refresh is done" not in shown(admin, station)


def test_what_was_held_back_is_explained_and_can_be_let_go(admin: Client, station: Located, world: World) -> None:
    for number in range(20):
        world.put_table("weather", f"t{number}")
    walk(station)
    age(station)
    for number in range(20):
        world.drop("weather", f"t{number}")
    walk(station)
    page = shown(admin, station)
    assert "20 objects were kept though they are missing there." in page
    assert "They are really gone" in page
    refresh.cancel(actor("admin"), "demo", "station", str(refresh.begin(station.id).pk))
    assert "They are really gone" in shown(admin, station), "a walk that did not finish says nothing else"
    post(admin, f"/catalogs/{station.id}/refreshes", accept_drops="yes")
    run = RefreshRun.objects.latest("started_at")
    assert run.accept_drops
    refresh.carry_on(run.pk)
    page = shown(admin, station)
    assert "They are really gone" not in page
    assert 'Dropped outside in the last day <span class="count">20</span>' in page


def test_what_was_dropped_outside_is_shown_with_what_was_granted(admin: Client, station: Located, world: World) -> None:
    walk(station)
    age(station)
    give("rita", Kind.TABLE, "station.weather.winds", "select_table", "deny modify_table", role="forecaster")
    world.drop("weather", "winds")
    walk(station)
    page = shown(admin, station)
    assert "station.weather.winds" in page
    assert "<code>select_table</code> to forecaster" in page
    assert '<span class="effect deny">deny</span> <code>modify_table</code> to forecaster' in page


def test_failures_say_why(admin: Client, station: Located, world: World) -> None:
    world.fail("list_schemas", "denied")
    walk(station)
    assert '<span class="effect deny">not finished</span> Memory knows no such key.' in shown(admin, station)


@pytest.mark.store
def test_without_htmx_one_comes_back_to_the_catalog(admin: Client, station: Located) -> None:
    answer = admin.post(f"/catalogs/{station.id}/refreshes")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/objects/{station.id}")
    assert admin.get(f"/catalogs/{station.id}/outside").headers["Location"] == f"/objects/{station.id}"
    assert "The outside system" in admin.get(f"/objects/{station.id}").content.decode()


# Its state


def test_the_connection_is_shown_as_this_server_saw_it(
    admin: Client, station: Located, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not asked since this server started" in shown(admin, station)
    line = circuit_breaker.line_of(station.id)
    line.note(answered=True)
    assert "answers</span>" in shown(admin, station)
    line.note(answered=False, error="Memory refused the connection.")
    page = shown(admin, station)
    assert "does not answer</span> since <local-time>" in page
    assert "1 call in a row failed. It said: Memory refused the connection." in page
    for _ in range(circuit_breaker.FAILURES):
        line.note(answered=False, error="Memory refused the connection.")
    page = shown(admin, station)
    assert "does not answer</span> since <local-time>" in page
    assert "it is spared for 15 s more. It said: Memory refused the connection." in page
    monkeypatch.setattr(circuit_breaker, "COOL_DOWN", -1.0)
    line.note(answered=False, error="Memory refused the connection.")
    assert "the next call is a trial" in shown(admin, station)
    line.note(answered=True)
    assert "answers</span>" in shown(admin, station)


def test_since_when_a_system_does_not_answer_is_the_first_call_that_failed(
    station: Located, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(circuit_breaker.time, "monotonic", lambda: now)
    line = circuit_breaker.line_of(station.id)
    for moment, answered in [(1000.0, False), (1060.0, True), (1100.0, False), (1160.0, False)]:
        now = moment
        line.note(answered=answered)
    seen = monitoring.health_of(station.id)
    assert seen.failing_since is not None and not seen.answers
    assert round((timezone.now() - seen.failing_since).total_seconds()) == 60


def test_a_page_whose_system_is_down_says_so_at_once(admin: Client, station: Located, world: World) -> None:
    world.fail("list_schemas", *["down"] * 3)
    page = " ".join(admin.get(f"/objects/{station.id}").content.decode().split())
    assert "does not answer</span> since <local-time>" in page and "3 calls in a row failed." in page


def test_with_workers_the_page_says_whose_state_it_is_not(
    admin: Client, station: Located, settings: pytest.FixtureRequest
) -> None:
    settings.METALAKE_BROKER_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    page = shown(admin, station)
    assert "asked by the workers" in page
    assert "Each worker finds out for itself" in page


def test_the_schedule_is_shown(admin: Client, station: Located) -> None:
    assert "no; set <code>refresh-interval</code>" in shown(admin, station)
    row = Catalog.objects.get(pk=station.id)
    row.properties["refresh-interval"] = "7200"
    schedule.keep(row)
    seen = monitoring.watch(actor("admin"), station).timetable
    assert seen and seen.next_at
    assert seen.every == 7200
    assert timedelta(minutes=119) < seen.next_at - timezone.now() <= timedelta(minutes=120)
    assert "every 2 hours, next at" in shown(admin, station)
    schedule.schedule_of(station.id).update(enabled=False)
    assert "switched off now" in shown(admin, station)


# Writes that nobody could settle


def test_a_stuck_write_is_tried_again(admin: Client, station: Located) -> None:
    intent = add_stuck_intent(station)
    page = shown(admin, station)
    assert "create table station.weather.readings" in page
    assert "after 10 tries. Memory did not answer." in page
    assert "never-shown" not in page
    status, page = post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/retry")
    assert (status, "tried again within 15 seconds" in page) == (200, True)
    intent.refresh_from_db()
    assert (intent.state, intent.attempts) == (Intent.State.OPEN, 1)
    assert intent.lease_until and intent.lease_until <= timezone.now()
    entry = AuditEntry.objects.get(event="intent.retried")
    assert (entry.actor, entry.details["target"]) == ("admin", "station.weather.readings")
    assert "every 1s" in page, "it moves again"
    status, page = post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/retry")
    assert (status, "settled since" in page) == (422, True)


def test_a_stuck_write_is_given_up(admin: Client, station: Located, world: World) -> None:
    intent = add_stuck_intent(station)
    calls = world.calls("load_table")
    status, page = post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/give-up")
    assert (status, "its names are free" in page) == (200, True)
    intent.refresh_from_db()
    assert intent.state == Intent.State.RESIDUE
    assert intent.ended_at and intent.lease_until is None
    assert not Reservation.objects.exists()
    assert world.calls("load_table") == calls, "no more calls are made"
    events = set(AuditEntry.objects.filter(event__startswith="intent.").values_list("event", flat=True))
    assert events == {"intent.given_up", "intent.aborted"}
    assert "readings" not in shown(admin, station)


def test_writes_under_way_are_shown_and_left_alone(admin: Client, station: Located) -> None:
    intent = add_stuck_intent(station, state=Intent.State.OPEN, attempts=2)
    page = shown(admin, station)
    assert "under way, try 2." in page
    assert "Try again" not in page
    assert post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/give-up")[0] == 422
    intent.refresh_from_db()
    assert intent.state == Intent.State.OPEN


def test_what_was_taken_back_and_may_be_late_is_shown_and_decided(admin: Client, station: Located) -> None:
    now = timezone.now()
    intent = add_stuck_intent(station, state=Intent.State.ABORTED, attempts=0, last_failure="")
    Intent.objects.update(ended_at=now, lease_until=now + timedelta(minutes=1))
    page = shown(admin, station)
    assert "may still have arrived" in page
    assert "Give up" not in page
    assert post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/give-up")[0] == 422
    Intent.objects.update(attempts=12, last_failure="Memory did not answer.")
    page = shown(admin, station)
    assert "That failed 12 times and is tried again by itself. Memory did not answer." in page
    assert post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/retry")[0] == 200
    assert post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/give-up")[0] == 200
    intent.refresh_from_db()
    assert (intent.state, intent.lease_until) == (Intent.State.RESIDUE, None)


@pytest.mark.store
def test_a_write_of_another_catalog_is_none_of_this_one(admin: Client, station: Located, world: World) -> None:
    intent = add_stuck_intent(add_outside(world, "other"))
    assert post(admin, f"/catalogs/{station.id}/writes/{intent.pk}/give-up")[0] == 422
    intent.refresh_from_db()
    assert intent.state == Intent.State.STUCK


# Who may


def test_nobody_but_owners_watches_or_decides(ids: Ids, station: Located) -> None:
    intent, run = add_stuck_intent(station), refresh.begin(station.id)
    paths = [
        f"/catalogs/{station.id}/{end}"
        for end in (
            "refreshes",
            f"refreshes/{run.pk}/stop",
            f"writes/{intent.pk}/retry",
            f"writes/{intent.pk}/give-up",
        )
    ]
    outside = f"/catalogs/{station.id}/outside"

    def answers(name: str) -> set[int]:
        client = sign_in(name)
        return {client.get(outside, headers=PART).status_code, *(client.post(path).status_code for path in paths)}

    assert answers("otto") == answers("mia") == {404}, "hidden is answered like missing"
    give("rita", Kind.CATALOG, "station", "use_catalog", "create_schema", "select_table", role="watcher")
    assert answers("rita") == {403}
    assert "The outside system" not in sign_in("rita").get(f"/objects/{station.id}").content.decode()
    intent.refresh_from_db()
    run.refresh_from_db()
    assert (intent.state, run.state) == (Intent.State.STUCK, RefreshRun.State.RUNNING)


def test_a_catalog_that_is_stored_here_has_no_outside(admin: Client, ids: Ids) -> None:
    lake = find(Address(metalake="demo", catalog="lake"))
    assert admin.get(f"/catalogs/{lake.id}/outside", headers=PART).status_code == 404
    assert "The outside system" not in admin.get(f"/objects/{lake.id}").content.decode()
    for wrong in (ids["demo"], ids["eu"], 1):
        assert admin.get(f"/catalogs/{wrong}/outside", headers=PART).status_code == 404


# Browsing


@pytest.mark.parametrize("ttl", [None, "3600"])
def test_a_page_asks_its_system_once_for_tables_and_views(
    admin: Client, ids: Ids, world: World, monkeypatch: pytest.MonkeyPatch, ttl: str | None
) -> None:
    """They come in one listing there; the next page asks again, unless answers are good for some time."""
    circuit_breaker.forget_all()
    monkeypatch.setitem(registry.PROVIDERS, "viewing", "tests.providers.viewing:ViewingProvider")
    tower = add_outside(world, "tower", "viewing", **({"cache-ttl": ttl} if ttl else {}))
    world.put_view("weather", "gusts")
    assert names(below(admin, tower.id)) == ["weather"]
    schema = find(Address(metalake="demo", catalog="tower", schema="weather"))
    assert schema.kind == Kind.SCHEMA
    for visit in (1, 2):
        level = below(admin, schema.id)
        assert names(level) == ["stations", "winds", "gusts"]
        assert world.calls("list_tables") == (1 if ttl else visit)
    assert world.calls("list_views") == 0, "a few are asked for one by one"
    browsing.level_below(actor("admin"), schema, "view")
    assert world.calls("list_tables") == (1 if ttl else 3)
