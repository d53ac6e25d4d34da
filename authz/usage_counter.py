"""Counts requests' permission checks in memory, until access.usage writes the counts to the database.

Counting touches memory only, so it is safe on the event loop; a killed process loses its counts since the last write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings

from authz.actor import SYSTEM, Actor
from authz.operations import Operation
from metalake import request_context
from metalake.lineage import Lineage

MOST = 200_000  # distinct unwritten questions; further ones are dropped, and reported as lost
EARLY = 20_000  # distinct unwritten questions that trigger an early write
HOUR = 3600  # seconds

# Outcomes; a hidden object was reported as missing. Strings, since an enum hashes more slowly.
ALLOWED, REFUSED, HIDDEN = "allowed", "refused", "hidden"


class Question(NamedTuple):
    """A kind of check in one hour (since 1970, UTC) by one caller: an account (0: none), the groups that a token
    claimed, and the active roles (None: all)."""

    hour: int
    user: int
    claimed: tuple[int, ...]
    active: tuple[int, ...] | None
    metalake: int
    object: int
    operation: str
    outcome: str
    wire: str
    engine: str


class Count(NamedTuple):
    """The number of checks, and the first and last, in seconds since 1970."""

    times: int
    first: float
    last: float


Counts = dict[Question, Count]


class _Waiting:
    """This process's unwritten counts."""

    def __init__(self) -> None:
        self.begin()
        os.register_at_fork(after_in_child=self.begin)  # the parent writes its own counts

    def begin(self) -> None:
        self.lock = threading.Lock()
        self.counts: dict[tuple[Any, ...], list[Any]] = {}  # plain: a named tuple costs 1 us
        self.lost = 0
        self.is_announced = False


_waiting = _Waiting()
_listeners: list[Callable[[], object]] = []


def when_first(listener: Callable[[], object]) -> None:
    """Register a function to call in each process at the first check by a request."""
    _listeners.append(listener)


def is_recorded() -> bool:
    return bool(settings.METALAKE_USE_DAYS)


def note(actor: Actor, operation: Operation, lineage: Lineage, outcome: str) -> None:
    """Count a check, once per request however often its services repeat it."""
    if not settings.METALAKE_USE_DAYS or actor.name == SYSTEM:
        return
    door, now, nodes = request_context.door.get(), actor.now, lineage.nodes
    hour, about = int(now // HOUR), (nodes[0].id, nodes[-1].id)
    question = (hour, actor.id, actor.claimed, actor.active, *about, operation.name, outcome, door.wire, door.engine)
    if door.asked is not None:
        if question in door.asked:
            return
        door.asked.add(question)
    _count(question, 1, now, now)
    if not _waiting.is_announced and door is not request_context.NO_REQUEST:  # a server's parent must have no thread
        _waiting.is_announced = True
        for listener in _listeners:
            listener()


def _count(question: tuple[Any, ...], times: int, first: float, last: float) -> None:
    with _waiting.lock:
        count = _waiting.counts.get(question)
        if count is not None:
            count[0] += times
            if first < count[1]:
                count[1] = first
            if last > count[2]:
                count[2] = last
        elif len(_waiting.counts) < MOST:
            _waiting.counts[question] = [times, first, last]
        else:
            _waiting.lost += times


def waiting() -> int:
    """The number of distinct unwritten questions."""
    return len(_waiting.counts)


def take() -> tuple[Counts, int]:
    """The counts since the last call, and the number of checks dropped because MOST was reached."""
    with _waiting.lock:
        counted, lost = _waiting.counts, _waiting.lost
        _waiting.counts, _waiting.lost = {}, 0
    return {Question(*question): Count(*count) for question, count in counted.items()}, lost


def put_back(counts: Counts) -> None:
    """Restore counts that could not be written."""
    for question, count in counts.items():
        _count(question, *count)
