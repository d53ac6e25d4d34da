"""Analyses one representation of a view: its sources and its output columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from formats.sql.columns import SourceColumns, names_of, outputs_of, qualified
from formats.sql.dialects import SqlDialect, dialect_of
from formats.sql.parsing import TOO_DEEP, Unreadable, parse, place_of
from formats.sql.results import ColumnsOf, OutputColumn, Problem, Reading, quote
from formats.sql.stars import stars_of, without_stars
from formats.sql.tables import sources_of

MOST_PROBLEMS = 20

# Columns that engines add to every table (Trino, "Hidden columns"; Hive, "Virtual columns"; Spark, "_metadata").
_HIDDEN = ("$", "_", "input__file__name", "block__offset__inside__file")

_CANNOT = (RecursionError, SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError)
"""What sqlglot raises for queries that it parses but cannot analyse."""


def read(
    sql: str,
    dialect: str,
    default_catalog: str | None = None,
    default_schema: str | None = None,
    columns_of: ColumnsOf | None = None,
) -> Reading:
    """Analyse SQL: the defaults complete its names; `columns_of` allows expanding `*` and checking columns."""
    rules = dialect_of(dialect)
    try:
        query = parse(sql, rules)
        sources = sources_of(query, rules, default_catalog, default_schema)
    except Unreadable as unreadable:
        return Reading(problems=(unreadable.problem,), is_generic=rules.is_generic)
    except RecursionError:
        return Reading(problems=(Problem(TOO_DEEP),), is_generic=rules.is_generic)
    schema = SourceColumns(sources, columns_of or {}, rules)
    understood = _understood(sql, query, schema, rules)
    reads_more = any(isinstance(each.this, exp.Func) for each in query.find_all(exp.Table))
    return replace(understood, sources=sources, is_generic=rules.is_generic, reads_more=reads_more)


def _understood(sql: str, query: exp.Query, schema: SourceColumns, dialect: SqlDialect) -> Reading:
    """Columns and problems; column names only if sqlglot cannot analyse the query."""
    try:
        whole = qualified(query, schema, dialect)
        problems = tuple(dict.fromkeys(_unresolved(sql, whole, schema)))[:MOST_PROBLEMS]
        columns = outputs_of(query, whole, schema, dialect)
        if columns is not None:
            return Reading(columns=columns, problems=problems)
        return Reading(problems=problems, stars=stars_of(whole), beside=_beside(query, whole, schema, dialect))
    except _CANNOT:
        names = names_of(query)
        return Reading(columns=None if names is None else tuple(OutputColumn(name or None) for name in names))


def _beside(query: exp.Query, whole: exp.Query, schema: SourceColumns, dialect: SqlDialect) -> tuple[OutputColumn, ...]:
    named, known = without_stars(query), without_stars(whole)
    return () if named is None or known is None else outputs_of(named, known, schema, dialect) or ()


def _unresolved(sql: str, whole: exp.Query, schema: SourceColumns) -> Iterator[Problem]:
    """Unknown and ambiguous columns, as far as the columns of the sources are known."""
    for scope in traverse_scope(whole):
        if not isinstance(scope.expression, exp.Select) or scope.pivots:
            continue
        bare = {id(each) for each in scope.unqualified_columns}
        for column in scope.columns:
            if _is_ours(column) and (reason := _why(column, scope, schema, id(column) in bare)):
                start = column.this.meta.get("start")
                place = place_of(sql, start) if isinstance(start, int) else (None, None)
                yield Problem(reason, *place)


def _is_ours(column: exp.Column) -> bool:
    """Whether this is an ordinary column: no `*`, and none that engines add by themselves."""
    return not isinstance(column.this, exp.Star) and not column.name.lower().startswith(_HIDDEN)


def _why(column: exp.Column, scope: Scope, schema: SourceColumns, is_bare: bool) -> str | None:
    """Why a column cannot be resolved; None if it can be, or if that is unknown."""
    name = quote(column.name)
    if column.table:
        source = scope.sources.get(column.table)
        if not isinstance(source, exp.Table) or not schema.knows(source) or schema.has_column(source, column):
            return None
        return f"{quote(column.table)} has no column {name}."
    tables = [each for each in scope.sources.values() if isinstance(each, exp.Table)]
    if not is_bare or len(tables) < len(scope.sources) or not all(map(schema.knows, tables)):
        return None
    having = [each for each in tables if schema.has_column(each, column)]
    return f"{name} is a column of several tables." if having else f"No table here has a column {name}."
