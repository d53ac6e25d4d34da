"""No bad intent stops the sweeper; what never settles waits for an operator, what ended is forgotten."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from authz.actor import Actor
from authz.models import AuditEntry
from catalogs import vault
from catalogs.models import Intent, Reservation
from catalogs.services import catalogs, tables
from metalake.errors import InUse, NotFound, ProviderUnavailable
from metalake.models import Securable
from outside import intents, recovery, steps
from providers import circuit_breaker, registry
from tests.outside.crashes import killed_at, lapse, settle_all
from tests.outside.invariants import check_invariants
from tests.outside.writes import Bench
from tests.providers.world import World

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_audit"),
]


def test_no_bad_intent_stops_the_sweeper(
    benches: dict[str, Bench], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        killed_at("after 0", partial(benches["deep"].make_schema, f"sales{number}"))
    killed_at("after 0", lambda: benches["flat"].make_schema("sales"))
    sealed, gone, broken = Intent.objects.filter(in_catalog__name="deep").order_by("id")
    kept, real = vault.provider_and_properties, steps.outcomes.outcome_of

    def opened(catalog_id: int) -> tuple[str, dict[str, str]]:
        if catalog_id == sealed.in_catalog_id:
            raise ProviderUnavailable("A secret does not open.", retryable=False)
        return kept(catalog_id)

    monkeypatch.setattr(steps.vault, "provider_and_properties", opened)
    lapse()
    assert recovery.sweep() == 4
    states = dict(Intent.objects.values_list("in_catalog__name", "state"))
    assert states == {"deep": Intent.State.OPEN, "flat": Intent.State.COMMITTED}
    assert "does not open" in Intent.objects.get(pk=sealed.pk).last_failure
    monkeypatch.undo()
    with monkeypatch.context() as patch:
        patch.delitem(registry.PROVIDERS, "memory")
        lapse()
        assert recovery.sweep() == 3
        assert "no provider" in Intent.objects.get(pk=gone.pk).last_failure
    with monkeypatch.context() as patch:
        patch.setattr(steps.outcomes, "outcome_of", lambda *told: _bug() if told[3] == str(broken.pk) else real(*told))
        lapse()
        assert recovery.sweep() == 3
    assert Intent.objects.get(pk=broken.pk).last_failure == "ZeroDivisionError"
    assert Intent.objects.filter(state=Intent.State.COMMITTED).count() == 3
    assert "secret-in-a-bug" not in Intent.objects.get(pk=broken.pk).last_failure


def _bug() -> Any:
    raise ZeroDivisionError("secret-in-a-bug")


def test_what_never_settles_waits_for_an_operator(bench: Bench) -> None:
    killed_at("after 0", lambda: bench.make_schema("sales"))
    bench.world.fail("load_schema", *["down"] * 99)
    pauses = []
    for _ in range(intents.MAX_ATTEMPTS):
        lapse()
        circuit_breaker.forget_all()
        assert recovery.sweep() == 1
        due = Intent.objects.get().lease_until
        assert due is not None
        pauses.append(round((due - timezone.now()).total_seconds()))
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    intent = Intent.objects.get()
    assert intent.state == Intent.State.STUCK
    lapse()
    assert recovery.sweep() == 0
    assert Reservation.objects.filter(name="sales").exists(), "its name is free though nobody knows what is there"
    bench.world.heal()
    circuit_breaker.forget_all()
    assert tables.list_tables(bench.actor, bench.ident("hr")).names == []
    recovery.retry(intent)
    settle_all()
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert bench.audited()["schema.created"] == 1


@pytest.fixture
def late(bench: Bench) -> Intent:
    """A creation that was taken back, and that the outside system has not answered about since."""
    bench.world.fail("create_schema", "dropped")
    with pytest.raises(ProviderUnavailable):
        bench.make_schema("sales")
    bench.world.fail("load_schema", *["down"] * 99)
    for _ in range(intents.MAX_ATTEMPTS + 3):
        lapse()
        circuit_breaker.forget_all()
        assert recovery.sweep() == 1
    return Intent.objects.get()


def test_what_is_late_is_looked_for_until_the_system_answers(bench: Bench, late: Intent) -> None:
    assert (late.state, late.attempts) == (Intent.State.ABORTED, intents.MAX_ATTEMPTS + 3)
    assert late.lease_until and late.lease_until - timezone.now() > timedelta(minutes=4)
    assert not Reservation.objects.exists(), "its names are free"
    told = Client().get("/metrics").content.decode().splitlines()
    assert f'metalake_writes_looked_for{{catalog="{late.in_catalog_id}"}} 1.0' in told
    assert not any(line.startswith("metalake_writes_stuck{") and not line.endswith(" 0.0") for line in told)
    Intent.objects.update(attempts=10_000)
    lapse()
    recovery.sweep()
    assert Intent.objects.get().last_failure, "no number of tries is too large for a pause"
    bench.world.heal()
    circuit_breaker.forget_all()
    lapse()
    assert recovery.sweep() == 1
    assert (Intent.objects.get().state, Intent.objects.get().lease_until) == (Intent.State.ABORTED, None)
    assert AuditEntry.objects.filter(event="intent.aborted").count() == 1


def test_somebody_may_decide_on_what_is_late(bench: Bench, late: Intent) -> None:
    before = late.lease_until
    recovery.retry(late)
    late.refresh_from_db()
    assert before and late.lease_until and late.lease_until < before
    assert (late.state, late.attempts) == (Intent.State.ABORTED, 1)
    recovery.give_up_by_operator(late, "olga")
    ended = Intent.objects.get()
    assert (ended.state, ended.lease_until) == (Intent.State.ABORTED, None)
    lapse()
    assert recovery.sweep() == 0


def test_what_an_older_version_left_stuck_though_it_was_aborted_is_taken_up(bench: Bench, late: Intent) -> None:
    Intent.objects.update(state=Intent.State.STUCK)
    bench.world.heal()
    circuit_breaker.forget_all()
    settle_all()
    assert (Intent.objects.get().state, Intent.objects.get().lease_until) == (Intent.State.ABORTED, None)


def test_a_catalog_that_is_dropped_meanwhile(bench: Bench, actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the write is published; after it, whoever made it is told."""

    def drop(name: str) -> None:
        if name == "after 0":
            with pytest.raises(InUse):
                catalogs.drop_catalog(actor, "demo", "deep", force=True)
        if name == "published":
            catalogs.drop_catalog(actor, "demo", "deep", force=True)

    monkeypatch.setattr(steps, "point", drop)
    with pytest.raises(NotFound, match="dropped meanwhile"):
        bench.make_schema("sales")
    assert not Intent.objects.exists()
    assert not Reservation.objects.exists()


