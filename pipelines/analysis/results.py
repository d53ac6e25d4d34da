"""What came of analysing a dialect of a view, as the server takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]


class Source(NamedTuple):
    """A table or view that SQL reads, as Spark names it: a catalog, the levels of a schema, and a name."""

    catalog: str
    levels: tuple[str, ...]
    name: str


MadeOf = tuple[tuple[int, str], ...]
"""Columns of sources: the place of each source in a list, and the column's name."""


class Column(NamedTuple):
    """A column that SQL yields, its type as Spark writes it in JSON, and the columns of sources that it is made of."""

    name: str
    type: Any
    made_of: MadeOf


@dataclass(frozen=True)
class Problem:
    """What is wrong with SQL; line and column count from 1."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Analysis:
    """What a dialect reads and yields, or the problem that it has."""

    sources: tuple[Source, ...] = ()
    columns: tuple[Column, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
