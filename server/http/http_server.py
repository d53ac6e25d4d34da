"""The HTTP server of one process: its connections, and the threads that answer their requests."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.backends.signals import connection_created

from metalake.blocking import BeginAgain, TooLong, is_short
from metalake.request_target import path_in
from server.http import limits
from server.http.connection import Connection
from server.http.handover import Handover
from server.http.hot_reads import FastReads, Question
from server.http.request_parser import Application, Environment, Memory
from server.http.responses import Refused, head, refusal
from server.http.thread_pools import Pool
from server.response_log import BODILESS

log = logging.getLogger(__name__)
access = logging.getLogger("metalake.access")

FAILED = "The server failed; its log says how."
BUSY = "This server has as many requests as it can take; nothing was changed. Try again."
SLOW = "Others wait for slow systems already, and this request may have to; nothing was changed. Try again."


class HttpServer:
    """Passes whole requests to threads of a pool, which call the WSGI application; the event loop sends the answers."""

    def __init__(
        self,
        application: Application,
        loop: asyncio.AbstractEventLoop,
        counts: Callable[[int], object] = bool,
        handover: Handover | None = None,
        fast: FastReads | None = None,
    ) -> None:
        """`counts` is called with the number of connections; `handover` leads to the process for large requests."""
        self.fast = fast
        self.application, self.loop, self.counts, self.handover = application, loop, counts, handover
        self.memory = Memory()
        self.connections: set[Connection] = set()
        self.is_closing = False
        self.reads = Pool("reads", settings.METALAKE_READ_THREADS, limits.MOST_READS, reads=True)
        self.others = Pool("answers", settings.METALAKE_THREADS, limits.MOST_OTHERS, niceness=limits.NICENESS)

    def open(self) -> None:
        connection_created.connect(_limit_statements, dispatch_uid="short reads")
        self.reads.start()
        self.others.start()
        if self.fast and self.fast.never_waits:
            self.fast.settle()

    @property
    def is_idle(self) -> bool:
        """Whether there is no connection and no work."""
        return not self.connections and self.reads.is_idle and self.others.is_idle

    @property
    def is_stuck(self) -> bool:
        return self.reads.is_stuck or self.others.is_stuck

    # Connections

    def enters(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.counts(len(self.connections))
        if len(self.connections) > limits.MOST_CONNECTIONS:
            self.make_room()

    def leaves(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.counts(len(self.connections))

    def make_room(self) -> None:
        """Close the connection that has been idle for longest, so that idle clients do not keep others out."""
        waiting = [each for each in self.connections if not each.is_answering]
        if waiting:
            min(waiting, key=lambda each: (not each.is_resting, each.rests_since)).transport.abort()

    def look(self) -> None:
        """Check all connections; to be called each second."""
        self.memory.others = 0
        now = time.monotonic()
        for connection in list(self.connections):
            connection.look(now)

    def let_go(self) -> None:
        """Close the connections that are between two requests."""
        for connection in list(self.connections):
            if connection.is_resting:
                connection.transport.close()

    @property
    def hands_over(self) -> bool:
        return self.handover is not None and not self.is_closing

    def hand_over(self, client: int, read: bytes) -> bool:
        handover = None if self.is_closing else self.handover
        return handover is not None and handover.give(client, read)

    # Requests

    def take(self, connection: Connection) -> None:
        """Answer a whole request, queue it for a thread, or refuse it."""
        fast, has_room = self.fast, self.memory.total <= limits.MOST_MEMORY
        question = fast.find(connection.reader) if fast and has_room else None
        if not (fast and question and fast.never_waits):
            self._queue(connection, question)
        elif not self._answer_fast(connection, fast, question):
            self._queue(connection)

    def _queue(self, connection: Connection, question: Question | None = None) -> None:
        """Queue a whole request for a thread, or refuse it."""
        has_room = self.memory.total <= limits.MOST_MEMORY
        environment = connection.reader.environment()
        is_read = _is_read(environment)
        pool = self.reads if is_read else self.others
        if not has_room or not pool.take(lambda: self._answer(connection, environment, question)):
            self._spare(connection, environment, Refused(503, BUSY if is_read else SLOW))

    def _answer_fast(self, connection: Connection, fast: FastReads, question: Question) -> bool:
        """Answer a hot read on the fast path; False if it has to go the way of all requests."""
        started, closes = time.perf_counter(), not connection.keeps_alive
        answered = fast.answer(question, closes)
        if answered is None:
            return False
        if fast.is_in_loop:
            connection.send(answered.content, closes=closes)
        else:
            self.loop.call_soon_threadsafe(lambda: connection.send(answered.content, closes=closes))
        if settings.METALAKE_ACCESS_LOG:
            _log_access(question.environment, str(answered.status), started, answered.size, answered.request_id)
        return True

    def _answer(self, connection: Connection, environment: Environment, question: Question | None = None) -> None:
        """Answer a request, first as the hot read that it may be; runs in a thread of a pool."""
        if connection.is_gone:
            return
        if self.fast and question and self._answer_fast(connection, self.fast, question):
            return
        started = time.perf_counter()
        try:
            status, headers, body = self._call(environment)
        except BeginAgain as again:
            self.loop.call_soon_threadsafe(self._again, connection, environment, isinstance(again, TooLong))
            return
        except BaseException:
            log.exception("a request was not answered by the application")
            self.loop.call_soon_threadsafe(self._spare, connection, environment, Refused(500, FAILED))
            return
        closes = not connection.keeps_alive
        word = "close" if closes else "keep-alive" if environment["SERVER_PROTOCOL"] == "HTTP/1.0" else ""
        answer = head(status, headers, word) + body
        self.loop.call_soon_threadsafe(lambda: connection.send(answer, closes=closes))
        if settings.METALAKE_ACCESS_LOG:
            given = dict(headers)
            _log_access(environment, status[:3], started, len(body), given.get("X-Request-Id", ""))

    def _again(self, connection: Connection, environment: Environment, is_long: bool) -> None:
        """Queue a read again that has to wait or computes for long, for threads that may."""
        if connection.is_gone or (is_long and connection.move()):
            return
        environment["wsgi.input"].seek(0)
        if not self.others.take(lambda: self._answer(connection, environment)):
            self._spare(connection, environment, Refused(503, SLOW))

    def _call(self, environment: Environment) -> tuple[str, list[tuple[str, str]], bytes]:
        given: list[Any] = []
        own = dict(environment)  # a copy: Django writes into it, and a request may run again from the original
        response = self.application(own, lambda status, headers, *_: given.extend((status, headers)))
        try:
            body = b"".join(response)
        finally:
            response.close()
        status, headers = given
        if not any(name.lower() == "content-length" for name, _ in headers) and int(status[:3]) not in BODILESS:
            headers.append(("Content-Length", str(len(body))))
        return status, headers, b"" if environment["REQUEST_METHOD"] == "HEAD" else body

    def _spare(self, connection: Connection, environment: Environment, refused: Refused) -> None:
        closes = not connection.keeps_alive
        is_head = environment["REQUEST_METHOD"] == "HEAD"
        connection.send(refusal(refused, closes=closes, is_head=is_head), closes=closes)
        if settings.METALAKE_ACCESS_LOG:
            _log_access(environment, str(refused.status), time.perf_counter(), 0, "")

    def log_unreadable(self, connection: Connection, status: int) -> None:
        """Log a request that could not be read."""
        if settings.METALAKE_ACCESS_LOG:
            _log_access({"REMOTE_ADDR": connection.reader.peer[0]}, str(status), time.perf_counter(), 0, "")


def _limit_statements(connection: Any, **_: Any) -> None:
    """Limit the statements of short reads on a new connection; a longer one runs again in a thread that may wait."""
    if is_short() and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SET statement_timeout = %s", [round(min(limits.STATEMENT, settings.METALAKE_LIMITS.statement) * 1000)]
            )


_SHORT = re.compile(
    r"/iceberg/.*|/api/metalakes(?:/[^/]+(?:/catalogs(?:/.*)?)?)?/?"
    r"|/(?:api/)?health(?:/.*)?|/configs|/metrics|/api/version",
    re.DOTALL,
)


_SECRET = re.compile(r"(/invitations/)[^?]+")  # in a path; what follows is not logged


def _is_read(environment: Environment) -> bool:
    """Whether a request may begin in a thread for short reads; pages and questions about rights compute for long."""
    return environment["REQUEST_METHOD"] in ("GET", "HEAD") and bool(_SHORT.fullmatch(path_in(environment["RAW_URI"])))


def _log_access(environment: Environment, status: str, started: float, size: int, request_id: str) -> None:
    access.info(
        "request",
        extra={
            "method": environment.get("REQUEST_METHOD", ""),
            "target": _SECRET.sub(r"\1…", environment.get("RAW_URI", "")),
            "status": int(status),
            "ms": round((time.perf_counter() - started) * 1000, 2),
            "bytes": size,
            "address": environment.get("REMOTE_ADDR", ""),
            "request_id": request_id,
        },
    )
