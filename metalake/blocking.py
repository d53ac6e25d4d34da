"""Reads of our own store, and what may block: the two are answered by different threads (metalake/door/pools.py)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_here = threading.local()


class BeginAgain(BaseException):
    """A read must wait for what is not our own store; no handler of errors may take it for one."""


def may_block() -> None:
    """To be called before anything that waits for a storage, another system or a writer, or computes for long.

    Raises BeginAgain in a thread that only reads, so that the request begins again in one that may wait: nothing may
    have been changed by then.
    """
    if getattr(_here, "only_reads", False):
        raise BeginAgain


@contextmanager
def only_reads() -> Iterator[None]:
    """In this thread, until it ends."""
    _here.only_reads = True
    try:
        yield
    finally:
        _here.only_reads = False
