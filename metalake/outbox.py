"""Draining the outbox: each row is handed to the handler of its topic, and deleted once that returns.

Rows are claimed by moving their due time ahead, so that a drainer that dies gives them back; handlers run at least
once and must be idempotent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from metalake.models import Outbox

log = logging.getLogger(__name__)

BATCH = 50
LEASE = timedelta(minutes=10)
MAX_BACKOFF = timedelta(minutes=5)

Handler = Callable[[dict[str, Any]], None]
_handlers: dict[str, Handler] = {}
_wake = threading.Event()


def handles(topic: str, handler: Handler) -> None:
    """Register what a topic's rows are handed to."""
    _handlers[topic] = handler


def wake_after_commit() -> None:
    """Tell whoever drains that there is work; a lost wake-up only costs the wait for the next round."""
    transaction.on_commit(_wake_up, robust=True)


def _wake_up() -> None:
    if settings.METALAKE_BROKER_URL:
        from metalake.celery import drain_outbox

        drain_outbox.apply_async(ignore_result=True, retry=False)
    else:
        _wake.set()


def drain() -> int:
    """Handle every due row; returns how many were handled. Failures stay, to be tried again later."""
    handled = 0
    while rows := _claim():
        handled += sum(_handle(row) for row in rows)
    return handled


def _claim() -> list[Outbox]:
    now = timezone.now()
    with transaction.atomic():
        due = Outbox.objects.filter(due_at__lte=now).order_by("id")
        if connection.features.has_select_for_update_skip_locked:
            due = due.select_for_update(skip_locked=True)
        rows = list(due[:BATCH])
        Outbox.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=now + LEASE)
    return rows


def _handle(row: Outbox) -> bool:
    try:
        _handlers[row.topic](row.payload)
    except Exception as failure:
        log.exception("outbox row %s (%s) failed; it stays and is tried again", row.pk, row.topic)
        delay = min(timedelta(seconds=2**min(row.attempts, 10)), MAX_BACKOFF)
        Outbox.objects.filter(pk=row.pk).update(
            attempts=row.attempts + 1, due_at=timezone.now() + delay, last_error=type(failure).__name__
        )
        return False
    row.delete()
    return True


class Drainer(threading.Thread):
    """The thread of a server that has no broker."""

    def __init__(self, every: float = 1.0) -> None:
        super().__init__(name="outbox", daemon=True)
        self.every = every

    def run(self) -> None:
        while True:
            _wake.wait(self.every)
            _wake.clear()
            try:
                close_old_connections()
                drain()
            except Exception:
                log.exception("draining the outbox failed; trying again")
