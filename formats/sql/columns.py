"""The output columns of a query: names, types and column lineage, as far as they can be inferred."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import NormalizationStrategy
from sqlglot.lineage import Node, lineage
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import build_scope
from sqlglot.schema import Schema

from formats.sql import types
from formats.sql.dialects import SqlDialect
from formats.sql.results import ColumnsOf, OutputColumn, Source, SourceColumn
from formats.sql.tables import place_of

_MADE_UP = re.compile(r"_col_\d+")  # names that sqlglot generates for unnamed columns


class SourceColumns(Schema):
    """sqlglot's schema of the sources: it looks up tables marked by `sources_of`, with normalised column names."""

    def __init__(self, sources: Sequence[Source], columns_of: ColumnsOf, dialect: SqlDialect) -> None:
        self._rules = dialect.rules
        self._types = {
            place: {self.normal(name): native for name, native in columns_of[source].items()}
            for place, source in enumerate(sources)
            if source in columns_of
        }
        self.spelling = {self.normal(name): name for columns in columns_of.values() for name in columns}

    def normal(self, name: str) -> str:
        """A column's name as the dialect looks it up; where that folds to lower case, others are quoted in its SQL."""
        is_exact = self._rules.normalization_strategy is NormalizationStrategy.LOWERCASE
        return self.folded(exp.to_identifier(name, quoted=is_exact))

    def folded(self, identifier: exp.Expr) -> str:
        return str(self._rules.normalize_identifier(identifier.copy()).name)

    def knows(self, table: exp.Expr) -> bool:
        """Whether the columns of a table are known."""
        return place_of(table) in self._types

    # sqlglot's interface

    @property
    def dialect(self) -> Any:
        return self._rules

    @property
    def empty(self) -> bool:
        return not self._types

    @property
    def supported_table_args(self) -> tuple[str, ...]:
        return ()

    def add_table(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    def column_names(self, table: Any, *_: Any, **__: Any) -> list[str]:
        return list(self._of(table))

    def get_column_type(self, table: Any, column: Any, *_: Any, **__: Any) -> exp.DataType:
        return types.to_sql(self._of(table).get(column if isinstance(column, str) else column.name))

    def _of(self, table: Any) -> Mapping[str, Any]:
        place = place_of(table)
        return {} if place is None else self._types.get(place, {})


def qualified(query: exp.Query, schema: SourceColumns, dialect: SqlDialect) -> exp.Query:
    """A copy with qualified and typed columns and `*` expanded. Raises RecursionError, SqlglotError."""
    whole = qualify(
        query.copy(),
        dialect=dialect.rules,
        schema=schema,
        allow_partial_qualification=True,
        validate_qualify_columns=False,
        quote_identifiers=False,
    )
    return annotate_types(whole, schema=schema, dialect=dialect.rules)


def names_of(query: exp.Query) -> list[str] | None:
    """The column names as written, "" for an unnamed column; None if the query has a `*`."""
    return None if query.is_star else [_name_of(each) for each in query.selects]


def _name_of(select: exp.Expr) -> str:
    return "" if isinstance(select, exp.Literal) else str(select.output_name)


def outputs_of(
    query: exp.Query, whole: exp.Query, schema: SourceColumns, dialect: SqlDialect
) -> tuple[OutputColumn, ...] | None:
    """The output columns of a query; `whole` is its `qualified` copy. None if a `*` could not be expanded.

    Raises RecursionError, SqlglotError.
    """
    if whole.is_star:
        return None
    expanded = [each.output_name for each in whole.selects]
    names = names_of(query)
    spelling = {**_written(query, schema), **schema.spelling}
    if names is None or len(names) != len(expanded):
        names = [spelling.get(name, "" if _MADE_UP.fullmatch(name) else name) for name in expanded]
    nodes = _nodes(whole, schema, dialect)
    again = {name for name, times in Counter(expanded).items() if times > 1}
    return tuple(
        _output(name, nodes.get(key) if key not in again else None, select, spelling, dialect)
        for name, key, select in zip(names, expanded, whole.selects, strict=True)
    )


def _written(query: exp.Query, schema: SourceColumns) -> dict[str, str]:
    """The spelling of names in the query, by their normalised form."""
    return {schema.folded(each): each.name for each in query.find_all(exp.Identifier)}


def _nodes(whole: exp.Query, schema: SourceColumns, dialect: SqlDialect) -> dict[str, Node]:
    """The lineage of each column, by name; linear in the number of columns, since `trim_selects` is off."""
    scope = build_scope(whole)
    nodes: dict[str, Node] = lineage(
        None, whole, schema, dialect=dialect.rules, scope=scope, trim_selects=False, copy=False
    )
    return nodes


def _output(
    name: str, node: Node | None, select: exp.Expr, spelling: Mapping[str, str], dialect: SqlDialect
) -> OutputColumn:
    if node is None:
        return OutputColumn(name or None)
    native = types.from_sql(select.type, dialect) if _is_certain(node) else None
    return OutputColumn(name or None, native, _made_of(node, spelling))


def _made_of(node: Node, spelling: Mapping[str, str]) -> tuple[SourceColumn, ...] | None:
    """The source columns that a column is computed from; None if one of them cannot be resolved."""
    columns = dict[SourceColumn, None]()
    for each in node.walk():
        if isinstance(each.expression, (exp.Placeholder, exp.Star)) or each.name == "*":
            return None
        if isinstance(each.expression, exp.Table) and (place := place_of(each.expression)) is not None:
            name = exp.to_column(each.name).name
            columns[SourceColumn(place, spelling.get(name, name))] = None
    return tuple(columns)


def _is_certain(node: Node) -> bool:
    """Whether engines agree on a column's type: a plain source column, a cast, a count, a string or a boolean."""
    made = node.expression.unalias()
    if isinstance(made, (exp.Cast, exp.Count, exp.Boolean, exp.Predicate)):
        return True
    if isinstance(made, exp.Literal):
        return bool(made.is_string)
    is_as_it_is = isinstance(made, exp.Column) or (isinstance(made, exp.Table) and not made.args.get("pivots"))
    return is_as_it_is and all(_is_certain(each) for each in node.downstream)
