"""Short reads of our own store, and what may block: different threads answer the two (metalake/server/pools.py)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)
Row = TypeVar("Row")

BRIEF = 2000  # rows that nobody else has to wait for

_here = threading.local()


class BeginAgain(BaseException):
    """A read must wait for what is not our own store; no handler of errors may take it for one."""


class TooLong(BeginAgain):
    """A read computes for so long that even a process of threads that wait is better without it."""


def may_block() -> None:
    """To be called before anything that waits for a storage, another system or a writer, or computes for long.

    Raises BeginAgain in a thread that only reads, so that the request begins again in one that may wait: nothing may
    have been changed by then.
    """
    if is_short():
        raise BeginAgain


def is_short() -> bool:
    """Whether this thread is one of those that others' reads wait for."""
    return getattr(_here, "is_short", False)


def all_of(rows: QuerySet[M, Row]) -> list[Row]:
    """Every row of a query. Raises TooLong in a thread for short reads where there are more than BRIEF of them."""
    if not is_short():
        return list(rows)
    some = list(rows[: BRIEF + 1])
    if len(some) > BRIEF:
        raise TooLong
    return some


@contextmanager
def short_reads() -> Iterator[None]:
    """In this thread, until it ends."""
    _here.is_short = True
    try:
        yield
    finally:
        _here.is_short = False
