"""The result of analysing one dialect of a view, in the form that the server accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]


class Source(NamedTuple):
    """A table or view that SQL reads, as Spark names it: catalog, schema levels and name."""

    catalog: str
    levels: tuple[str, ...]
    name: str


MadeOf = tuple[tuple[int, str], ...]
"""Source columns: the index of each source in a list, and the column's name."""


class Column(NamedTuple):
    """An output column with its type in Spark's JSON and its source columns."""

    name: str
    type: Any
    made_of: MadeOf


@dataclass(frozen=True)
class Problem:
    """A problem in the SQL; line and column count from 1."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Analysis:
    """The sources and output columns of a dialect, or its problems."""

    sources: tuple[Source, ...] = ()
    columns: tuple[Column, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
