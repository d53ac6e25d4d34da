"""Drains the outbox: each row goes to its topic's handler, and is deleted soon after the handler returns.

A drainer claims rows by moving their due time ahead while it works on them, so a dead drainer's rows are due again
within LEASE; handlers run at least once and must be idempotent. Rows handled quickly are deleted in one batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from metalake.errors import MetalakeError
from metalake.leader_election import WakeupPipe
from metalake.models import Outbox

log = logging.getLogger(__name__)

BATCH = 50
LEASE = timedelta(seconds=15)
MAX_BACKOFF = timedelta(minutes=5)
FULL = 2  # SQLite's number of synchronous=FULL
TOGETHER = 0.1  # seconds of handling per batched delete
MOST_LEFT = 1_000  # rows left to others individually; beyond that, whole topics are

Handler = Callable[[dict[str, Any]], object]
Unless = Callable[[], str]
"""Returns why this process leaves a topic's rows to others; "" if it handles them."""
_handlers: dict[str, Handler] = {}
_in_order: set[str] = set()
_unless: dict[str, Unless] = {}
_left: dict[int, tuple[str, float]] = {}  # rows left to other processes: topic, and until when
_rounds: list[Callable[[], object]] = []
_after_some: list[Callable[[], object]] = []
bell = WakeupPipe()


class NotHere(Exception):
    """Raised by a handler to leave the work to another process, because of this one's settings or mounts.

    Operators see the reason, so it must not contain secrets.
    """


def handles(topic: str, handler: Handler, *, in_order: bool = False, unless: Unless | None = None) -> None:
    """Register the handler of a topic; with `in_order`, rows wait until the previous one succeeds.

    While `unless` returns a reason, this process takes no rows of the topic.
    """
    _handlers[topic] = handler
    if in_order:
        _in_order.add(topic)
    if unless:
        _unless[topic] = unless


def every_round(*jobs: Callable[[], object]) -> None:
    """Register jobs for every round; each must be safe to run concurrently in several processes."""
    _rounds.extend(job for job in jobs if job not in _rounds)


def after_some(job: Callable[[], object]) -> None:
    """Register a job to run between handling some rows and deleting them; it must not fail."""
    if job not in _after_some:
        _after_some.append(job)


def do_round() -> None:
    """Run every registered job; one that fails does not stop the others."""
    for job in _rounds:
        try:
            job()
        except Exception:
            log.exception("%s failed; it is retried in the next round", getattr(job, "__qualname__", job))


def wake_after_commit() -> None:
    """Wake the drainer on commit; a lost wake-up only delays the work until the next round."""
    transaction.on_commit(bell.ring)


def drain() -> int:
    """Handle all due rows; returns how many succeeded. Failed rows stay and are retried with backoff."""
    handled = 0
    while rows := _claim():
        with _leased(rows):
            handled += _handle_each(rows)
    return handled


def _handle_each(rows: list[Outbox]) -> int:
    """Handle claimed rows; the claim of each is renewed while it is in the list."""
    handled: list[Outbox] = []
    count, since = 0, time.monotonic()
    for row in [*rows]:
        if row not in rows:
            continue  # released
        if is_done := _handle(row):
            handled.append(row)
            count += 1
        if not is_done or time.monotonic() - since > TOGETHER:
            _delete(handled, rows)
            since = time.monotonic()
        if not is_done:
            rows.remove(row)
            if row.topic in _in_order:
                _give_back(rows, row.topic)
    _delete(handled, rows)
    return count


def _delete(handled: list[Outbox], rows: list[Outbox]) -> None:
    """Delete handled rows and empty their list. If a power cut undoes that, they are handled again."""
    if not handled:
        return
    for job in _after_some:
        job()
    with _async_commit():
        Outbox.objects.filter(pk__in=[row.pk for row in handled]).delete()
    rows[:] = [row for row in rows if row not in handled]
    handled.clear()


@contextmanager
def _async_commit() -> Iterator[None]:
    """An asynchronous commit, without waiting for the disk: a power cut may undo it, a killed process does not.

    The next synchronous commit flushes it, too.
    """
    is_synchronous = _is_synchronous_sqlite()
    if is_synchronous:
        _execute("PRAGMA synchronous=NORMAL")  # with a WAL, the next synced commit syncs it (sqlite.org)
    try:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                _execute("SET LOCAL synchronous_commit = off")
            yield
    finally:
        if is_synchronous:
            _execute("PRAGMA synchronous=FULL")


