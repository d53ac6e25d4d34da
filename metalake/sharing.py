"""What all processes of one store must have in common, and what one that differs leaves to the others.

The store keeps what was first said of each thing that is shared. A process compares itself at its start and every
minute after, says where it differs, and its outbox leaves the work that it cannot do to processes that can.
"""

from __future__ import annotations

import logging
import os
import socket
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

log = logging.getLogger(__name__)

EVENT_LOG = "event log"
EVERY = 60.0  # seconds between two looks
FRESH, KEPT = timedelta(minutes=3), timedelta(days=1)  # for how long a process that says nothing more counts; is shown


class Difference(NamedTuple):
    work: str  # that is left to others
    reason: str


Compare = Callable[[], Iterable[Difference]]
_comparisons: list[Compare] = []


def compare_with(comparison: Compare) -> None:
    """Register what says where this process differs."""
    if comparison not in _comparisons:
        _comparisons.append(comparison)


def known(name: str) -> str | None:
    return Shared.objects.filter(name=name).values_list("value", flat=True).first()


def agree(name: str, value: str) -> str:
    """What the store knows under the name: this value if it knew none."""
    return Shared.objects.get_or_create(name=name, defaults={"value": value})[0].value


def differences() -> list[Difference]:
    return [found for comparison in _comparisons for found in comparison()]


# The event log


def begin() -> None:
    """At the start of a server or worker: events wait from now on for one that has the log, if this one has."""
    if settings.METALAKE_EVENT_LOG:
        agree(EVENT_LOG, "kept")


def events_left() -> str:
    """Why this process delivers no events; "" where it does, also to a store that has no log at all."""
    if settings.METALAKE_EVENT_LOG or known(EVENT_LOG) is None:
        return ""
    return (
        "METALAKE_EVENT_LOG is not set here, while this store has an event log: events wait for a process that has it. "
        f"If there shall be none any more: manage.py shared_settings --forget '{EVENT_LOG}'."
    )


def _compare_event_log() -> Iterator[Difference]:
    if reason := events_left():
        yield Difference("events", reason)


compare_with(_compare_event_log)


# Saying so


def told() -> list[str]:
    """A sentence for each difference, for the terminal at the start of a process."""
    return [f"This process leaves {found.work} to others: {found.reason}" for found in differences()]


class Teller:
    """Logs what differs when that changes, and keeps it in the store for the metrics and the operators' admin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0
        self._before: list[Difference] = []

    def tell(self) -> None:
        """Every minute at most, however often it is asked."""
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + EVERY
            found, before = differences(), self._before
            self._before = found
        if found != before:
            for difference in found:
                log.error("this process leaves %s to others: %s", difference.work, difference.reason)
            if not found:
                log.info("this process leaves no work to others any more")
        if found or before:
            _keep(found)


tell = Teller().tell


def _keep(found: list[Difference]) -> None:
    me, now = f"{socket.gethostname()} {os.getpid()}", timezone.now()
    with transaction.atomic():
        Differing.objects.filter(process=me).delete()
        Differing.objects.filter(seen_at__lt=now - KEPT).delete()
        Differing.objects.bulk_create(
            Differing(process=me, work=work, reason=reason, seen_at=now) for work, reason in found
        )


class Metrics(Collector):
    """What waits because it failed, and how many processes leave work to others."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # so that registering asks nothing of a database that may not be there yet

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
