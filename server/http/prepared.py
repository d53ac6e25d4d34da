"""The fast path's statements: prepared, sent through the driver, on the connection that Django opened."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.utils import Error

from metalake.blocking import BeginAgain
from metalake.statements import Row

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult

BIGINT, TEXT, BIGINTS = 20, 25, 1016  # in PostgreSQL's pg_type


class OnSqlite:
    """For one thread. The sqlite3 module caches prepared statements; no statement waits for a lock."""

    def __init__(self) -> None:
        self.raw: sqlite3.Connection | None = None

    def __call__(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        try:
            raw = self.raw or self._open()
            return raw.execute(_with_question_marks(statement), parameters).fetchall()
        except sqlite3.Error as failure:
            raise BeginAgain from failure

    def _open(self) -> sqlite3.Connection:
        """Open Django's connection in another thread, since Django refuses to in the event loop's."""
        opened: list[sqlite3.Connection] = []

        def open_one() -> None:
            try:
                connection.ensure_connection()
            except Exception:
                return
            opened.append(cast(sqlite3.Connection, connection.connection))

        thread = threading.Thread(target=open_one)
        thread.start()
        thread.join()
        if not opened:
            raise BeginAgain
        self.raw = opened[0]
        self.raw.execute("PRAGMA busy_timeout = 0")
        return self.raw


@lru_cache(maxsize=1000)
def _with_question_marks(statement: str) -> str:
    return statement.replace("%s", "?")


def on_postgresql(statement: str, parameters: Sequence[Any]) -> list[Row]:
    """Execute a statement on this thread's connection, preparing it if necessary.

    Its name is derived from its text, so that clients of a pooler that share a session find the same statement by it.
    A connection that fails is closed, and the read falls back to Django. Raises BeginAgain.
    """
    import psycopg

    try:
        connection.ensure_connection()
        return Session.of(connection.connection).rows_of(statement, parameters)
    except psycopg.errors.QueryCanceled as failure:
        raise BeginAgain from failure
    except (psycopg.Error, Error) as failure:
        connection.close()
        raise BeginAgain from failure


class Session:
    """A connection through libpq calls only: psycopg's cursors take longer than the rest of a hot read."""

    _all: WeakKeyDictionary[psycopg.Connection[Any], Session] = WeakKeyDictionary()

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        from psycopg.adapt import Transformer

        self.libpq = raw.pgconn
        self.adapter = Transformer(raw)
        self.prepared: set[bytes] = set()

    @classmethod
    def of(cls, raw: psycopg.Connection[Any]) -> Session:
        session = cls._all.get(raw)
        if session is None:
            session = cls._all[raw] = cls(raw)
        return session

    def rows_of(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        """The rows of a statement. Raises psycopg.Error."""
        from psycopg import errors
        from psycopg.adapt import PyFormat

        name, text, types = _prepared(statement, tuple(map(_type_of, parameters)))
        given: Any = self.adapter.dump_sequence(parameters, [PyFormat.TEXT] * len(parameters))
        if name not in self.prepared:
            self._prepare(name, text, types)
        try:
            result = self._checked(self.libpq.exec_prepared(name, given))
        except errors.InvalidSqlStatementName:  # a pooler gave the client another session
            self._prepare(name, text, types)
            result = self._checked(self.libpq.exec_prepared(name, given))
        self.adapter.set_pgresult(result)
        return self.adapter.load_rows(0, result.ntuples, tuple)

    def _prepare(self, name: bytes, text: bytes, types: list[int]) -> None:
        from psycopg import errors

        try:
            self._checked(self.libpq.prepare(name, text, types))
        except errors.DuplicatePreparedStatement:
            pass  # another client of a pooler prepared it on this session
        self.prepared.add(name)

    @staticmethod
    def _checked(result: PGresult) -> PGresult:
        from psycopg.errors import error_from_result
        from psycopg.pq import ExecStatus

        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(result)
        return result


@lru_cache(maxsize=1000)
def _prepared(statement: str, types: tuple[int, ...]) -> tuple[bytes, bytes, list[int]]:
    """The name of a statement for parameters of these types, its text, and the types."""
    name = "m_" + hashlib.sha256(f"{statement} {types}".encode()).hexdigest()[:24]
    parts = statement.split("%s")
    text = parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))
    return name.encode(), text.encode(), list(types)


def _type_of(parameter: object) -> int:
    """The OID of a parameter's type."""
    if isinstance(parameter, list):
        return BIGINTS
    return BIGINT if isinstance(parameter, int) else TEXT
