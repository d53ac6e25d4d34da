"""A store is prepared by one process at a time, and is not used by code that is older than it is."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from metalake import database_checks

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_checks, "PAUSE", 0.01)
    inside: list[int] = []
    most: list[int] = []
    told: list[str] = []

    def prepare(number: int) -> None:
        try:
            with database_checks.alone(told.append):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0.2)
                inside.remove(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(prepare, range(3)))
    assert most == [1, 1, 1]
    assert len(told) == 2, "whoever waits says so once"


def test_what_fails_inside_lets_the_next_in() -> None:
    with pytest.raises(ZeroDivisionError), database_checks.alone(print):
        raise ZeroDivisionError
    with database_checks.alone(pytest.fail):
        pass


def test_a_migration_of_ours_that_is_unknown_here_is_a_newer_store_s() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("guardian", "9999_future")  # a library's may be gone because it was replaced
    database_checks.refuse_older_code()
    recorder.record_applied("authz", "9999_future")
    try:
        with pytest.raises(ImproperlyConfigured, match=r"older than its store, .*authz\.9999_future"):
            database_checks.is_behind()
        with pytest.raises(ImproperlyConfigured), database_checks.alone(print):
            pytest.fail("it was let in")
    finally:
        for app in ("guardian", "authz"):
            recorder.record_unapplied(app, "9999_future")
    assert not database_checks.is_behind()


@pytest.mark.parametrize(("seconds", "tries"), [(60, 4), (0, 1)])
def test_a_database_that_is_not_there_yet_is_waited_for_in_bounds(
    monkeypatch: pytest.MonkeyPatch, settings: Any, seconds: int, tries: int
) -> None:
    refused: list[int] = []
    told: list[str] = []

    def connect() -> None:
        refused.append(1)
        if len(refused) < 4:
            raise OperationalError("connection refused\n\tIs the server running?")

    settings.METALAKE_DATABASE_WAIT = seconds
    monkeypatch.setattr(database_checks, "PAUSE", 0)
    monkeypatch.setattr(connection, "vendor", "postgresql")
    monkeypatch.setattr(connection, "ensure_connection", connect)
    if seconds:
        database_checks.wait_until_it_answers(told.append)
        assert told == ["Waiting up to 60 s for the database: connection refused Is the server running?"]
    else:
        with pytest.raises(CommandError, match="The database cannot be opened: connection refused"):
            database_checks.wait_until_it_answers(told.append)
        assert not told
    assert len(refused) == tries
