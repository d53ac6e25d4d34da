"""The database as a process meets it at start: not up yet, not migrated yet, or ahead of the code."""

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

OURS = ("metalake", "authz", "catalogs", "views_mgmt")  # libraries may take old migrations away, we do not
LOCK = int.from_bytes(b"metalake")  # of PostgreSQL's advisory locks, which are each database's own
PAUSE = 0.5  # seconds

Say = Callable[[str], object]


# Ahead


def refuse_older_code() -> None:
    """Raise ImproperlyConfigured where the store has migrations that this code does not know."""
    folders = {app: f"{apps.get_app_config(app).path}/migrations" for app in OURS}
    known = {(app, module.name) for app, folder in folders.items() for module in iter_modules([folder])}
    applied = {name for name in MigrationRecorder(connection).applied_migrations() if name[0] in OURS}
    if unknown := sorted(applied - known):
        raise ImproperlyConfigured(
            f"This code is older than its store, which has {len(unknown)} migrations that it does not know, such as "
            f"{'.'.join(unknown[-1])}. Start the version that made them, or a newer one."
        )


def refuse_at_first_connection() -> None:
    """Whatever this process is, a server, a worker or a command: it does not begin to use such a store."""
    connection_created.connect(_first_connection, dispatch_uid="older code")


_looked: list[bool] = []


def _first_connection(sender: Any, connection: Any, **_: Any) -> None:
    if _looked or connection.alias != DEFAULT_DB_ALIAS:
        return
    _looked.append(True)  # once: a node that runs goes on while a newer one migrates
    try:
        refuse_older_code()
    except ImproperlyConfigured:
        _looked.clear()
        connection.close()
        raise


# Not up yet


def wait_until_it_answers(say: Say) -> None:
    """Raises CommandError where the database does not answer within METALAKE_DATABASE_WAIT seconds."""
    waits = 0 if connection.vendor == "sqlite" else settings.METALAKE_DATABASE_WAIT  # a file is there or is not
    deadline = time.monotonic() + waits
    told = False
    while True:
        try:
            connection.ensure_connection()
            return
        except DatabaseError as failure:
            why = " ".join(str(failure).split())
            if time.monotonic() >= deadline or not isinstance(failure, OperationalError):
                raise CommandError(f"The database cannot be opened: {why}") from None
        if not told:
            say(f"Waiting up to {waits} s for the database: {why}")
            told = True
        time.sleep(PAUSE)


# Not migrated yet


def is_behind() -> bool:
    """Whether migrations of this code are missing in the store. Raises ImproperlyConfigured where it is ahead."""
    refuse_older_code()
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def lacks_migrations() -> bool:
    """The same, asked again and again: a node that runs goes on where its store gets ahead of it."""
    return not _newest() <= MigrationRecorder(connection).applied_migrations().keys()


@lru_cache
def _newest() -> frozenset[tuple[str, str]]:
    """The last migration of each app, as this code has them."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())


def wait_until_migrated(say: Say) -> None:
    """For those that do not migrate. Raises CommandError where nobody did within METALAKE_DATABASE_WAIT seconds."""
    wait_until_it_answers(say)
    deadline = time.monotonic() + settings.METALAKE_DATABASE_WAIT
    told = False
    while is_behind():
        if time.monotonic() >= deadline:
            raise CommandError(
                "The database lacks migrations of this version: start a server of it, or run 'manage.py migrate'."
            )
        if not told:
            say(f"Waiting up to {settings.METALAKE_DATABASE_WAIT} s for a server to prepare the database.")
            told = True
        time.sleep(PAUSE)


@contextmanager
def alone(say: Say) -> Iterator[None]:
    """One process at a time prepares a store; whoever comes second waits, and then looks at what is left to do.

    The lock ends with its process. Raises CommandError where the database does not answer, ImproperlyConfigured where
    it is ahead.
    """
    wait_until_it_answers(say)
    with _locked(say):
        refuse_older_code()
        yield


def _locked(say: Say) -> Any:
    return _locked_here(say) if connection.vendor == "sqlite" else _locked_for_all(say)


def _wait_for_turn(take: Callable[[], bool], say: Say) -> None:
    """Asked again and again rather than waited for: a limit on the time of statements is no limit on migrations."""
    told = False
    while not take():
        if not told:
            say("Another process prepares the database; waiting until it is done.")
            told = True
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
            connection.close()  # which ends it, too


@contextmanager
def _locked_here(say: Say) -> Iterator[None]:
    """By a file beside the database: a lock of SQLite's own would be given up between two migrations."""
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
