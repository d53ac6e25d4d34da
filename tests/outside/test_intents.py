"""Intents one by one: who may act on them, what is told of them, and what is not known yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from authz.actor import Actor
from catalogs.models import Intent, Schema
from catalogs.services import schemas
from catalogs.services.alterations import Alteration
from metalake.errors import AlreadyExists, Conflict, OutcomeUnknown, ProviderBusy, ProviderUnavailable
from outside import intents, recovery
from tests.outside.crashes import killed_at, settle_all
from tests.outside.writes import BY_NAME, Bench

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_audit"),
]


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
    Intent.objects.update(lease_until=timezone.now() + timedelta(minutes=1))
    assert recovery.sweep() == 0
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


@pytest.mark.store(once=True)
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


def test_a_failure_is_told_though_it_is_not_undone_yet(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents, "WAIT", 0.2)
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


class Clock:
    """Takes the place of the module `time`, and goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_an_altered_object_waits_for_the_other_write(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.make_schema("sales")
    killed_at("promised", lambda: _set(bench, "a"))
    clock = Clock()
    monkeypatch.setattr(intents, "time", clock)
    with pytest.raises(Conflict, match="under way"):
        _set(bench, "b")
    assert intents.WAIT < clock.now < 1.5 * intents.WAIT, "it waits, and once"


def test_a_table_is_not_altered_while_its_schema_is_written_to(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents, "WAIT", 0.2)
    alter = BY_NAME["alter a table"]
    alter.prepare(bench)
    killed_at("promised", lambda: _set(bench, "a", of="flights"))
    with pytest.raises(Conflict, match="under way"):
        alter.act(bench)
    assert bench.world.calls("alter_table") == 0


def _set(bench: Bench, key: str, of: str = "sales") -> None:
    schemas.alter_schema(bench.actor, bench.ident(of), Alteration(properties=((key, "1"),)))


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
