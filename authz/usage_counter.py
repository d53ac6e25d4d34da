"""Counts the questions that requests put to the evaluator, until access.usage writes the counts to the store.

Noting one touches memory only, so that it may be done beside the event loop; a process that is killed loses what it
counted since it last wrote.
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

MOST = 200_000  # different questions that wait to be written; further ones are lost, and their number is told
EARLY = 20_000  # different questions that are written without waiting for the time
HOUR = 3600  # seconds

# What a question came to; a hidden object was reported as a missing one. No enumeration, whose hashes take longer.
ALLOWED, REFUSED, HIDDEN = "allowed", "refused", "hidden"


class Question(NamedTuple):
    """One question in one hour (since 1970, UTC), by whoever asked: an account (0: none), the groups that a token
    claimed, and the roles that were active (None: all)."""

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
    """How often a question was asked, and when first and last, in seconds since 1970."""

    times: int
    first: float
    last: float


Counts = dict[Question, Count]


class _Waiting:
    """What this process has counted and not yet written."""

    def __init__(self) -> None:
        self.begin()
        os.register_at_fork(after_in_child=self.begin)  # what the parent counted, the parent writes

    def begin(self) -> None:
        self.lock = threading.Lock()
        self.counts: dict[tuple[Any, ...], list[Any]] = {}  # plain ones, since making a named tuple takes 1 us
        self.lost = 0
        self.is_announced = False


_waiting = _Waiting()
_listeners: list[Callable[[], object]] = []


def when_first(listener: Callable[[], object]) -> None:
    """Register a function that is called in each process when a request puts its first question."""
    _listeners.append(listener)


def is_recorded() -> bool:
    return bool(settings.METALAKE_USE_DAYS)


def note(actor: Actor, operation: Operation, lineage: Lineage, outcome: str) -> None:
    """Count a question; once for each request, however often its services ask it again."""
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
    """How many different questions wait to be written."""
    return len(_waiting.counts)


def take() -> tuple[Counts, int]:
    """What was counted since this was called last, and how many questions were lost for want of room."""
    with _waiting.lock:
        counted, lost = _waiting.counts, _waiting.lost
        _waiting.counts, _waiting.lost = {}, 0
    return {Question(*question): Count(*count) for question, count in counted.items()}, lost


def put_back(counts: Counts) -> None:
    """Count again what could not be written."""
    for question, count in counts.items():
        _count(question, *count)
