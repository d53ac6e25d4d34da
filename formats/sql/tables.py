"""The tables and views in a query, without CTEs, aliases and table functions."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from formats.sql.dialects import SqlDialect
from formats.sql.results import Source

_PLACE = "source"  # key in a table's meta for the index of its source


def sources_of(query: exp.Query, dialect: SqlDialect, catalog: str | None, schema: str | None) -> tuple[Source, ...]:
    """The distinct tables and views, in query order; marks the query's tables for `place_of`.

    `catalog` and `schema` are the defaults for incomplete names.
    """
    places = dict[Source, int]()
    for table in query.find_all(exp.Table, bfs=False):
        if (
            not isinstance(table.this, exp.Func)
            and not table.find_ancestor(exp.Hint)
            and not _is_of_with(table, dialect)
        ):
            source = _source(table, dialect, catalog, schema)
            table.meta[_PLACE] = places.setdefault(source, len(places))
    return tuple(places)


def place_of(table: exp.Expr) -> int | None:
    """The index of a table's source, as marked by `sources_of`; None for CTEs and the like."""
    place: int | None = table.meta.get(_PLACE)
    return place


def _source(table: exp.Table, dialect: SqlDialect, catalog: str | None, schema: str | None) -> Source:
    *levels, name = (dialect.fold(each) for each in table.parts)
    if not levels:
        return Source(catalog, schema, name)
    if len(levels) == 1:
        return Source(catalog, levels[0], name)
    return Source(levels[0], ".".join(levels[1:]), name)


def _is_of_with(table: exp.Table, dialect: SqlDialect) -> bool:
    """Whether this refers to a CTE in scope."""
    if table.db:
        return False
    name = _normal(table.this, dialect)
    return any(_normal(each.args["alias"].this, dialect) == name for each in _visible(table))


def _visible(table: exp.Table) -> Iterator[exp.CTE]:
    """The CTEs in scope: a CTE sees those before it in its WITH clause, and itself if that is RECURSIVE."""
    inner: exp.Expr = table
    inside: exp.Expr | None = None  # the CTE that contains the table, while leaving its WITH clause
    while (outer := inner.parent) is not None:
        if isinstance(outer, exp.With):
            inside = inner
        elif (clause := outer.args.get("with_")) is not None:
            for each in clause.expressions:
                is_itself = clause is inner and each is inside
                if not is_itself or clause.args.get("recursive"):
                    yield each
                if is_itself:
                    break
        inner = outer


def _normal(identifier: exp.Expr, dialect: SqlDialect) -> str:
    return str(dialect.rules.normalize_identifier(identifier.copy()).name)
