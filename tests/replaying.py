"""Worlds that many tests begin with: built by the services once in a process, written as their rows from then on.

A world is replayed only where it would come out the same: on SQLite, in a test that is rolled back and has changed no
setting, and in a store that holds what the migrations and other worlds left. Elsewhere it is built, so on PostgreSQL.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest
from django.conf import UserSettingsHolder, settings
from django.db import connection, transaction

from tests.emptying import Rows, Tables

P = ParamSpec("P")
T = TypeVar("T")
Worlds = tuple[Any, ...]  # one on top of the other, each as its builder and what that was given

CATALOGS = "catalogs_catalog"  # the table of those that have a folder each in the warehouse
_recordings: dict[Worlds, Recording] = {}
_reached: tuple[Worlds, int] = (), -1  # what the store holds until SQLite counts another change


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What the test before did is rolled back, which SQLite does not count."""
    global _reached
    _reached = (), -1


def replayed(build: Callable[P, T]) -> Callable[P, T]:
    """For a function that makes rows and tables of its arguments alone, and returns what can be copied."""

    @wraps(build)
    def built(*args: P.args, **kwargs: P.kwargs) -> T:
        global _reached
        below = _worlds()
        if below is None:
            return build(*args, **kwargs)
        worlds = (*below, (build, args, tuple(kwargs.items())))
        if worlds in _recordings:
            result: T = _recordings[worlds].write()
        else:
            before = Tables.as_migrated.rows()
            result = build(*args, **kwargs)
            _recordings[worlds] = Recording.between(before, Tables.as_migrated.rows(), result)
        _reached = worlds, _changes()
        return result

    return built


def _worlds() -> Worlds | None:
    """What the store holds; None where that is something else, or where a world might come out otherwise."""
    plain = connection.vendor == "sqlite" and connection.in_atomic_block
    if not plain or isinstance(settings._wrapped, UserSettingsHolder):
        return None
    worlds, changes = _reached
    if changes == _changes():
        return worlds
    return () if set(Tables.as_migrated.filled()) == Tables.as_migrated.first_rows.keys() else None


def _changes() -> int:
    """How many rows this connection has changed."""
    return int(connection.connection.total_changes)


@dataclass
class Recording:
    """How a store differs once a world is built, the files of its tables, and what the builder returned."""

    deleted: dict[str, list[Any]]  # primary keys; a row that was changed is inserted anew
    inserted: dict[str, Rows]
    warehouses: list[Path]
    files: dict[Path, bytes]
    result: Any

    @classmethod
    def between(cls, before: dict[str, Rows], after: dict[str, Rows], result: Any) -> Recording:
        gone = {name: [row for row in rows if row not in after.get(name, ())] for name, rows in before.items()}
        new = {name: [row for row in rows if row not in before.get(name, ())] for name, rows in after.items()}
        keys = {name: [row[key_of(name)] for row in rows] for name, rows in gone.items() if rows}
        inserted = {name: rows for name, rows in new.items() if rows}
        catalogs = [row[key_of(CATALOGS)] for row in inserted.get(CATALOGS, ())]
        warehouses = [Path(settings.METALAKE_HOME) / "warehouse" / str(catalog) for catalog in catalogs]
        files = [path for warehouse in warehouses for path in warehouse.rglob("*") if path.is_file()]
        return cls(keys, inserted, warehouses, {path: path.read_bytes() for path in files}, deepcopy(result))

    def write(self) -> Any:
        from authz import passwords, snapshot
        from providers import circuit_breaker

        snapshot.forget()  # nothing that this process remembers of a world like it
        passwords._verified.clear()
        circuit_breaker.forget_all()
        with transaction.atomic(), connection.cursor() as cursor:
            for name, keys in self.deleted.items():
                column = connection.introspection.get_primary_key_column(cursor, name)
                cursor.executemany(f"DELETE FROM {name} WHERE {column} = %s", [(key,) for key in keys])
            for name, rows in self.inserted.items():
                values = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {name} VALUES ({values})", rows)
        for warehouse in self.warehouses:
            shutil.rmtree(warehouse, ignore_errors=True)
        for path, content in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return deepcopy(self.result)


def key_of(table: str) -> int:
    """The place of the primary key among the columns of a table."""
    with connection.cursor() as cursor:
        columns = [column.name for column in connection.introspection.get_table_description(cursor, table)]
        return columns.index(connection.introspection.get_primary_key_column(cursor, table))
