"""Translates a query to another dialect: a suggestion for review, never run unreviewed."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import ErrorLevel, exp

from formats.sql.dialects import SqlDialect, dialect_of
from formats.sql.parsing import TOO_DEEP, Unreadable, parse
from formats.sql.results import Problem, Translation, quote

NOT_CARRIED = "It cannot be written in this dialect here."
NOT_READ_BACK = "It has something that is no SQL of this dialect."
MOST_NOTES = 50

CLAUSES: dict[type[exp.Expr], str] = {
    exp.Order: "ORDER BY", exp.Distribute: "DISTRIBUTE BY", exp.Sort: "SORT BY", exp.Cluster: "CLUSTER BY",
    exp.TableSample: "TABLESAMPLE", exp.Pivot: "PIVOT", exp.Version: "Reading an older version", exp.Filter: "FILTER",
    exp.Distinct: "DISTINCT", exp.IgnoreNulls: "IGNORE NULLS", exp.Limit: "LIMIT", exp.Offset: "OFFSET",
    exp.Where: "WHERE", exp.Having: "HAVING", exp.Group: "GROUP BY", exp.Cube: "CUBE", exp.Rollup: "ROLLUP",
    exp.GroupingSets: "GROUPING SETS", exp.Window: "OVER", exp.Collate: "COLLATE", exp.AtTimeZone: "AT TIME ZONE",
}  # fmt: skip
"""Clauses whose counts must not drop when the suggestion is parsed again."""


def translate(sql: str, dialect: str, into: str) -> Translation:
    """The query in the dialect `into`, formatted, with notes on what sqlglot does not support or know."""
    rules, target = dialect_of(dialect), dialect_of(into)
    is_generic = rules.is_generic or target.is_generic
    try:
        query = parse(sql, rules)
        _split_namespaces(query, rules, target)
        notes = [*_functions(query, rules, target)]
        generator = target.rules.generator(pretty=True, unsupported_level=ErrorLevel.IGNORE)
        written = generator.generate(query)
        notes += [f"{message}." for message in generator.unsupported_messages]
        notes += _lost(query, written, target)
    except Unreadable as unreadable:
        return Translation(None, problems=(unreadable.problem,), is_generic=is_generic)
    except RecursionError:
        return Translation(None, problems=(Problem(TOO_DEEP),), is_generic=is_generic)
    except (ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError):  # bugs of the generator
        return Translation(None, problems=(Problem(NOT_CARRIED),), is_generic=is_generic)
    return Translation(written, tuple(dict.fromkeys(notes))[:MOST_NOTES], is_generic=is_generic)


def _split_namespaces(query: exp.Query, dialect: SqlDialect, target: SqlDialect) -> None:
    """Rewrite tables in nested schemas in the target's style: `c.a.b.t` or `c."a.b".t`."""
    if dialect.splits_namespaces == target.splits_namespaces:
        return
    for table in [each for each in query.find_all(exp.Table) if len(each.parts) > 2]:
        catalog, *levels, name = table.parts
        if dialect.splits_namespaces:
            whole = ".".join(each.name for each in levels)
            _name(table, catalog, [exp.to_identifier(whole, quoted=len(levels) > 1 or None)], name)
        else:
            _name(table, catalog, [exp.to_identifier(each) for each in levels[0].name.split(".")], name)


def _name(table: exp.Table, catalog: exp.Expr, levels: list[exp.Identifier], name: exp.Expr) -> None:
    first, *others = levels
    this: exp.Expr = name
    for level in reversed(others):
        this = exp.Dot(this=level, expression=this)
    table.set("catalog", catalog)
    table.set("db", first)
    table.set("this", this)


def _functions(query: exp.Query, dialect: SqlDialect, target: SqlDialect) -> Iterator[str]:
    """Notes on functions unknown to sqlglot, which it copies unchanged."""
    if dialect.name == target.name:
        return
    for function in query.find_all(exp.Anonymous):
        yield f"The function {quote(function.name)} is not known here; it stands as it was."


def _lost(query: exp.Query, written: str, target: SqlDialect) -> Iterator[str]:
    """Notes on what is missing when the suggestion is parsed again: sqlglot drops some clauses silently."""
    try:
        again = parse(written, target)
    except Unreadable:
        yield NOT_READ_BACK
        return
    for kind, words in CLAUSES.items():
        if len(list(query.find_all(kind))) > len(list(again.find_all(kind))):
            yield f"{words} is missing in it, or is written otherwise."
    names = {each.name.casefold() for each in again.find_all(exp.Identifier)}
    for column in query.find_all(exp.Column):
        if column.name and column.name.casefold() not in names:
            yield f"The column {quote(column.name)} is missing in it."
