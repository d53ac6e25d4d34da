"""The results of analysing and translating SQL: plain data, passed between processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

LONGEST_QUOTE = 40  # characters


@dataclass(frozen=True)
class Problem:
    """Why SQL cannot be parsed, or would fail in an engine; line and column count from 1."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Source:
    """A table or view that SQL reads, named as the engine looks it up; None where no default applies.

    The levels of a nested schema are joined by dots, as Trino writes them.
    """

    catalog: str | None
    schema: str | None
    name: str


ColumnsOf = Mapping[Source, Mapping[str, Any]]
"""For each source whose columns are known, their native types by column name."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source; `source` is its index in the reading's sources."""

    source: int
    name: str


@dataclass(frozen=True)
class OutputColumn:
    """An output column; its name is None if engines would generate different ones.

    `type` is the native type without parameters; it and `made_of` are None if unknown.
    """

    name: str | None
    type: str | None = None
    made_of: tuple[SourceColumn, ...] | None = None


@dataclass(frozen=True)
class Star:
    """A `*` over a source: all its columns under their own names, except those in `but` (casefolded)."""

    source: int
    but: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """The sources and output columns of one representation.

    `sources` is None if the SQL could not be parsed, `columns` also if a `*` could not be expanded: then `stars` has
    what it covers, and `beside` the other columns. `is_generic`: sqlglot does not know the dialect and parsed it as
    generic SQL. `reads_more`: it calls a table function, which may read other tables.
    """

    sources: tuple[Source, ...] | None = None
    columns: tuple[OutputColumn, ...] | None = None
    problems: tuple[Problem, ...] = ()
    is_generic: bool = False
    stars: tuple[Star, ...] = ()
    beside: tuple[OutputColumn, ...] = ()
    reads_more: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read back `as_json`, whose tuples may have become lists."""
        sources, columns = data["sources"], data["columns"]
        return cls(
            sources=None if sources is None else tuple(Source(**each) for each in sources),
            columns=None if columns is None else tuple(_column(each) for each in columns),
            problems=tuple(Problem(**each) for each in data["problems"]),
            is_generic=data["is_generic"],
            stars=tuple(Star(each["source"], tuple(each["but"])) for each in data["stars"]),
            beside=tuple(_column(each) for each in data["beside"]),
            reads_more=data["reads_more"],
        )


def _column(data: Mapping[str, Any]) -> OutputColumn:
    made_of = data["made_of"]
    sources = None if made_of is None else tuple(SourceColumn(**each) for each in made_of)
    return OutputColumn(data["name"], data["type"], sources)


@dataclass(frozen=True)
class Translation:
    """Suggested SQL in another dialect, with notes on what was lost; `sql` is None if translation failed."""

    sql: str | None
    not_carried_over: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_generic: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read back `as_json`, whose tuples may have become lists."""
        problems = tuple(Problem(**each) for each in data["problems"])
        return cls(data["sql"], tuple(data["not_carried_over"]), problems, data["is_generic"])


def quote(text: str) -> str:
    """An excerpt of SQL, quoted for a message and truncated."""
    return f"“{text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + '…'}”"
