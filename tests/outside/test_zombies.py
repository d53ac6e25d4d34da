"""Processes that wake up too late, and that come at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from authz.models import AuditEntry
from catalogs.models import Intent, Schema
from catalogs.services import schemas, tables
from metalake.errors import AlreadyExists, Conflict, MetalakeError, OutcomeUnknown, ProviderUnavailable
from outside import intents, recovery, steps
from tests.catalogs.racing import together
from tests.outside.crashes import Killed, ended, lapse, prepared, settle_all, stopping, undisturbed
from tests.outside.invariants import check_invariants
from tests.outside.writes import WRITES, Bench, Write
from tests.waiting import eventually

pytestmark = [pytest.mark.store, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CHAIN, TABLE, MOVE, ALTERATION = (
    next(write for write in WRITES if write.name == name)
    for name in ("a chain of four schemas", "create a table", "rename a table by copying it", "alter a table")
)


class Sleeper:
    """A thread that makes a write and sleeps at a point of it until it is woken."""

    def __init__(self, bench: Bench, write: Write, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asleep, self.woken = threading.Event(), threading.Event()
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, args=[bench, write])

        def sleep(name: str) -> None:
            if name == point and threading.current_thread() is self.thread:
                self.asleep.set()
                assert self.woken.wait(30)

        monkeypatch.setattr(steps, "point", sleep)
        self.thread.start()
        assert self.asleep.wait(30)

    def _run(self, bench: Bench, write: Write) -> None:
        from metalake.request_context import request_id

        request_id.set("a-request-of-mia")
        try:
            write.act(bench)
        except MetalakeError as error:
            self.error = error
        finally:
            connection.close()

    def wake(self) -> Exception | None:
        self.woken.set()
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.error


@pytest.mark.parametrize("point", ["promised", "marked 0", "after 2"])
def test_who_was_taken_over_does_nothing_more(bench: Bench, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after, _ = undisturbed(bench, CHAIN)
    before = prepared(bench, CHAIN)
    sleeper = Sleeper(bench, CHAIN, point, monkeypatch)
    settle_all()
    assert ended(bench, CHAIN, before, after).state == Intent.State.ABORTED
    calls = {verb: bench.world.calls(verb) for verb in ("create_schema", "drop_schema")}
    assert isinstance(sleeper.wake(), ProviderUnavailable), "it was told what became of its write"
    assert {verb: bench.world.calls(verb) for verb in calls} == calls
    settle_all()
    ended(bench, CHAIN, before, after)


def test_what_was_published_by_another_is_not_published_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    after, _ = undisturbed(bench, CHAIN)
    before = prepared(bench, CHAIN)
    sleeper = Sleeper(bench, CHAIN, "applied", monkeypatch)
    settle_all()
    assert sleeper.wake() is None, "it happened, so it is acknowledged"
    assert ended(bench, CHAIN, before, after).state == Intent.State.COMMITTED


def test_what_a_sleeper_makes_after_all_is_removed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It slept between its last look at the fence and its call, for longer than anybody waits for late calls."""
    after, _ = undisturbed(bench, TABLE)
    before = prepared(bench, TABLE)
    sleeper = Sleeper(bench, TABLE, "before 0", monkeypatch)
    settle_all()
    ended(bench, TABLE, before, after)
    assert sleeper.wake() is not None
    assert bench.there() == after.there, "the late call was not made: this test is for nothing"
    assert recovery.sweep() == 1, "the sleeper noticed and told the sweeper at once"
    assert ended(bench, TABLE, before, after).state == Intent.State.ABORTED


