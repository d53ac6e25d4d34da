"""Fixed SQL for hot reads and writes, where building it in the ORM costs too much.

It is sent through Django, or directly by the server's fast path.
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
    """All rows of a statement, with `%s` for each parameter."""
    direct: Fetch | None = getattr(_here, "fetch", None)
    if direct is not None:
        return direct(statement, parameters)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def update_rows(statement: str, parameters: Sequence[Any]) -> int:
    """Execute a statement and return the number of changed rows. Raises IntegrityError."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.rowcount


def use_only(direct: Fetch) -> None:
    """Put this thread permanently into the state of `only_by`."""
    _here.fetch = direct
    connection.execute_wrappers.append(_refuse)
    be_brief()


@contextmanager
def only_by(direct: Fetch) -> Iterator[None]:
    """A context in which `fetch` sends statements by `direct`, and everything slower raises BeginAgain.

    That is every other statement, and all that a short read may not do. The connection is opened first, so that its
    setup statements are allowed. Raises BeginAgain if it cannot be opened.
    """
    try:
        connection.close_if_unusable_or_obsolete()
        connection.ensure_connection()
    except Error as failure:
        raise BeginAgain from failure
    _here.fetch = direct
    connection.execute_wrappers.append(_refuse)
    try:
        with short_reads():
            yield
    finally:
        connection.execute_wrappers.pop()
        _here.fetch = None


def _refuse(*statement: Any) -> NoReturn:
    raise BeginAgain
