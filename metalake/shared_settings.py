"""Settings that all processes of one store must share, and the work that a process with other settings skips.

The store keeps the first value of each shared setting. A process compares its own at startup and every minute, reports
differences, and leaves outbox rows that it cannot handle to processes that can.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Count
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from metalake.models import Differing, Outbox, Shared
from metalake.request_context import this_process

log = logging.getLogger(__name__)

EVENT_LOG = "event log"
EVERY = 60.0  # seconds between two comparisons
FRESH, SHOWN_FOR = timedelta(minutes=3), timedelta(days=1)  # how long a report is counted in metrics, and shown


class Difference(NamedTuple):
    work: str  # that is left to others
    reason: str


Compare = Callable[[], Iterable[Difference]]
_comparisons: list[Compare] = []


def compare_with(comparison: Compare) -> None:
    """Register a function that returns the differences of this process."""
    if comparison not in _comparisons:
        _comparisons.append(comparison)


def known(name: str) -> str | None:
    return Shared.objects.filter(name=name).values_list("value", flat=True).first()


def agree(name: str, value: str) -> str:
    """The store's value of a shared setting; the first caller sets it."""
    return Shared.objects.get_or_create(name=name, defaults={"value": value})[0].value


def differences() -> list[Difference]:
    return [difference for comparison in _comparisons for difference in comparison()]


# The event log


def begin() -> None:
    """Call at the startup of a server or worker: if it has an event log, only processes with one deliver events."""
    if settings.METALAKE_EVENT_LOG:
        agree(EVENT_LOG, "kept")


def events_left() -> str:
    """Why this process delivers no events; "" if it does, which includes a store without any event log."""
    if settings.METALAKE_EVENT_LOG or known(EVENT_LOG) is None:
        return ""
    return (
        "METALAKE_EVENT_LOG is not set here, but this store has an event log: events wait for a process that has it. "
        f"To stop using one: manage.py shared_settings --forget '{EVENT_LOG}'."
    )


def _compare_event_log() -> Iterator[Difference]:
    if reason := events_left():
        yield Difference("events", reason)


compare_with(_compare_event_log)


# Reports


def sentences() -> list[str]:
    """A message for each difference, printed at startup."""
    return [f"This process leaves {difference.work} to others: {difference.reason}" for difference in differences()]


class Reporter:
    """Logs the differences when they change, and stores them for the metrics and the admin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0
        self._before: list[Difference] = []

    def tell(self) -> None:
        """Compare and report, at most once a minute."""
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + EVERY
            current, before = differences(), self._before
            self._before = current
        if current != before:
            for difference in current:
                log.error("this process leaves %s to others: %s", difference.work, difference.reason)
            if not current:
                log.info("this process leaves no work to others any more")
        if current or before:
            _store(current)


tell = Reporter().tell


def _store(current: list[Difference]) -> None:
    me, now = this_process(), timezone.now()
    with transaction.atomic():
        Differing.objects.filter(process=me).delete()
        Differing.objects.filter(seen_at__lt=now - SHOWN_FOR).delete()
        Differing.objects.bulk_create(
            Differing(process=me, work=work, reason=reason, seen_at=now) for work, reason in current
        )


class Metrics(Collector):
    """The numbers of failing outbox rows, and of processes that leave work to others."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # registering must not query a database that may be down

    def collect(self) -> Iterator[GaugeMetricFamily]:
        failing = GaugeMetricFamily("metalake_outbox_failing", "Follow-ups that failed", labels=["topic"])
        differing = GaugeMetricFamily(
            "metalake_differing_processes", "Processes whose settings keep them from this work", labels=["work"]
        )
        rows = Outbox.objects.filter(attempts__gt=0).values_list("topic")
        processes = Differing.objects.filter(seen_at__gt=timezone.now() - FRESH).values_list("work")
        try:
            for topic, count in rows.annotate(Count("pk")):
                failing.add_metric([topic], count)
            for work, count in processes.annotate(Count("process", distinct=True)):
                differing.add_metric([work], count)
        except DatabaseError:
            return
        yield from (failing, differing)
