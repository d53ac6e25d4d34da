"""Bulk inserts with cached SQL: Django takes longer to build an INSERT than the database to execute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import connection, models
from django.db.models import Model

AT_ONCE = 100  # rows of one table in a statement
# Values of these fields go to the driver unchanged; other fields prepare theirs.
PLAIN = (models.CharField, models.TextField, models.IntegerField, models.BooleanField, models.ForeignKey)

Into = tuple[type[Model], Sequence[Model]]


def insert(*all_rows: Into) -> None:
    """Insert rows into the own tables of the given models; with multi-table inheritance, name parent and child.

    On PostgreSQL up to AT_ONCE rows per table take one statement in all, elsewhere one per table. Generated values,
    such as serial ids, are not read back. Raises IntegrityError.
    """
    for start in range(0, max((len(rows) for _, rows in all_rows), default=0), AT_ONCE):
        parts = [(model, rows[start : start + AT_ONCE]) for model, rows in all_rows if len(rows) > start]
        if connection.vendor == "postgresql":
            _send(parts)
        else:
            for part in parts:
                _send([part])


def _send(parts: Sequence[Into]) -> None:
    *before, last = [_text(model, len(rows)) for model, rows in parts]
    named = ", ".join(f"insert{number} AS ({text})" for number, text in enumerate(before))
    values = [value for model, rows in parts for row in rows for value in _table(model).values_of(row)]
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {named} {last}" if before else last, values)


class _Table(NamedTuple):
    begins: str
    marks: str
    read: Callable[[Model], tuple[Any, ...]]
    ready: tuple[tuple[int, Callable[..., Any]], ...]  # positions of values, and the functions that prepare them

    def values_of(self, row: Model) -> list[Any]:
        values = list(self.read(row))
        for place, prepare in self.ready:
            values[place] = prepare(values[place], connection)
        return values


@cache
def _table(model: type[Model]) -> _Table:
    fields = [field for field in model._meta.local_concrete_fields if not isinstance(field, models.AutoField)]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    return _Table(
        f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ',  # noqa: S608
        f"({', '.join(['%s'] * len(fields))})",
        attrgetter(*(field.attname for field in fields)),
        tuple((place, each.get_db_prep_save) for place, each in enumerate(fields) if not isinstance(each, PLAIN)),
    )


@lru_cache(maxsize=1000)
def _text(model: type[Model], count: int) -> str:
    table = _table(model)
    return table.begins + ", ".join([table.marks] * count)
