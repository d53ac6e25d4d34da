"""The results of analysing and translating SQL, as plain data that is sent between processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

LONGEST_QUOTE = 40  # characters


@dataclass(frozen=True)
class Problem:
    """What keeps SQL from being read, or would keep an engine from running it; the first line and column are 1."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Source:
    """A table or view that SQL reads, by its names as the engine looks them up; None where no default completes it.

    The levels of a nested schema are joined by dots, as Trino writes them.
    """

    catalog: str | None
    schema: str | None
    name: str


ColumnsOf = Mapping[Source, Mapping[str, Any]]
"""The native types of the columns of sources that are known, by the columns' names."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of one of a reading's sources, by the source's place among them."""

    source: int
    name: str


@dataclass(frozen=True)
class OutputColumn:
    """A column that SQL yields; its name is None where each engine would make up its own.

    `type` is the native wire's, without its numbers; it and `made_of` are None where they cannot be told.
    """

    name: str | None
    type: str | None = None
    made_of: tuple[SourceColumn, ...] | None = None


@dataclass(frozen=True)
class Star:
    """That all columns of a source are yielded under their own names, but those in `but`, which are casefolded."""

    source: int
    but: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """What one representation reads and yields.

    `sources` is None if the SQL could not be read, `columns` also where a `*` could not be expanded: then `stars` are
    what it stands for, and `beside` the columns that are named beside it. With `is_generic` sqlglot does not know the
    dialect, and the SQL was read as generic SQL. `reads_more` says that it calls a function for a table, which may read
    others.
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
        """The reading from the data of `as_json`, whose tuples may have become lists."""
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
    """A suggestion in another dialect, with what could not be carried over; `sql` is None if it could not be read."""

    sql: str | None
    not_carried_over: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_generic: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The translation from the data of `as_json`, whose tuples may have become lists."""
        problems = tuple(Problem(**each) for each in data["problems"])
        return cls(data["sql"], tuple(data["not_carried_over"]), problems, data["is_generic"])


def quote(text: str) -> str:
    """A part of SQL in a sentence, cut if it is long."""
    return f"“{text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + '…'}”"
