"""`manage.py migrate`: Django's, in one process at a time, and never by code that is older than its store.

Servers may run meanwhile: a migration that waits for a table lock blocks all later statements on it, so it waits only
briefly, lets them through and retries.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from metalake import database_checks

LONGEST_WAIT = "2s"  # for a table
TRIES = 30
PAUSE = 1.0  # seconds in which others can use the table


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with database_checks.alone(self._say), _in_its_own_time():
            for tries_left in reversed(range(TRIES)):
                try:
                    super().handle(*args, **options)
                    return
                except OperationalError as failure:
                    if not (isinstance(failure.__cause__, LockNotAvailable) and tries_left):
                        raise
                time.sleep(PAUSE)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        sys.stdout.flush()


@contextmanager
def _in_its_own_time() -> Iterator[None]:
    """Lift statement timeouts, but wait only briefly for locks, since others wait meanwhile."""
    limits = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "lock_timeout": LONGEST_WAIT}
    if connection.vendor == "sqlite":
        limits = {}
    with connection.cursor() as cursor:
        for name, value in limits.items():
            cursor.execute(f"SET {name} = '{value}'")
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                for name in limits:
                    cursor.execute(f"RESET {name}")
