"""Tells short reads of our own store from work that may block: each has its own thread pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)
Row = TypeVar("Row")

BRIEF = 2000  # rows that a read beside the event loop may fetch: 3 ms in which nobody else is answered
LONG = 20_000  # rows that a thread for short reads may fetch: 30 ms, in which the others take turns with it
EVERY = 2**31 - 1  # rows, as a limit

_here = threading.local()


class BeginAgain(BaseException):
    """Raised if a short read would have to wait; a BaseException, so that no error handler catches it."""


class TooLong(BeginAgain):
    """Raised if a thread for short reads would compute for so long that the process for large requests should do it."""


def may_block() -> None:
    """To be called before waiting for a storage, another system or a writer, and before computing for long.

    Raises BeginAgain in a thread for short reads, so that the request runs again in one that may wait: it must not have
    changed anything yet.
    """
    if is_short():
        raise BeginAgain


def is_short() -> bool:
    """Whether this thread is one of those for short reads."""
    return getattr(_here, "most", None) is not None


def all_of(rows: QuerySet[M, Row]) -> list[Row]:
    """Every row of a query. Raises BeginAgain in a short read if there are more than it may fetch."""
    return at_most(None, lambda most: list(rows if most == EVERY else rows[:most]))


def at_most(limit: int | None, ask: Callable[[int], list[Row]]) -> list[Row]:
    """The rows that `ask` returns for a number of them, `limit` or all. Raises BeginAgain as `all_of` does."""
    wanted = EVERY if limit is None else limit
    most: int | None = getattr(_here, "most", None)
    if most is None or wanted <= most:
        return ask(wanted)
    rows = ask(most + 1)
    if len(rows) > most:
        raise TooLong if most == LONG else BeginAgain
    return rows


def be_brief() -> None:
    """Have this thread, that of an event loop, count as one for short reads for good."""
    _here.most = BRIEF


@contextmanager
def short_reads() -> Iterator[None]:
    """A context in which this thread counts as one for short reads."""
    before: int | None = getattr(_here, "most", None)
    _here.most = before or LONG
    try:
        yield
    finally:
        _here.most = before
