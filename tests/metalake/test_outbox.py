"""The outbox: written with the change, drained at least once, never by two at a time, given back by the dead."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from metalake import outbox
from metalake.events import Event, follow_up, record
from metalake.leader_election import Turn
from metalake.models import Outbox
from server.background import Drainer
from tests.waiting import eventually

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

T = TypeVar("T")
TOPIC = "test.topic"
Handle = Callable[[Callable[[dict[str, Any]], None]], None]


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    """Set what the test's rows are handed to."""
    return lambda handler: monkeypatch.setitem(outbox._handlers, TOPIC, handler)


@pytest.fixture
def handled(handle: Handle) -> Iterator[list[int]]:
    """The numbers of the rows that were handled, in order."""
    numbers: list[int] = []
    handle(lambda payload: numbers.append(payload["n"]))
    yield numbers


def leave(*numbers: int) -> None:
    with transaction.atomic():
        follow_up(TOPIC, [{"n": number} for number in numbers])


def in_threads(*acts: Callable[[], T]) -> list[T]:
    def run(act: Callable[[], T]) -> T:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def test_a_row_shares_the_fate_of_its_transaction(handled: list[int]) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        follow_up(TOPIC, [{"n": 1}])
        raise ZeroDivisionError
    assert not Outbox.objects.exists()
    leave(2)
    assert Outbox.objects.count() == 1
    assert handled == []
    assert outbox.drain() == 1
    assert handled == [2]
    assert not Outbox.objects.exists()


def test_an_event_is_audited_and_waits_in_the_same_transaction() -> None:
    from authz.models import AuditEntry

    event = Event(name="thing.made", actor="mia", kind="schema", object_id=1, full_name="a.b", metalake_id=None)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record(event)
        assert (AuditEntry.objects.count(), Outbox.objects.count()) == (1, 1)
        raise ZeroDivisionError
    assert (AuditEntry.objects.count(), Outbox.objects.count()) == (0, 0)


def test_nobody_is_woken_before_the_commit(handled: list[int]) -> None:
    outbox.bell.wait(0)
    with transaction.atomic():
        follow_up(TOPIC, [{"n": 1}])
        assert not outbox.bell.wait(0)
    assert outbox.bell.wait(0)
    assert not outbox.bell.wait(0)