def _is_synchronous_sqlite() -> bool:
    """Whether this is SQLite, and a transaction that begins now would commit synchronously."""
    return connection.vendor == "sqlite" and not connection.in_atomic_block and _execute("PRAGMA synchronous") == FULL


def _execute(statement: str) -> object:
    """The first value that the statement returns, if any."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


def _claim() -> list[Outbox]:
    now = timezone.now()
    if not Outbox.objects.filter(due_at__lte=now).exists():
        return []  # avoids the write lock
    topics, some = _left_to_others()
    with _async_commit():
        topics += _blocked(now, _in_order.difference(topics))
        due = Outbox.objects.filter(due_at__lte=now).exclude(Q(topic__in=topics) | some).order_by("id")
        if connection.features.has_select_for_update_skip_locked:
            due = due.select_for_update(skip_locked=True)
        rows = list(due[:BATCH])
        Outbox.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=now + LEASE)
    return rows


def _blocked(now: datetime, among: Iterable[str]) -> list[str]:
    """The ordered topics whose first row another drainer has claimed, or that failed and is not due yet.

    Call it in the transaction of the claim.
    """
    blocked = []
    for topic in sorted(among):
        rows = Outbox.objects.filter(topic=topic)
        first = rows.order_by("id").values_list("pk", flat=True).first()
        if first is None:
            continue
        mine = rows.filter(pk=first, due_at__lte=now)
        if connection.features.has_select_for_update_skip_locked:
            mine = mine.select_for_update(skip_locked=True)
        if not mine.values_list("pk", flat=True):
            blocked.append(topic)
    return blocked


def _give_back(rows: list[Outbox], topic: str) -> None:
    """Make the rows after a failed one due at once; the failed row itself blocks them."""
    later = [row for row in rows if row.topic == topic]
    rows[:] = [row for row in rows if row.topic != topic]
    Outbox.objects.filter(pk__in=[row.pk for row in later]).update(due_at=timezone.now())


def _left_to_others() -> tuple[list[str], Q]:
    """The topics and rows that this process leaves to others.

    A row whose `attempts` an operator reset to 0 is tried here again.
    """
    for pk, (_, until) in list(_left.items()):
        if until < time.monotonic():
            _left.pop(pk, None)
    topics = [topic for topic, unless in _unless.items() if unless()]
    if len(_left) > MOST_LEFT:
        topics += {topic for topic, _ in list(_left.values())}
    return topics, Q(pk__in=list(_left)[:MOST_LEFT], attempts__gt=0)


@contextmanager
def _leased(rows: list[Outbox]) -> Iterator[None]:
    """Renew the claim on the rows in the list, however long their handlers take."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(LEASE.total_seconds() / 3):
            try:
                Outbox.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=timezone.now() + LEASE)
            except DatabaseError:
                log.exception("the lease of outbox rows was not renewed; they may be handled twice")
            finally:
                connection.close()

    threading.Thread(target=renew, name="outbox lease", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _handle(row: Outbox) -> bool:
    try:
        _handlers[row.topic](row.payload)
    except Exception as failure:
        trace = None if isinstance(failure, (MetalakeError, NotHere)) else failure  # our errors need no traceback
        log.error("outbox row %s (%s) failed and is retried: %s", row.pk, row.topic, _why(failure), exc_info=trace)
        delay = min(timedelta(seconds=2 ** min(row.attempts, 10)), MAX_BACKOFF)
        if isinstance(failure, NotHere):
            _left[row.pk] = row.topic, time.monotonic() + delay.total_seconds()
            delay = timedelta()  # for others
        Outbox.objects.filter(pk=row.pk).update(
            attempts=row.attempts + 1, due_at=timezone.now() + delay, last_error=_why(failure)
        )
        return False
    return True


def _why(failure: Exception) -> str:
    """A failure's text for operators: our own messages contain no secrets, those of libraries may."""
    if isinstance(failure, MetalakeError):
        return failure.message
    if isinstance(failure, NotHere):
        return str(failure)
    name = type(failure).__name__
    return f"{name}: {failure.strerror}" if isinstance(failure, OSError) and failure.strerror else name
