"""Separates short reads of our own database from work that may block; each has its own thread pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)
Row = TypeVar("Row")

BRIEF = 2000  # rows that a read on the event loop may fetch: it blocks the loop for 3 ms
LONG = 20_000  # rows that a short-read thread may fetch: 30 ms, shared with the other threads
EVERY = 2**31 - 1  # rows: no limit

_here = threading.local()


class BeginAgain(BaseException):
    """Raised when a short read would block: retry it in a thread that may. No `except Exception` catches it."""


class TooLong(BeginAgain):
    """Raised when a short read has too much to compute: the process for large requests should answer it."""


def may_block() -> None:
    """Call this before waiting for storage, a remote system or a database writer, and before long computations.

    Raises BeginAgain in a short-read thread, so that the request is retried in one that may block; the request must not
    have changed anything yet.
    """
    if is_short():
        raise BeginAgain


def is_short() -> bool:
    """Whether this is a short-read thread."""
    return getattr(_here, "most", None) is not None


def all_of(rows: QuerySet[M, Row]) -> list[Row]:
    """All rows of a query. Raises BeginAgain in a short read if there are more than it may fetch."""
    return at_most(None, lambda most: list(rows if most == EVERY else rows[:most]))


def at_most(limit: int | None, fetch: Callable[[int], list[Row]]) -> list[Row]:
    """Up to `limit` rows (None: all), read by `fetch(limit)`. Raises BeginAgain as `all_of` does."""
    count = EVERY if limit is None else limit
    most: int | None = getattr(_here, "most", None)
    if most is None or count <= most:
        return fetch(count)
    rows = fetch(most + 1)
    if len(rows) > most:
        raise TooLong if most == LONG else BeginAgain
    return rows


def be_brief() -> None:
    """Make this thread, an event loop's, a short-read thread for good."""
    _here.most = BRIEF


@contextmanager
def short_reads() -> Iterator[None]:
    """A context in which this thread is a short-read thread."""
    before: int | None = getattr(_here, "most", None)
    _here.most = before or LONG
    try:
        yield
    finally:
        _here.most = before
