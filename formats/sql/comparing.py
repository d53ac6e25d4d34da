"""Compares the columns of a view's dialects with the declared ones. Needs no sqlglot, so it may run in the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formats.sql.results import OutputColumn, Reading, quote

MOST_DIFFERENCES = 20  # of one dialect
MATCHES_CASE = frozenset({"flink"})  # dialects with case-sensitive column names

_FAMILIES = {"varchar": "string", "char": "string", "fixed": "binary"}


@dataclass(frozen=True)
class Declared:
    """A declared column with its native type, as JSON."""

    name: str
    type: Any = None


@dataclass(frozen=True)
class Difference:
    """A difference of a dialect from the declared columns; `position` counts from 1, None for all columns."""

    dialect: str
    text: str
    position: int | None = None


def plain(native: Any) -> str | None:
    """The name of a native type without parameters, mapped to its family's; None for a nested type."""
    if not isinstance(native, str):
        return None
    name = native.partition("(")[0].strip().lower()
    return _FAMILIES.get(name, name)


def differences(
    declared: Sequence[Declared], readings: Mapping[str, Reading], renamed: Mapping[str, Sequence[str]] | None = None
) -> tuple[Difference, ...]:
    """Where dialects return other columns than declared, or than the first dialect if none are declared.

    `renamed` has the column names in the SQL, by dialect, for engines that rename them to the declared ones afterwards.
    Unknown names and types are no difference.
    """
    against = list(declared) or _of_first(readings)
    answers = list[Difference]()
    for dialect, reading in readings.items():
        if reading.columns is not None and against:
            expected = _called(against, (renamed or {}).get(dialect, ()))
            answers += list(_of_one(dialect, expected, reading.columns))[:MOST_DIFFERENCES]
    return tuple(answers)


def _called(declared: Sequence[Declared], names: Sequence[str]) -> Sequence[Declared]:
    """The columns, renamed; unchanged unless the numbers match."""
    if len(names) != len(declared):
        return declared
    return [Declared(name, each.type) for name, each in zip(names, declared, strict=True)]


def _of_first(readings: Mapping[str, Reading]) -> list[Declared]:
    first = next((each.columns for each in readings.values() if each.columns is not None), ())
    return [Declared(each.name or "", each.type) for each in first]


def _of_one(dialect: str, declared: Sequence[Declared], columns: Sequence[OutputColumn]) -> Iterator[Difference]:
    if len(columns) != len(declared):
        yield Difference(dialect, f"It yields {_number(len(columns))} instead of {len(declared)}.")
        return
    fold = str if dialect.strip().casefold() in MATCHES_CASE else str.casefold
    expected, names = [fold(each.name) for each in declared], [fold(each.name or "") for each in columns]
    if names != expected and sorted(names) == sorted(expected):
        order = ", ".join(quote(each.name or "") for each in columns)
        yield Difference(dialect, f"It yields the columns in another order: {order}.")
        return
    for position, (one, other) in enumerate(zip(declared, columns, strict=True), 1):
        if other.name and one.name and fold(other.name) != fold(one.name):
            yield Difference(dialect, f"It yields {quote(other.name)} instead of {quote(one.name)}.", position)
        expected_type = plain(one.type)
        if other.type and expected_type and other.type != expected_type:
            wrong = f"{quote(one.name)} is {other.type} instead of {expected_type}."
            yield Difference(dialect, wrong, position)


def _number(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"
