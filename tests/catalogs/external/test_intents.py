"""Intents one by one: who may act on them, what is theirs to undo, and that no bad one stops the sweeper."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from authz.callers import actor_of
from authz.models import AuditEntry, Grant, User
from authz.policy import Actor
from authz.services import roles
from catalogs import intents, steps, vault
from catalogs.models import Intent, Reservation, Schema
from catalogs.providers import registry
from catalogs.services import catalogs, schemas, tables
from catalogs.services.changes import Alteration
from metalake.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    ProviderBusy,
    ProviderUnavailable,
)
from metalake.models import Securable
from metalake.privileges import Kind
from tests.catalogs.conftest import give
from tests.catalogs.external.crashes import Killed, lapse, settle_all, stopping
from tests.catalogs.external.invariants import check_invariants
from tests.catalogs.external.writes import WRITES, Bench, Write
from tests.providers.memory import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

BY_NAME = {write.name: write for write in WRITES}
ROLE = "mia-metalake-use_catalog-use_schema-create_schema-create_table-al"[:64]


@pytest.fixture(autouse=True)
def clean_audit(benches: dict[str, Bench]) -> None:
    """Only what the test does is in it."""
    AuditEntry.objects.all().delete()


def killed_at(point: str, act: Callable[[], object]) -> Intent:
    """What a write leaves whose process ends at a point."""

    def stop(name: str) -> None:
        if name == point:
            raise Killed(name)

    before, steps.point = steps.point, stop
    try:
        with pytest.raises(Killed):
            act()
    finally:
        steps.point = before
    lapse()
    return Intent.objects.latest("created_at")


def revoke(actor: Actor) -> None:
    roles.unassign_roles(actor, "demo", "user", "mia", [ROLE])


# Fences


def test_an_old_fence_does_nothing(bench: Bench) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    calls = bench.world.calls("create_schema")
    Intent.objects.update(fence=intent.fence + 3)
    for fence in range(intent.fence + 3):
        intents.settle(intent.pk, fence)
    assert bench.world.calls("create_schema") == calls
    assert Intent.objects.get().fence == intent.fence + 3


def test_a_message_that_comes_twice_is_acted_on_once(bench: Bench) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    for _ in range(2):
        intents.settle(intent.pk, intent.fence)
    assert bench.world.calls("create_schema") == 1
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert bench.audited() == {"schema.created": 1}


def test_a_message_that_comes_after_the_sweeper_does_nothing(bench: Bench) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    settle_all()
    intents.settle(intent.pk, intent.fence)
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert bench.world.calls("create_schema") == 0


def test_an_intent_that_runs_is_not_swept(bench: Bench) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    Intent.objects.update(lease_until=timezone.now() + timedelta(seconds=1))
    assert intents.sweep() == 0
    assert Intent.objects.get().fence == intent.fence


# What is told, and what is not known


def test_a_lost_commit_that_was_made_is_a_success(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = intents.write

    def lost(actor: Actor, act: Any, **more: Any) -> Any:
        answer = real(actor, act, **more)
        if Intent.objects.filter(state=Intent.State.COMMITTED).exists():
            raise OutcomeUnknown("The database did not answer the commit.")
        return answer

    monkeypatch.setattr(intents, "write", lost)
    bench.make_schema("sales")
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert Intent.objects.get().lease_until is None, "it is taken up again"
    assert bench.audited() == {"schema.created": 1}


@pytest.mark.parametrize("failure", [OutcomeUnknown("lost"), OperationalError("gone"), Conflict("others")])
def test_a_publication_that_fails_is_made_later(
    failure: Exception, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = intents.write

    def broken(actor: Actor, act: Any, **more: Any) -> Any:
        if Intent.objects.exists():
            raise failure
        return real(actor, act, **more)

    monkeypatch.setattr(intents, "write", broken)
    with pytest.raises(OutcomeUnknown, match="not known yet"):
        bench.make_schema("sales")
    assert not Schema.objects.filter(name="sales").exists()
    monkeypatch.setattr(intents, "write", real)
    settle_all()
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert bench.audited() == {"schema.created": 1}
    assert bench.world.calls("create_schema") == 1


def test_a_lost_promise_is_undone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = intents.write

    def lost(actor: Actor, act: Any, **more: Any) -> Any:
        real(actor, act, **more)
        raise OutcomeUnknown("The database did not answer the commit.")

    with monkeypatch.context() as patch, pytest.raises(OutcomeUnknown):
        patch.setattr(intents, "write", lost)
        bench.make_schema("sales")
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert bench.world.calls("create_schema") == 0


def test_a_failure_is_told_though_it_is_not_undone_yet(bench: Bench) -> None:
    bench.world.fail("create_schema", "", "denied")
    bench.world.fail("load_schema", *["down"] * 9)
    with pytest.raises(ProviderUnavailable, match="knows no such key") as told:
        bench.make_schema("sales:emea")
    assert not told.value.retryable
    assert Intent.objects.get().state == Intent.State.UNDOING
    with pytest.raises(Conflict, match="under way"):
        bench.make_schema("sales:emea")
    bench.world.heal()
    settle_all()
    assert bench.there() == set()


def test_how_long_to_wait_is_told(bench: Bench) -> None:
    bench.world.fail("create_schema", "busy")
    with pytest.raises(ProviderBusy) as told:
        bench.make_schema("sales")
    assert told.value.retry_after == ProviderBusy.retry_after


def test_the_name_is_free_after_a_failure(bench: Bench) -> None:
    bench.world.fail("create_schema", "down", "dropped")
    for _ in range(2):
        with pytest.raises(ProviderUnavailable):
            bench.make_schema("sales")
    bench.make_schema("sales")
    settle_all()
    assert bench.world.schemas() == {"hr", "sales"}, "the late look took what was made afterwards"


@pytest.mark.parametrize(
    "name", ["create a table", "drop a table", "rename a table", "drop a schema", "a chain of four schemas"]
)
def test_a_provider_that_itself_tried_twice(bench: Bench, name: str) -> None:
    write = BY_NAME[name]
    write.prepare(bench)
    bench.world.fail(write.calls[0], "twice")
    write.act(bench)
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED


@pytest.mark.parametrize("name", ["alter a table", "rename a table", "drop a table"])
def test_what_cannot_be_undone_is_not_called_a_failure(bench: Bench, name: str) -> None:
    """Its answer is lost, it is not there yet, and it may still arrive."""
    write = BY_NAME[name]
    write.prepare(bench)
    bench.world.fail(write.calls[0], "dropped")
    with pytest.raises(OutcomeUnknown):
        write.act(bench)
    assert Intent.objects.latest("created_at").state == Intent.State.OPEN
    settle_all()
    assert Intent.objects.latest("created_at").state == Intent.State.ABORTED


def test_what_others_made_first_is_not_taken(bench: Bench) -> None:
    bench.make_schema("flights")
    bench.world.put_table("flights", "delays")
    with pytest.raises(AlreadyExists):
        bench.make_table("flights", "delays")
    settle_all()
    assert bench.world.tables() == {"hr.staff", "flights.delays"}


def test_a_lost_answer_about_what_others_made(bench: Bench) -> None:
    bench.make_schema("flights")
    bench.world.put_table("flights", "delays")
    bench.world.fail("create_table", "dropped")
    with pytest.raises(AlreadyExists):
        bench.make_table("flights", "delays")
    settle_all()
    assert bench.world.tables() == {"hr.staff", "flights.delays"}


def test_an_altered_object_waits_for_the_other_write(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.make_schema("sales")
    killed_at("promised", lambda: _set(bench, "a"))
    monkeypatch.setattr(intents, "WAIT", 2.0)
    started = time.monotonic()
    with pytest.raises(Conflict, match="under way"):
        _set(bench, "b")
    assert time.monotonic() - started < 5, "it waited more than once"


def _set(bench: Bench, key: str) -> None:
    schemas.alter_schema(bench.actor, bench.ident("sales"), Alteration(properties=((key, "1"),)))


def test_two_alterations_lose_none(bench: Bench) -> None:
    bench.make_schema("sales")
    with bench.world.open() as state:
        before = state["schemas"]["sales"]["definition"]
    killed_at("promised", lambda: _set(bench, "a"))
    with bench.world.open() as state:  # by others, after it was read and before it is altered
        state["schemas"]["sales"]["definition"] = {**before, "properties": {**before["properties"], "theirs": "1"}}
    intent = Intent.objects.get(verb="alter_schema")
    intents.settle(intent.pk, intent.fence)
    intent.refresh_from_db()
    assert (intent.state, intent.error["class"]) == (Intent.State.ABORTED, "Conflict")
    _set(bench, "b")
    with bench.world.open() as state:
        assert state["schemas"]["sales"]["definition"]["properties"].keys() >= {"theirs", "b"}


# Rights that were lost meanwhile


def test_rights_are_asked_before_the_first_call(bench: Bench) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    give("mia", Kind.METALAKE, "demo", "create_schema", effect="deny")
    intents.settle(intent.pk, intent.fence)
    intent.refresh_from_db()
    assert (intent.state, intent.error["class"]) == (Intent.State.ABORTED, "Forbidden")
    assert bench.world.calls("create_schema") == 0


def test_who_lost_the_right_makes_nothing(bench: Bench) -> None:
    intent = killed_at("applied", lambda: bench.make_schema("sales:emea"))
    assert bench.world.schemas() == {"hr", "sales", "sales.emea"}
    AuditEntry.objects.all().delete()
    give("mia", Kind.METALAKE, "demo", "create_schema", effect="deny")
    settle_all()
    intent.refresh_from_db()
    assert (intent.state, intent.error["class"]) == (Intent.State.ABORTED, "Forbidden")
    assert bench.world.schemas() == {"hr"}
    entry = AuditEntry.objects.get(event="intent.aborted")
    assert (entry.actor, entry.full_name) == ("mia", "deep.sales:emea")
    assert entry.details["reason"] == "Forbidden"
    assert entry.details["verb"] == "create_schema"


def test_a_drop_that_was_made_is_published_whoever_lost_the_right(bench: Bench, actor: Actor) -> None:
    bench.make_schema("sales")
    killed_at("applied", lambda: schemas.drop_schema(bench.actor, bench.ident("sales")))
    Securable.objects.filter(name="sales").update(owner_user_id=actor.id)
    settle_all()
    assert not Schema.objects.filter(name="sales").exists()
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED


def test_an_account_that_is_gone_makes_nothing(bench: Bench) -> None:
    killed_at("applied", lambda: bench.make_schema("sales"))
    Grant.objects.all().delete()
    Intent.objects.update(actor_id=10**15)
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert bench.there() == set()


# What is theirs to undo


def test_a_parent_of_others_keeps_its_owner(bench: Bench, actor: Actor) -> None:
    bench.world.put_schema("sales", team="others")
    bench.make_schema("sales:emea:q3")
    owners = {row.path.logical(): row.owner_user_id for row in Schema.objects.filter(in_catalog__name="deep")}
    assert owners == {"sales": actor.id, "sales:emea": bench.actor.id, "sales:emea:q3": bench.actor.id}


def test_a_parent_that_others_use_is_left(bench: Bench, actor: Actor) -> None:
    killed_at("applied", lambda: bench.make_schema("sales:emea"))
    bench.world.put_table("sales", "orders")
    AuditEntry.objects.all().delete()
    revoke(actor)
    settle_all()
    intent = Intent.objects.get()
    assert intent.state == Intent.State.RESIDUE
    assert [each["status"] for each in intent.steps] == ["left", "undone"]
    assert bench.world.schemas() == {"hr", "sales"}
    assert AuditEntry.objects.get(event="intent.aborted").details["leaves"] is True
    assert schemas.load_schema(actor, bench.ident("sales")).row.owner_user_id == actor.id


def test_a_table_that_others_wrote_to_is_left(bench: Bench, actor: Actor) -> None:
    bench.make_schema("flights")
    killed_at("applied", lambda: bench.make_table("flights", "delays"))
    with bench.world.open() as state:
        state["tables"]["flights\x1fdelays"]["definition"]["properties"]["numRows"] = "7"
    revoke(actor)
    settle_all()
    assert Intent.objects.latest("created_at").state == Intent.State.RESIDUE
    assert bench.world.tables() == {"hr.staff", "flights.delays"}


def test_that_something_is_left_survives_a_crash(bench: Bench, actor: Actor) -> None:
    killed_at("applied", lambda: bench.make_schema("sales:emea:q3"))
    bench.world.put_table("sales", "emea", "orders")
    revoke(actor)
    lapse()
    with pytest.raises(Killed), stopping(8):  # the second step is marked as left
        intents.sweep()
    assert [each["status"] for each in Intent.objects.get().steps] == ["done", "left", "undone"]
    settle_all()
    assert Intent.objects.get().state == Intent.State.RESIDUE


def test_that_a_call_may_be_late_survives_a_crash(bench: Bench) -> None:
    bench.world.fail("create_schema", "", "dropped")
    killed_at("undoing 0", lambda: bench.make_schema("sales:emea"))
    assert [each["status"] for each in Intent.objects.get().steps] == ["done", "undone"]
    intents.sweep()
    intent = Intent.objects.get()
    assert intent.state == Intent.State.ABORTED
    assert intent.lease_until is not None, "nobody looks for what arrives late"


def test_the_copy_is_kept_where_the_drop_may_still_arrive(benches: dict[str, Bench]) -> None:
    """A table is renamed by copying it: once its drop was sent, taking the copy back could leave nothing."""
    bench = benches["flat"]
    write: Write = BY_NAME["rename a table by copying it"]
    write.prepare(bench)
    bench.world.fail("drop_table", "dropped", "down", "down")
    with pytest.raises(OutcomeUnknown):
        write.act(bench)
    for _ in range(2):
        lapse()
        intents.sweep()
        assert "flights.late" in bench.world.tables()
    settle_all()
    assert bench.world.tables() == {"hr.staff", "flights.late"}
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED


# Bad ones


def test_no_bad_intent_stops_the_sweeper(
    benches: dict[str, Bench], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        killed_at("after 0", partial(benches["deep"].make_schema, f"sales{number}"))
    killed_at("after 0", lambda: benches["flat"].make_schema("sales"))
    sealed, gone, broken = Intent.objects.filter(in_catalog__name="deep").order_by("id")
    kept, real = vault.properties_of, steps.outcomes.look

    def opened(catalog_id: int) -> dict[str, str]:
        if catalog_id == sealed.in_catalog_id:
            raise ProviderUnavailable("A secret does not open.", retryable=False)
        return kept(catalog_id)

    monkeypatch.setattr(steps.vault, "properties_of", opened)
    lapse()
    assert intents.sweep() == 4
    states = dict(Intent.objects.values_list("in_catalog__name", "state"))
    assert states == {"deep": Intent.State.OPEN, "flat": Intent.State.COMMITTED}
    assert "does not open" in Intent.objects.get(pk=sealed.pk).last_failure
    monkeypatch.undo()
    with monkeypatch.context() as patch:
        patch.delitem(registry.PROVIDERS, "memory")
        lapse()
        assert intents.sweep() == 3
        assert "no provider" in Intent.objects.get(pk=gone.pk).last_failure
    with monkeypatch.context() as patch:
        patch.setattr(steps.outcomes, "look", lambda *told: _bug() if told[3] == str(broken.pk) else real(*told))
        lapse()
        assert intents.sweep() == 3
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
        steps.remote._lines.clear()
        assert intents.sweep() == 1
        due = Intent.objects.get().lease_until
        assert due is not None
        pauses.append(round((due - timezone.now()).total_seconds()))
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    intent = Intent.objects.get()
    assert intent.state == Intent.State.STUCK
    lapse()
    assert intents.sweep() == 0
    assert Reservation.objects.filter(name="sales").exists(), "its name is free though nobody knows what is there"
    bench.world.heal()
    steps.remote._lines.clear()
    assert tables.list_tables(bench.actor, bench.ident("hr")).names == []
    intents.retry(intent)
    settle_all()
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert bench.audited()["schema.created"] == 1


def test_a_stuck_look_for_what_is_late_can_be_tried_again(bench: Bench) -> None:
    bench.world.fail("create_schema", "dropped")
    with pytest.raises(ProviderUnavailable):
        bench.make_schema("sales")
    bench.world.fail("load_schema", *["down"] * 99)
    for _ in range(intents.MAX_ATTEMPTS):
        lapse()
        steps.remote._lines.clear()
        intents.sweep()
    intent = Intent.objects.get()
    assert intent.state == Intent.State.STUCK
    bench.world.heal()
    steps.remote._lines.clear()
    intents.retry(intent)
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert AuditEntry.objects.filter(event="intent.aborted").count() == 1


def test_a_catalog_that_is_dropped_meanwhile(bench: Bench, actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(name: str) -> None:
        if name == "after 0":
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
    Intent.objects.filter(pk=old.pk).update(ended_at=timezone.now() - intents.KEPT - timedelta(minutes=1))
    intents.sweep()
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


def test_forbidden_makes_no_intent(bench: Bench, actor: Actor) -> None:
    revoke(actor)
    with pytest.raises((Forbidden, NotFound)):
        schemas.create_schema(actor_of(User.objects.get(username="mia")), bench.ident("sales"), None, {})
    assert not Intent.objects.exists()
