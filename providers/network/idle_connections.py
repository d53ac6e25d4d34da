"""Connections that are kept open between calls, for whatever system: few for each address, and few in the process."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

MOST = 50  # idle connections of all processes of this server, shared among them


class Reusable(Protocol):
    """A connection with the time.monotonic() of its last use."""

    idle_since: float

    def is_quiet(self) -> bool:
        """Whether the other end has sent nothing and not closed the connection. Sends nothing."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Reusable)


class IdleConnections(Generic[C]):
    """Idle connections by address, of this process alone: a forked one does not use its parent's.

    A connection is closed after `seconds` without use, by a timer if nobody comes by.
    """

    def __init__(self, *, most_each: int, seconds: float, most: int = MOST) -> None:
        self._most_each, self._seconds, self._most = most_each, seconds, most
        self._idle: OrderedDict[Hashable, deque[C]] = OrderedDict()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._process = os.getpid()

    def __iter__(self) -> Iterator[C]:
        """The idle connections of all addresses."""
        with self._lock:
            return iter([connection for idle in self._idle.values() for connection in idle])

    def close_all(self) -> None:
        with self._lock:
            self._forget_the_parents()
            for idle in self._idle.values():
                while idle:
                    idle.popleft().close()

    def take(self, address: Hashable) -> C | None:
        """A connection that can be used again, or None."""
        with self._lock:
            self._forget_the_parents()
            idle = self._idle.get(address)
            while idle:
                connection = idle.pop()
                if time.monotonic() - connection.idle_since < self._seconds and connection.is_quiet():
                    return connection
                connection.close()
        return None

    def give_back(self, address: Hashable, connection: C) -> None:
        connection.idle_since = time.monotonic()
        with self._lock:
            self._forget_the_parents()
            self._idle.setdefault(address, deque()).append(connection)
            self._idle.move_to_end(address)
            self._close_some()

    def _forget_the_parents(self) -> None:
        """In a forked process, leave the parent's connections alone: closing one may say goodbye over it."""
        if self._process != os.getpid():
            self._idle.clear()
            self._process, self._timer = os.getpid(), None

    def _close_some(self) -> None:
        """Close what is too old or too much, the address first that was used longest ago; then set the timer."""
        too_old = time.monotonic() - self._seconds
        for idle in self._idle.values():
            while idle and (len(idle) > self._most_each or idle[0].idle_since <= too_old):
                idle.popleft().close()
        while sum(map(len, self._idle.values())) > self._most:
            next(idle for idle in self._idle.values() if idle).popleft().close()
        for key in [key for key, idle in self._idle.items() if not idle]:
            del self._idle[key]
        if self._idle and not (self._timer and self._timer.is_alive()):
            self._timer = threading.Timer(self._seconds, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        with self._lock:
            self._timer = None
            self._close_some()
