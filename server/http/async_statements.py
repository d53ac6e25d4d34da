"""PostgreSQL beside the event loop: a hot read sends its statement, and others go on until the answer comes.

Each read runs in a greenlet, so that all that it is made of stays plain functions, of which one asks the store and gets
rows. Threads would take turns twice for each statement, which costs more than all the rest of the read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.db import connection
from greenlet import getcurrent, greenlet

from metalake.blocking import BeginAgain, short_reads
from metalake.statements import Row
from server.http import limits
from server.http.prepared import Session

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult

Connect = Callable[[], "psycopg.Connection[Any]"]

log = logging.getLogger(__name__)

SESSIONS = 4  # of a process: PostgreSQL answers as many reads of it at once
PATIENCE = limits.STATEMENT + 5  # seconds after which a session that has not answered is given up


class Sessions:
    """A few connections, each with one statement on the way at most; all but their opening is on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int = SESSIONS, connect: Connect | None = None) -> None:
        """`connect` opens a connection, in a thread of its own."""
        self.loop, self.number, self._connect = loop, number, connect or opened_by_django
        self.all: set[LoopSession] = set()
        self._free: list[LoopSession] = []
        self._waiting: deque[greenlet] = deque()
        self._opening: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        """Whether a read need not wait for long."""
        return bool(self.all) and len(self._waiting) < limits.MOST_READS

    def look(self) -> None:
        """Give up what does not answer, and open what is missing; to be called each second."""
        now = time.monotonic()
        for session in [each for each in self.all if each.reader and each.since < now - PATIENCE]:
            session.give_up()
        if len(self.all) < self.number and not (self._opening and self._opening.is_alive()):
            missing = self.number - len(self.all)
            self._opening = threading.Thread(target=self._open, args=(missing,), name="opens sessions", daemon=True)
            self._opening.start()

    def close(self) -> None:
        for session in [*self.all]:
            self._drop(session)

    def run(self, read: Callable[..., object], *given: object) -> None:
        """Begin a read, which may call `fetch`."""
        greenlet(read).switch(*given)

    def fetch(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        """The rows of a statement; for what runs by `run`. Raises BeginAgain if the store does not answer as it should.

        A connection that fails is closed, and the read goes the way of all.
        """
        import psycopg

        session = self._free.pop() if self._free else self._next()
        try:
            rows = session.rows_of(statement, parameters)
        except psycopg.errors.QueryCanceled as failure:
            self._give_back(session)
            raise BeginAgain from failure
        except psycopg.Error as failure:
            self._drop(session)
            raise BeginAgain from failure
        self._give_back(session)
        return rows

    def _next(self) -> LoopSession:
        if not self.all:
            raise BeginAgain
        self._waiting.append(getcurrent())
        session: LoopSession | None = _loop_goes_on()
        if session is None:
            raise BeginAgain
        return session

    def _give_back(self, session: LoopSession) -> None:
        if self._waiting:
            self.loop.call_soon(self._waiting.popleft().switch, session)
        else:
            self._free.append(session)

    def _drop(self, session: LoopSession) -> None:
        if session not in self.all:  # its number may be another's by now
            return
        self.all.remove(session)
        if session in self._free:
            self._free.remove(session)
        session.close()
        while self._waiting and not self.all:
            self.loop.call_soon(self._waiting.popleft().switch, None)

    def _open(self, missing: int) -> None:
        try:
            for _ in range(missing):
                self.loop.call_soon_threadsafe(self._add, self._connect())
        except Exception as failure:  # the way of all requests tells it to whoever asks
            log.debug("no session beside the event loop: %s", failure)

    def _add(self, raw: psycopg.Connection[Any]) -> None:
        session = LoopSession(raw, self.loop, self._drop)
        self.all.add(session)
        self._give_back(session)


def opened_by_django() -> psycopg.Connection[Any]:
    """A connection with all that Django and short reads prepare of one; not for the thread of an event loop."""
    with short_reads():
        connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    connection.connection = None
    return raw


class LoopSession(Session):
    """A connection whose answers come by the event loop."""

    def __init__(
        self, raw: psycopg.Connection[Any], loop: asyncio.AbstractEventLoop, drop: Callable[[LoopSession], None]
    ) -> None:
        super().__init__(raw)
        self.raw, self.loop, self._drop = raw, loop, drop
        self.reader: greenlet | None = None  # who waits for the answer, since when
        self.since = 0.0
        self._socket = self.libpq.socket
        self.libpq.nonblocking = 1
        loop.add_reader(self._socket, self._came)

    def close(self) -> None:
        self.loop.remove_reader(self._socket)
        self.loop.remove_writer(self._socket)
        self.raw.close()

    def give_up(self) -> None:
        """Have the read that waits go the way of all."""
        import psycopg

        reader, self.reader = self.reader, None
        if reader:
            reader.throw(psycopg.OperationalError("no answer came"))

    def _executed(self, name: bytes, given: Sequence[Any]) -> PGresult:
        self.libpq.send_query_prepared(name, given)
        return self._answer()

    def _prepared_by(self, name: bytes, text: bytes, types: list[int]) -> PGresult:
        self.libpq.send_prepare(name, text, types)
        return self._answer()

    def _answer(self) -> PGresult:
        while self.libpq.flush():  # more than the socket takes at once
            self.loop.add_writer(self._socket, self._came)
            self._wait()
            self.loop.remove_writer(self._socket)
        first: PGresult | None = None
        while True:
            while self.libpq.is_busy():
                self._wait()
                self.libpq.consume_input()
            result = self.libpq.get_result()
            if result is None:
                assert first is not None
                return first
            first = first or result

    def _wait(self) -> None:
        self.reader, self.since = getcurrent(), time.monotonic()
        _loop_goes_on()

    def _came(self) -> None:
        """The answer, or the end of a connection that nobody uses."""
        import psycopg

        reader, self.reader = self.reader, None
        if reader:
            reader.switch()
            return
        try:
            self.libpq.consume_input()
        except psycopg.Error:
            self._drop(self)


def _loop_goes_on() -> Any:
    """Let the event loop go on until somebody switches back to this greenlet; what they give."""
    loop = getcurrent().parent
    assert loop is not None, "reads begin by Sessions.run"
    return loop.switch()
