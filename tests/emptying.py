"""After a test with transaction=True the tables are as the migrations left them.

Django's own way (`flush`) empties every table, full or not, and then makes all content types and permissions anew,
which takes longer than most tests. Here only tables that differ from what the migrations left are touched.

A walk that a test began in this process is waited for: it would ask the database of the next test.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from django.db import connection, transaction
from django.test import TransactionTestCase

Rows = list[tuple[Any, ...]]
PATIENCE = 5.0  # seconds; some tests leave a walk that stands still until its system is healed


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    for thread in threading.enumerate():
        if thread.name == "refresh":
            thread.join(PATIENCE)


class Tables:
    """Every table of the models, and the rows that the migrations left in some of them."""

    as_migrated: ClassVar[Tables]

    def __init__(self) -> None:
        self.names = sorted(connection.introspection.django_table_names(only_existing=True, include_views=False))
        self.first_rows = {name: rows_of(name) for name in self.filled()}

    def filled(self) -> list[str]:
        """The names of those that hold a row."""
        asked = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in self.names)
        with connection.cursor() as cursor:
            cursor.execute(asked)
            return [name for (name,) in cursor.fetchall()]

    def rows(self) -> dict[str, Rows]:
        """All that they hold now."""
        return {name: rows_of(name) for name in self.filled()}

    def restore(self, wanted: dict[str, Rows] | None = None) -> None:
        """Bring these rows back, or those that the migrations left."""
        wanted = self.first_rows if wanted is None else wanted
        with transaction.atomic():  # foreign keys are checked when it ends
            for name in wanted.keys() | set(self.filled()):
                rows = wanted.get(name, [])
                if not rows or rows_of(name) != rows:
                    replace(name, rows)


def rows_of(table: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
        return [tuple(row) for row in cursor.fetchall()]


def replace(table: str, rows: Rows) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")
        if rows:
            values = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO {table} VALUES ({values})", rows)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """pytest-django's, with a cheaper end of tests whose transactions are real."""
    with django_db_blocker.unblock():
        tables = Tables.as_migrated = Tables()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: tables.restore())
        yield
