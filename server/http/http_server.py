"""The HTTP server of one process: its connections, and the thread pools that handle their requests."""

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

FAILED = "The server failed; its log has the reason."
BUSY = "The server is at its limit of requests; nothing was changed. Try again."
SLOW = "Too many requests are waiting for slow systems; nothing was changed. Try again."


class HttpServer:
    """Queues complete requests for threads that call the WSGI application; the event loop sends the responses."""

    def __init__(
        self,
        application: Application,
        loop: asyncio.AbstractEventLoop,
        counts: Callable[[int], object] = bool,
        handover: Handover | None = None,
        fast: FastReads | None = None,
    ) -> None:
        """`counts` gets the number of connections; `handover` sends connections to the process for large requests."""
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
            min(waiting, key=lambda each: (not each.is_idle, each.idle_since)).transport.abort()

    def check_deadlines(self) -> None:
        """Check the deadlines of all connections; called every second."""
        self.memory.others = 0
        now = time.monotonic()
        for connection in list(self.connections):
            connection.check_deadlines(now)

    def close_idle(self) -> None:
        """Close the connections that are between two requests."""
        for connection in list(self.connections):
            if connection.is_idle:
                connection.transport.close()

    @property
    def hands_over(self) -> bool:
        return self.handover is not None and not self.is_closing

    def hand_over(self, client: int, read: bytes) -> bool:
        handover = None if self.is_closing else self.handover
        return handover is not None and handover.give(client, read)

    # Requests

    def take(self, connection: Connection) -> None:
        """Answer a complete request on the fast path, queue it for a thread, or refuse it."""
        fast, has_room = self.fast, self.memory.total <= limits.MOST_MEMORY
        question = fast.find(connection.reader) if fast and has_room else None
        if not (fast and question and fast.never_waits):
            self._queue(connection, question)
        elif not self._answer_fast(connection, fast, question):
            self._queue(connection)

    def _queue(self, connection: Connection, question: Question | None = None) -> None:
        """Queue a complete request for a thread, or refuse it."""
        has_room = self.memory.total <= limits.MOST_MEMORY
        environment = connection.reader.environment()
        is_read = _is_read(environment)
        pool = self.reads if is_read else self.others
        if not has_room or not pool.take(lambda: self._answer(connection, environment, question)):
            self._refuse(connection, environment, Refused(503, BUSY if is_read else SLOW))

    def _answer_fast(self, connection: Connection, fast: FastReads, question: Question) -> bool:
        """Answer a hot read on the fast path; False if it has to fall back to Django."""
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
        """Answer a request, trying the fast path first; runs in a thread of a pool."""
        if connection.is_gone:
            return
        if self.fast and question and self._answer_fast(connection, self.fast, question):
            return
        started = time.perf_counter()
        try:
            status, headers, body = self._call(environment)
        except BeginAgain as again:
            self.loop.call_soon_threadsafe(self._retry, connection, environment, isinstance(again, TooLong))
            return
        except BaseException:
            log.exception("the application failed to answer a request")
            self.loop.call_soon_threadsafe(self._refuse, connection, environment, Refused(500, FAILED))
            return
        closes = not connection.keeps_alive
        word = "close" if closes else "keep-alive" if environment["SERVER_PROTOCOL"] == "HTTP/1.0" else ""
        answer = head(status, headers, word) + body
        self.loop.call_soon_threadsafe(lambda: connection.send(answer, closes=closes))
        if settings.METALAKE_ACCESS_LOG:
            given = dict(headers)
            _log_access(environment, status[:3], started, len(body), given.get("X-Request-Id", ""))

    def _retry(self, connection: Connection, environment: Environment, is_long: bool) -> None:
        """Queue a read again that would block or compute for long, for threads that may."""
        if connection.is_gone or (is_long and connection.move()):
            return
        environment["wsgi.input"].seek(0)
        if not self.others.take(lambda: self._answer(connection, environment)):
            self._refuse(connection, environment, Refused(503, SLOW))

    def _call(self, environment: Environment) -> tuple[str, list[tuple[str, str]], bytes]:
        given: list[Any] = []
        own = dict(environment)  # a copy: Django writes into it, and the request may be retried from the original
        response = self.application(own, lambda status, headers, *_: given.extend((status, headers)))
        try:
            body = b"".join(response)
        finally:
            response.close()
        status, headers = given
        if not any(name.lower() == "content-length" for name, _ in headers) and int(status[:3]) not in BODILESS:
            headers.append(("Content-Length", str(len(body))))
        return status, headers, b"" if environment["REQUEST_METHOD"] == "HEAD" else body

    def _refuse(self, connection: Connection, environment: Environment, refused: Refused) -> None:
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
    """Limit statements of short reads on a new connection; a read that exceeds it is retried where it may block."""
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


_SECRET = re.compile(r"(/invitations/)[^?]+")  # the token in the path is not logged


def _is_read(environment: Environment) -> bool:
    """Whether a request starts in a short-read thread; pages and access queries take too long to compute."""
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
