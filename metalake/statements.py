"""Statements of fixed text, which the ORM would take longer to write: those of hot reads and of writes.

They are sent through Django, or past it by the server's fast path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from django.db import Error, connection

from metalake.blocking import BeginAgain, be_brief, short_reads

Row = tuple[Any, ...]
Fetch = Callable[[str, Sequence[Any]], list[Row]]

_here = threading.local()


def fetch(statement: str, parameters: Sequence[Any]) -> list[Row]:
    """All rows that a statement returns; `%s` stands for each parameter."""
    straight: Fetch | None = getattr(_here, "fetch", None)
    if straight is not None:
        return straight(statement, parameters)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def update_rows(statement: str, parameters: Sequence[Any]) -> int:
    """Send a statement that changes rows; returns how many. Raises IntegrityError."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.rowcount


def stay_by(straight: Fetch) -> None:
    """Have this thread be as in `only_by` for good."""
    _here.fetch = straight
    connection.execute_wrappers.append(_refuse)
    be_brief()


@contextmanager
def only_by(straight: Fetch) -> Iterator[None]:
    """A context in which `fetch` sends its statements this way, and whatever else would take time raises BeginAgain.

    That is every other statement, and all that a short read may not do. The connection is opened before: what prepares
    a new one, such as its limits, is no statement of the request. Raises BeginAgain if it cannot be opened.
    """
    try:
        connection.close_if_unusable_or_obsolete()
        connection.ensure_connection()
    except Error as failure:
        raise BeginAgain from failure
    _here.fetch = straight
    connection.execute_wrappers.append(_refuse)
    try:
        with short_reads():
            yield
    finally:
        connection.execute_wrappers.pop()
        _here.fetch = None


def _refuse(*statement: Any) -> NoReturn:
    raise BeginAgain
