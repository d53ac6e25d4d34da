"""Database checks at process startup: it may be down, not migrated, or newer than the code."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection
from django.db.backends.signals import connection_created
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

LOCK = int.from_bytes(b"metalake")  # key of a PostgreSQL advisory lock, which is per database
PAUSE = 0.5  # seconds

Say = Callable[[str], object]


# A store that is newer than the code


def refuse_older_code() -> None:
    """Raise ImproperlyConfigured if the store has migrations that this code does not know."""
    # Libraries may remove old migrations, we do not.
    ours = [app for app in apps.get_app_configs() if app.name not in settings.LIBRARY_APPS]
    known = {(app.label, module.name) for app in ours for module in iter_modules([f"{app.path}/migrations"])}
    labels = {app.label for app in ours}
    applied = {name for name in MigrationRecorder(connection).applied_migrations() if name[0] in labels}
    if unknown := sorted(applied - known):
        raise ImproperlyConfigured(
            f"This code is older than its store, which has {len(unknown)} migrations that it does not know, such as "
            f"{'.'.join(unknown[-1])}. Start the version that made them, or a newer one."
        )


def refuse_at_first_connection() -> None:
    """Run `refuse_older_code` at the first connection of this process: a server, a worker or a command."""
    connection_created.connect(_first_connection, dispatch_uid="older code")


_has_looked = False


def _first_connection(sender: Any, connection: Any, **_: Any) -> None:
    global _has_looked
    if _has_looked or connection.alias != DEFAULT_DB_ALIAS:
        return
    _has_looked = True  # only once: a running node continues while a newer one migrates
    try:
        refuse_older_code()
    except ImproperlyConfigured:
        _has_looked = False
        connection.close()
        raise


# A database that is not up yet


def wait_until_it_answers(say: Say) -> None:
    """Raises CommandError if the database does not answer within METALAKE_DATABASE_WAIT seconds."""
    waits = 0 if connection.vendor == "sqlite" else settings.METALAKE_DATABASE_WAIT  # a file needs no start
    deadline = time.monotonic() + waits
    is_announced = False
    while True:
        try:
            connection.ensure_connection()
            return
        except DatabaseError as failure:
            why = " ".join(str(failure).split())
            if time.monotonic() >= deadline or not isinstance(failure, OperationalError):
                raise CommandError(f"The database cannot be opened: {why}") from None
        if not is_announced:
            say(f"Waiting up to {waits} s for the database: {why}")
            is_announced = True
        time.sleep(PAUSE)


# A store that is not migrated yet


def is_behind() -> bool:
    """Whether the store lacks migrations of this code. Raises ImproperlyConfigured if the store is newer."""
    refuse_older_code()
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def lacks_migrations() -> bool:
    """Whether the store lacks migrations of this code; for running nodes, which tolerate a newer store."""
    return not _newest() <= MigrationRecorder(connection).applied_migrations().keys()


@lru_cache
def _newest() -> frozenset[tuple[str, str]]:
    """The last migration of each app in this code."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())


def wait_until_migrated(say: Say) -> None:
    """Wait for another process to migrate. Raises CommandError after METALAKE_DATABASE_WAIT seconds."""
    wait_until_it_answers(say)
    deadline = time.monotonic() + settings.METALAKE_DATABASE_WAIT
    is_announced = False
    while is_behind():
        if time.monotonic() >= deadline:
            raise CommandError(
                "The database lacks migrations of this version: start a server of it, or run 'manage.py migrate'."
            )
        if not is_announced:
            say(f"Waiting up to {settings.METALAKE_DATABASE_WAIT} s for a server to prepare the database.")
            is_announced = True
        time.sleep(PAUSE)


@contextmanager
def alone(say: Say) -> Iterator[None]:
    """A lock under which only this process migrates the store; others wait, then check what is left to do.

    It is released if the process dies. Raises CommandError if the database does not answer, ImproperlyConfigured if
    the store is newer.
    """
    wait_until_it_answers(say)
    with _locked(say):
        refuse_older_code()
        yield


def _locked(say: Say) -> Any:
    return _locked_here(say) if connection.vendor == "sqlite" else _locked_for_all(say)


def _wait_for_turn(take: Callable[[], bool], say: Say) -> None:
    """Poll instead of blocking in one statement: migrations may take longer than statement_timeout."""
    is_announced = False
    while not take():
        if not is_announced:
            say("Another process prepares the database; waiting until it is done.")
            is_announced = True
        time.sleep(PAUSE)


@contextmanager
def _locked_for_all(say: Say) -> Iterator[None]:
    def take() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
            return bool(cursor.fetchone()[0])

    _wait_for_turn(take, say)
    try:
        yield
    finally:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        except DatabaseError:
            connection.close()  # this releases the lock, too


@contextmanager
def _locked_here(say: Say) -> Iterator[None]:
    """Lock a file next to the database: SQLite would release its own lock between two migrations."""
    handle = os.open(Path(f"{connection.settings_dict['NAME']}.lock"), os.O_RDWR | os.O_CREAT, 0o600)

    def take() -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        _wait_for_turn(take, say)
        yield
    finally:
        os.close(handle)
