"""Sessions of databases: opened on checked addresses, pooled for reads, and ended if an answer takes too long."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from select import select
from typing import Any

from django.conf import settings

from metalake.errors import MetalakeError, ProviderBusy, ProviderUnavailable
from metalake.kinds import Kind
from providers.deadline import require_time
from providers.jdbc.url import Tls
from providers.network.endpoints import Endpoint
from providers.network.idle_connections import MOST, IdleConnections
from providers.network.response_budget import ResponseBudget, ResponseTooLarge, places_returned

STATEMENT_SECONDS = 20.0  # for one statement, by the database's own clock
ANSWER_SECONDS = 25.0  # for one statement with its whole answer, by ours
LOCK_SECONDS = 5.0  # that a statement waits for locks of others
PATIENCE = 5.0  # seconds that a call waits for one of its catalog's connections
IDLE_SECONDS = 300.0
COMMAND_OK = 1  # of libpq (PGRES_COMMAND_OK)

Row = tuple[Any, ...]
Translate = Callable[[Exception], MetalakeError]


@dataclass(frozen=True)
class Login:
    """The server, database and account of a catalog, and how many connections it may have open in this process."""

    endpoint: Endpoint
    database: str
    user: str
    password: str = field(repr=False)
    tls: Tls
    most: int


@contextmanager
def ended_after(seconds: float, descriptor: Callable[[], int]) -> Iterator[None]:
    """End the connection from outside if the block takes longer; a driver may wait for ever."""
    watch = threading.Timer(seconds, _end, [descriptor])
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _end(descriptor: Callable[[], int]) -> None:
    with suppress(Exception):
        end = socket.socket(fileno=os.dup(descriptor()))
        with end:
            end.shutdown(socket.SHUT_RDWR)


class Session:
    """An open connection of a driver, for one call at a time. Errors are the driver's own."""

    def __init__(self, raw: Any, descriptor: Callable[[], int], where: str) -> None:
        self.raw, self.where, self.idle_since, self.is_good, self.is_reusable = raw, where, 0.0, True, True
        self.statements = 0
        self._descriptor = descriptor

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of a query. Raises ProviderUnavailable for an answer that is too large, ProviderBusy."""
        budget, rows = ResponseBudget(self.where), list[Row]()
        with self._in_time():
            for row in self._stream(statement, parameters):
                budget.add(100 + sum(len(value) for value in row if isinstance(value, str | bytes)))
                rows.append(tuple(row))
        return rows

    def run(self, statement: str) -> None:
        """Run a statement that is no query."""
        require_time()
        with self._in_time(), self.raw.cursor() as cursor:
            cursor.execute(statement)

    def names_of(self, query: str) -> list[str]:
        """The names of a query's columns; the query returns no rows, and is not even planned where it can be described.

        A planner may call functions of others, which can change this session's settings: such a session is not used
        again. Raises the driver's errors, or ValueError.
        """
        with self._in_time(), self.raw.cursor() as cursor:
            if hasattr(self.raw, "pgconn"):
                server = self.raw.pgconn
                server.prepare(b"", query.encode())
                described = server.describe_prepared(b"")
                if described.status != COMMAND_OK:
                    raise ValueError("The query cannot be described.")
                return [described.fname(place).decode() for place in range(described.nfields)]
            cursor.execute(query)
            names = [column[0] for column in cursor.description or ()]
        self.is_reusable = False
        return names

    def commit(self) -> None:
        with self._in_time():
            self.raw.commit()

    def _stream(self, statement: str, parameters: Sequence[Any]) -> Iterator[Row]:
        with self.raw.cursor() as cursor:
            try:
                if hasattr(cursor, "stream"):
                    cursor = cursor.stream(statement, parameters or None)
                else:
                    cursor.execute(statement, parameters or None)
                for row in cursor:  # noqa: UP028 (the cursor must not hear of GeneratorExit first)
                    yield row
            except GeneratorExit:
                self.close()  # else the driver reads the rest
                raise

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        self.statements += 1
        self.is_good = False
        with ended_after(ANSWER_SECONDS, self._descriptor):
            try:
                yield
            except ResponseTooLarge as heavy:
                message = f"An answer of {self.where} {heavy}."
                raise ProviderUnavailable(message, kind="catalog", retryable=False) from None
        self.is_good = True

    def is_quiet(self) -> bool:
        return not select([self._descriptor()], [], [], 0)[0]

    def close(self) -> None:
        with suppress(Exception):
            self.raw.close()


_idle = IdleConnections[Session](most_each=8, seconds=IDLE_SECONDS, most=max(1, MOST // settings.METALAKE_PROCESSES))
_open = Counter[Login]()
_changed = threading.Condition()


@contextmanager
def opened(login: Login, connect: Callable[[], Session], translate: Translate, *, reuses: bool) -> Iterator[Session]:
    """A session for the block, an idle one if it `reuses` them. Raises what `translate` makes of the driver's errors.

    Raises ProviderBusy while all of the catalog's are in use.
    """
    with _one_more(login), places_returned():
        try:
            session = _idle.take(login)
            if session and not reuses:  # so that there are never more than `login.most`
                session.close()
                session = None
            session = session or connect()
            try:
                yield session
            finally:
                if reuses and session.is_good and session.is_reusable:
                    _idle.give_back(login, session)
                else:
                    session.close()
        except MetalakeError:
            raise
        except Exception as failure:
            raise translate(failure) from None


@contextmanager
def _one_more(login: Login) -> Iterator[None]:
    with _changed:
        if not _changed.wait_for(lambda: _open[login] < login.most, PATIENCE):
            raise ProviderBusy(
                f"All {login.most} connections to {login.endpoint.host} are in use (jdbc.pool.max-size).",
                kind=Kind.CATALOG,
            )
        _open[login] += 1
    try:
        yield
    finally:
        with _changed:
            _open[login] -= 1
            if not _open[login]:
                del _open[login]
            _changed.notify_all()