def test_rows_are_handled_in_order_and_in_batches(handled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BATCH", 3)
    leave(*range(10))
    assert outbox.drain() == 10
    assert handled == list(range(10))


def test_a_failure_keeps_its_row_and_waits_longer_each_time(handle: Handle) -> None:
    def fail(payload: dict[str, Any]) -> None:
        raise OSError("s3cret")

    handle(fail)
    leave(1)
    for attempts, seconds in ((1, 1), (2, 2), (3, 4)):
        Outbox.objects.update(due_at=timezone.now())
        before = timezone.now()
        assert outbox.drain() == 0
        row = Outbox.objects.get()
        assert (row.attempts, row.last_error) == (attempts, "OSError")  # the message may hold a secret
        assert timedelta(seconds=seconds) <= row.due_at - before < timedelta(seconds=seconds + 5)
    Outbox.objects.update(attempts=60, due_at=timezone.now())
    outbox.drain()
    assert Outbox.objects.get().due_at - timezone.now() <= outbox.MAX_BACKOFF


def test_a_failure_holds_up_no_other_row(handle: Handle) -> None:
    handled = []

    def handler(payload: dict[str, Any]) -> None:
        if payload["n"] == 1:
            raise ValueError
        handled.append(payload["n"])

    handle(handler)
    leave(1, 2, 3)
    assert outbox.drain() == 2
    assert handled == [2, 3]
    assert [row.payload for row in Outbox.objects.all()] == [{"n": 1}]


def test_a_failed_row_is_handled_once_its_handler_works(handle: Handle, handled: list[int]) -> None:
    def broken(payload: dict[str, Any]) -> None:
        raise ValueError

    handle(broken)
    leave(1)
    outbox.drain()
    handle(lambda payload: handled.append(payload["n"]))
    assert outbox.drain() == 0  # not due yet
    Outbox.objects.update(due_at=timezone.now())
    assert outbox.drain() == 1
    assert handled == [1]


def test_a_topic_that_nobody_handles_stays(handled: list[int]) -> None:
    with transaction.atomic():
        follow_up("test.unknown", [{}])
    assert outbox.drain() == 0
    assert Outbox.objects.get().last_error == "KeyError"


def test_what_a_handler_leaves_is_drained_too(handle: Handle) -> None:
    handled = []

    def handler(payload: dict[str, Any]) -> None:
        handled.append(payload["n"])
        if payload["n"] < 3:
            leave(payload["n"] + 1)

    handle(handler)
    leave(1)
    assert outbox.drain() == 3
    assert handled == [1, 2, 3]


def test_two_drainers_never_hold_one_row(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BATCH", 2)
    running: set[int] = set()
    done: list[int] = []
    twice: list[int] = []
    lock = threading.Lock()

    def handler(payload: dict[str, Any]) -> None:
        number = payload["n"]
        with lock:
            if number in running:
                twice.append(number)
            running.add(number)
        time.sleep(0.005)
        with lock:
            running.discard(number)
            done.append(number)

    handle(handler)
    leave(*range(40))
    in_threads(*[outbox.drain] * 4)
    assert sorted(done) == list(range(40))
    assert twice == []


def test_a_row_that_takes_longer_than_the_lease_stays_claimed(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "LEASE", timedelta(seconds=6))
    handled: list[int] = []
    begun, may_end = threading.Event(), threading.Event()

    def slow(payload: dict[str, Any]) -> None:
        begun.set()
        may_end.wait(120)
        handled.append(payload["n"])

    def due_at() -> datetime:
        return Outbox.objects.get().due_at

    def late() -> int:
        try:
            assert begun.wait(60)
            first = due_at()
            assert eventually(lambda: due_at() > first + outbox.LEASE / 2)  # claimed again, twice
            return outbox.drain()
        finally:
            may_end.set()

    handle(slow)
    leave(1)
    assert in_threads(outbox.drain, late) == [1, 0]
    assert handled == [1]


def test_the_dead_give_their_rows_back(handled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    leave(1, 2)
    assert len(outbox._claim()) == 2  # and its process dies here
    assert outbox.drain() == 0
    lease_over = timezone.now() + outbox.LEASE
    monkeypatch.setattr(outbox.timezone, "now", lambda: lease_over)
    assert outbox.drain() == 2
    assert handled == [1, 2]
    assert outbox.LEASE.total_seconds() <= 60


def test_a_row_is_handled_again_when_its_drainer_died_after_handling(
    handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*rows: list[Outbox]) -> None:
        raise SystemExit

    leave(1)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(outbox, "_delete", dies)
        outbox.drain()
    Outbox.objects.update(due_at=timezone.now())
    assert outbox.drain() == 1
    assert handled == [1, 1]


def test_a_drainer_that_dies_among_its_rows_leaves_none_out(handle: Handle) -> None:
    handled: list[int] = []

    def dies_at_the_third(payload: dict[str, Any]) -> None:
        if payload["n"] == 3 and 3 not in handled:
            handled.append(3)
            raise SystemExit
        handled.append(payload["n"])

    handle(dies_at_the_third)
    leave(1, 2, 3, 4)
    with pytest.raises(SystemExit):
        outbox.drain()
    Outbox.objects.update(due_at=timezone.now())
    assert outbox.drain() == 4
    assert handled == [1, 2, 3, 1, 2, 3, 4], "those before it once more, and those behind it"


def test_rows_that_take_no_time_are_deleted_together(handled: list[int]) -> None:
    leave(*range(10))
    with CaptureQueriesContext(connection) as captured:
        assert outbox.drain() == 10
    deletions = [query["sql"] for query in captured.captured_queries if query["sql"].startswith("DELETE")]
    assert len(deletions) == 1, deletions


def test_rows_are_deleted_before_the_one_behind_a_slow_one(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "TOGETHER", 0.01)
    seen: list[list[int]] = []

    def handler(payload: dict[str, Any]) -> None:
        seen.append(sorted(row.payload["n"] for row in Outbox.objects.all()))
        time.sleep(0.02 if payload["n"] == 2 else 0)

    handle(handler)
    leave(1, 2, 3)
    outbox.drain()
    assert seen[2] == [3]


def test_looking_for_due_rows_takes_no_place_among_the_writers(handled: list[int]) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert outbox.drain() == 0
    assert not [query["sql"] for query in captured.captured_queries if query["sql"].startswith("BEGIN")]


def test_other_transactions_of_a_drainer_wait_for_the_disk(handle: Handle) -> None:
    asked = "PRAGMA synchronous" if connection.vendor == "sqlite" else "SHOW synchronous_commit"
    levels: list[str] = []

    def level() -> str:
        with connection.cursor() as cursor:
            return str(cursor.execute(asked).fetchone()[0])

    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=FULL")  # as a server has it
    before = level()
    handle(lambda payload: levels.append(level()))
    leave(1)
    with CaptureQueriesContext(connection) as captured:
        outbox.drain()
    assert [*levels, level()] == [before] * 2
    sent = [query["sql"] for query in captured.captured_queries]
    assert sent.count("PRAGMA synchronous=NORMAL") + sent.count("SET LOCAL synchronous_commit = off") == 2


def test_the_drainer_of_a_server_is_woken_and_outlives_failures(
    handled: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails = [True]
    claim = outbox._claim

    def claims() -> list[Outbox]:
        if fails.pop() if fails else False:
            raise OSError("the database is gone")
        return claim()

    monkeypatch.setattr(outbox, "_claim", claims)
    outbox.bell.wait(0)
    drainer = Stoppable(Turn(tmp_path / "leader"), every=600)
    drainer.start()
    leave(1)  # the first look fails
    time.sleep(0.1)
    leave(2)
    assert eventually(lambda: {1, 2} <= set(handled))
    drainer.stop()


class Stoppable(Drainer):
    """A drainer that ends with its test."""

    def run(self) -> None:
        try:
            super().run()
        except SystemExit:
            connection.close()

    def stop(self) -> None:
        self.every = 0
        outbox._handlers[TOPIC] = lambda payload: sys.exit()
        leave(0)
        self.join(10)
        assert not self.is_alive()
        Outbox.objects.all().delete()


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_in_order", {TOPIC})


def test_in_order_a_failure_holds_up_what_is_behind_it_and_no_other_topic(
    handle: Handle, handled: list[int], in_order: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[int] = []
    monkeypatch.setitem(outbox._handlers, "test.other", lambda payload: others.append(payload["n"]))

    def broken(payload: dict[str, Any]) -> None:
        raise OSError("the disk is full")

    handle(broken)
    leave(1, 2)
    follow_up("test.other", [{"n": 7}])
    leave(3)
    assert outbox.drain() == 1
    assert others == [7]
    handle(lambda payload: handled.append(payload["n"]))
    leave(4)
    assert outbox.drain() == 0, "the first waits, so all do"
    Outbox.objects.filter(payload__n=1).update(due_at=timezone.now())
    assert outbox.drain() == 4
    assert handled == [1, 2, 3, 4]


def test_in_order_one_drainer_works_at_a_time(handle: Handle, in_order: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BATCH", 2)
    leave(*range(12))
    seen: list[int] = []

    def handler(payload: dict[str, Any]) -> None:
        time.sleep(0.002)
        seen.append(payload["n"])

    handle(handler)
    in_threads(*[outbox.drain] * 4)
    outbox.drain()
    assert seen == list(range(12))
