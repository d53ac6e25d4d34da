"""How the fast path sends its statements: through the driver, prepared, on the connection that Django opened."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from django.db import connection
from django.db.utils import Error

from metalake.blocking import BeginAgain
from metalake.statements import Row


class OnSqlite:
    """For one thread: SQLite's own cache has its statements prepared, and it never waits for a lock."""

    def __init__(self) -> None:
        self.raw: sqlite3.Connection | None = None

    def __call__(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        try:
            raw = self.raw or self._open()
            return raw.execute(_with_question_marks(statement), parameters).fetchall()
        except sqlite3.Error as failure:
            raise BeginAgain from failure

    def _open(self) -> sqlite3.Connection:
        """Open a connection as Django does, in another thread, since Django opens none in that of an event loop."""
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
    """Send a statement that the session has prepared, or prepares now, on this thread's connection.

    It is prepared under a name made from its text: behind a pooler that gives a session to others in between, whoever
    finds it there finds the same statement. A connection that fails is closed, and the read goes the way of all.
    """
    import psycopg
    from psycopg import errors

    prepare, execute = _prepared(statement, tuple(map(_type_of, parameters)))
    try:
        connection.ensure_connection()
        with psycopg.ClientCursor(connection.connection) as cursor:
            try:
                return cursor.execute(execute, parameters).fetchall()
            except errors.InvalidSqlStatementName:
                if not connection.get_autocommit():
                    raise
            try:
                cursor.execute(prepare)
            except errors.DuplicatePreparedStatement:
                pass  # another client of a pooler prepared it meanwhile
            return cursor.execute(execute, parameters).fetchall()
    except psycopg.errors.QueryCanceled as failure:
        raise BeginAgain from failure
    except (psycopg.Error, Error) as failure:
        connection.close()
        raise BeginAgain from failure


@lru_cache(maxsize=1000)
def _prepared(statement: str, types: tuple[str, ...]) -> tuple[str, str]:
    """What prepares a statement for parameters of these types, and what executes it."""
    name = "m_" + hashlib.sha256(f"{statement} {types}".encode()).hexdigest()[:24]
    parts = statement.split("%s")
    text = parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))
    given = f"({', '.join(['%s'] * len(types))})" if types else ""
    declared = f" ({', '.join(types)})" if types else ""
    return f"PREPARE {name}{declared} AS {text}", f"EXECUTE {name}{given}"


def _type_of(parameter: object) -> str:
    if isinstance(parameter, list):
        return "bigint[]"
    return "bigint" if isinstance(parameter, int) else "text"