def test_what_a_sleeper_alters_after_all_is_not_called_a_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be undone: it is found as a change from outside, and its caller is told to look."""
    after, _ = undisturbed(bench, ALTERATION)
    prepared(bench, ALTERATION)
    sleeper = Sleeper(bench, ALTERATION, "before 0", monkeypatch)
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert isinstance(sleeper.wake(), OutcomeUnknown)
    assert bench.there() == after.there, "the late call was not made: this test is for nothing"
    tables.load_table(bench.actor, bench.ident("flights", "delays"))
    settle_all()
    assert bench.audited() == {"intent.aborted": 1, "table.changed_outside": 1}
    assert [wrong for wrong in check_invariants(bench) if not wrong.startswith("I6")] == [], "but for its marker"


@pytest.mark.parametrize("write", [CHAIN, TABLE], ids=lambda write: write.name)
def test_a_call_that_arrives_late_is_undone(bench: Bench, write: Write) -> None:
    after, _ = undisturbed(bench, write)
    before = prepared(bench, write)
    bench.world.fail(write.calls[0], *[""] * (len(write.calls) - 1), "late:0.3")
    with pytest.raises(ProviderUnavailable, match="It was not done"):
        write.act(bench)
    intent = Intent.objects.get()
    assert intent.state == Intent.State.ABORTED
    assert intent.lease_until is not None
    assert intent.ended_at is not None
    assert intent.lease_until - intent.ended_at == intents.LATE
    if write is TABLE:  # what the late schema would lie in is gone by then
        assert eventually(lambda: bench.there() == after.there)
    assert recovery.sweep() == 0, "not before it may have arrived"
    settle_all()
    AuditEntry.objects.filter(request_id="").update(request_id="a-request-of-mia")
    ended(bench, write, before, after)
    assert Intent.objects.get().lease_until is None


def test_two_sweepers_share_the_work(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"sales{number}" for number in range(12)]
    AuditEntry.objects.all().delete()
    for name in names:
        with pytest.raises(Killed), stopping(3):  # after the call, before that is noted
            bench.make_schema(name)
    lapse()
    both, met = threading.Barrier(2), threading.local()

    def meet(name: str) -> None:
        if name == "claimed" and not getattr(met, "already", False):
            met.already = True
            both.wait(30)  # each has one while the other has one

    monkeypatch.setattr(steps, "point", meet)
    catalog, now = Intent.objects.values_list("in_catalog_id", flat=True)[0], timezone.now()
    taken = together([lambda: recovery._sweep_catalog(catalog, now)] * 2)  # of two servers
    assert sum(taken) == len(names)
    assert min(taken) > 0
    assert {intent.state for intent in Intent.objects.all()} == {Intent.State.COMMITTED}
    assert {intent.attempts for intent in Intent.objects.all()} == {1}
    assert bench.audited() == {"schema.created": len(names)}


def _attempt(act: Callable[[], Any]) -> Callable[[], Exception | None]:
    def attempt() -> Exception | None:
        try:
            act()
        except MetalakeError as error:
            return error
        finally:
            connection.close()
        return None

    return attempt


def test_sixteen_create_one_name(bench: Bench) -> None:
    AuditEntry.objects.all().delete()
    told = together([_attempt(lambda: bench.make_schema("sales:emea"))] * 16)
    assert told.count(None) == 1, told
    assert all(isinstance(error, (AlreadyExists, Conflict)) for error in told if error), told
    assert bench.audited()["schema.created"] == 2
    assert bench.world.calls("create_schema") == 2, "losers asked the outside system, too"
    settle_all()
    AuditEntry.objects.all().update(request_id="a-request-of-mia")
    assert check_invariants(bench) == []


def test_different_leaves_below_a_missing_schema(bench: Bench) -> None:
    AuditEntry.objects.all().delete()
    leaves = [f"sales:c{number}" for number in range(6)]
    told = together([_attempt(partial(bench.make_schema, leaf)) for leaf in leaves])
    assert all(isinstance(error, Conflict) for error in told if error), told
    made = {leaf for leaf, error in zip(leaves, told, strict=True) if error is None}
    assert made
    paths = {row.path.logical() for row in Schema.objects.filter(in_catalog__name="deep")}
    assert paths == {"sales", *made}
    settle_all()
    AuditEntry.objects.all().update(request_id="a-request-of-mia")
    assert check_invariants(bench) == []


def test_create_in_what_is_dropped(bench: Bench) -> None:
    """Whichever was first, there is no table without its schema."""
    for number in range(4):
        schema = f"flights{number}"
        bench.make_schema(schema)
        create, drop = partial(bench.make_table, schema, "delays"), partial(_drop, bench, schema)
        told = together([_attempt(create), _attempt(drop)])
        assert not any(isinstance(error, OutcomeUnknown) for error in told), told
        assert told.count(None) <= 1, told
    settle_all()
    AuditEntry.objects.all().update(request_id="a-request-of-mia", actor="mia")
    assert check_invariants(bench) == []


def _drop(bench: Bench, schema: str) -> None:
    schemas.drop_schema(bench.actor, bench.ident(schema))
