"""Separates short reads of our own store from work that may block; each has its threads (metalake/server/pools.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)
Row = TypeVar("Row")

BRIEF = 2000  # rows that a short read may fetch
EVERY = 2**31 - 1  # rows, as a limit

_here = threading.local()


class BeginAgain(BaseException):
    """Raised if a short read would have to wait; a BaseException, so that no error handler catches it."""


class TooLong(BeginAgain):
    """Raised if a read computes for so long that the process for large requests should do it."""


def may_block() -> None:
    """To be called before waiting for a storage, another system or a writer, and before computing for long.

    Raises BeginAgain in a thread for short reads, so that the request runs again in one that may wait: it must not have
    changed anything yet.
    """
    if is_short():
        raise BeginAgain


def is_short() -> bool:
    """Whether this thread is one of those for short reads."""
    return getattr(_here, "is_short", False)


def all_of(rows: QuerySet[M, Row]) -> list[Row]:
    """Every row of a query. Raises TooLong in a thread for short reads if there are more than BRIEF rows."""
    if not is_short():
        return list(rows)
    some = list(rows[: BRIEF + 1])
    if len(some) > BRIEF:
        raise TooLong
    return some


def at_most(limit: int | None, ask: Callable[[int], list[Row]]) -> list[Row]:
    """The rows that `ask` returns for a number of them, `limit` or all. Raises TooLong as `all_of` does."""
    most = EVERY if limit is None else limit
    if most <= BRIEF or not is_short():
        return ask(most)
    rows = ask(BRIEF + 1)
    if len(rows) > BRIEF:
        raise TooLong
    return rows


def be_short() -> None:
    """Have this thread count as one for short reads for good."""
    _here.is_short = True


@contextmanager
def short_reads() -> Iterator[None]:
    """A context in which this thread counts as one for short reads."""
    before, _here.is_short = is_short(), True
    try:
        yield
    finally:
        _here.is_short = before
