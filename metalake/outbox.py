"""Draining the outbox: each row is handed to the handler of its topic, and deleted once that returns.

Rows are claimed by moving their due time ahead for as long as they are worked on, so that a drainer that dies gives
them back within LEASE; handlers run at least once and must be idempotent.
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
from metalake.leading import Bell
from metalake.models import Outbox

log = logging.getLogger(__name__)

BATCH = 50
LEASE = timedelta(seconds=15)
MAX_BACKOFF = timedelta(minutes=5)
MOST_LEFT = 1_000  # rows one by one; where there are more, all of their topics

Handler = Callable[[dict[str, Any]], object]
Unless = Callable[[], str]
"""Why this process leaves a topic's rows to others; "" where it does not."""
_handlers: dict[str, Handler] = {}
_in_order: set[str] = set()
_unless: dict[str, Unless] = {}
_left: dict[int, tuple[str, float]] = {}  # rows that this process cannot do: their topic, and until when it leaves them
_rounds: list[Callable[[], object]] = []
bell = Bell()


class NotHere(Exception):
    """Raised by a handler whose work another process may do, as this one's settings or mounts are not right for it.

    The reason is for operators to read, so it holds no secret.
    """


def handles(topic: str, handler: Handler, *, in_order: bool = False, unless: Unless | None = None) -> None:
    """Register what a topic's rows are handed to; with `in_order` one that fails keeps those behind it waiting.

    What `unless` says keeps this process from taking them.
    """
    _handlers[topic] = handler
    if in_order:
        _in_order.add(topic)
    if unless:
        _unless[topic] = unless


def every_round(*jobs: Callable[[], object]) -> None:
    """Register what is done every round, whoever drains; each must be safe to do at once in several places."""
    _rounds.extend(job for job in jobs if job not in _rounds)


def do_round() -> None:
    """One failing job keeps no other from its turn."""
    for job in _rounds:
        try:
            job()
        except Exception:
            log.exception("%s failed; it is done again in the next round", getattr(job, "__qualname__", job))


def wake_after_commit() -> None:
    """Tell whoever drains that there is work; a lost wake-up only costs the wait for the next round."""
    transaction.on_commit(bell.ring)


def drain() -> int:
    """Handle every due row; returns how many were handled. Failures stay, to be tried again later."""
    handled = 0
    while rows := _claim():
        with _leased(rows):
            while rows:
                is_done = _handle(rows[0])
                handled += is_done
                row = rows.pop(0)
                if not is_done and row.topic in _in_order:
                    _give_back(rows, row.topic)
    return handled


def _claim() -> list[Outbox]:
    now = timezone.now()
    topics, some = _left_to_others()
    with transaction.atomic():
        topics += _held_up(now, _in_order.difference(topics))
        due = Outbox.objects.filter(due_at__lte=now).exclude(Q(topic__in=topics) | some).order_by("id")
        if connection.features.has_select_for_update_skip_locked:
            due = due.select_for_update(skip_locked=True)
        rows = list(due[:BATCH])
        Outbox.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=now + LEASE)
    return rows


def _held_up(now: datetime, among: Iterable[str]) -> list[str]:
    """Topics in order whose first row another drainer has, or which failed and is not due yet. In the claim itself."""
    held_up = []
    for topic in sorted(among):
        rows = Outbox.objects.filter(topic=topic)
        first = rows.order_by("id").values_list("pk", flat=True).first()
        if first is None:
            continue
        mine = rows.filter(pk=first, due_at__lte=now)
        if connection.features.has_select_for_update_skip_locked:
            mine = mine.select_for_update(skip_locked=True)
        if not mine.values_list("pk", flat=True):
            held_up.append(topic)
    return held_up


def _give_back(rows: list[Outbox], topic: str) -> None:
    """What is behind a row that failed is due as soon as that is done."""
    behind = [row for row in rows if row.topic == topic]
    rows[:] = [row for row in rows if row.topic != topic]
    Outbox.objects.filter(pk__in=[row.pk for row in behind]).update(due_at=timezone.now())


def _left_to_others() -> tuple[list[str], Q]:
    """The topics and the rows that this process leaves; a row that an operator has tried again has no `attempts`."""
    for pk, (_, until) in list(_left.items()):
        if until < time.monotonic():
            _left.pop(pk, None)
    topics = [topic for topic, unless in _unless.items() if unless()]
    if len(_left) > MOST_LEFT:
        topics += {topic for topic, _ in list(_left.values())}
    return topics, Q(pk__in=list(_left)[:MOST_LEFT], attempts__gt=0)


@contextmanager
def _leased(rows: list[Outbox]) -> Iterator[None]:
    """Keep claimed what is still in the list, however long its handlers take."""
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
        told = None if isinstance(failure, (MetalakeError, NotHere)) else failure  # their message says all
        log.error("outbox row %s (%s) stays and is tried again: %s", row.pk, row.topic, _why(failure), exc_info=told)
        delay = min(timedelta(seconds=2 ** min(row.attempts, 10)), MAX_BACKOFF)
        if isinstance(failure, NotHere):
            _left[row.pk] = row.topic, time.monotonic() + delay.total_seconds()
            delay = timedelta()  # for others
        Outbox.objects.filter(pk=row.pk).update(
            attempts=row.attempts + 1, due_at=timezone.now() + delay, last_error=_why(failure)
        )
        return False
    row.delete()
    return True


def _why(failure: Exception) -> str:
    """What operators may read of it: our own errors hold no secret, what others say may."""
    if isinstance(failure, MetalakeError):
        return failure.message
    if isinstance(failure, NotHere):
        return str(failure)
    name = type(failure).__name__
    return f"{name}: {failure.strerror}" if isinstance(failure, OSError) and failure.strerror else name