def test_a_provider_that_is_gone_is_told_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    monkeypatch.delitem(registry.PROVIDERS, "memory")
    settle_all()
    intent.refresh_from_db()
    assert (intent.state, intent.error["class"]) == (Intent.State.ABORTED, "Unsupported")


def test_what_ended_long_ago_is_forgotten(bench: Bench) -> None:
    bench.make_schema("sales")
    bench.make_schema("flights")
    old = Intent.objects.earliest("created_at")
    Intent.objects.filter(pk=old.pk).update(ended_at=timezone.now() - recovery.RETENTION - timedelta(minutes=1))
    recovery.sweep()
    assert Intent.objects.get().pk != old.pk


def test_nothing_secret_is_audited(bench: Bench, world: World) -> None:
    bench.world.fail("create_schema", "denied")
    with pytest.raises(ProviderUnavailable):
        bench.make_schema("sales", password="hunter2")
    entry = AuditEntry.objects.get(event="intent.aborted")
    assert "hunter2" not in str(entry.details)
    assert entry.details == {
        "intent": str(Intent.objects.get().pk),
        "verb": "create_schema",
        "reason": "ProviderUnavailable",
        "message": "Memory knows no such key.",
        "leaves": False,
    }
    assert entry.metalake_id == bench_metalake()
    AuditEntry.objects.all().update(request_id="a-request-of-mia")
    assert check_invariants(bench) == []


def bench_metalake() -> int:
    return Securable.objects.get(kind="metalake").pk
