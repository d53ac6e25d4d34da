"""The SQL dialects of views: their names, and how each folds the case of table names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect, Dialects, NormalizationStrategy

Identifiers: TypeAlias = list[str | tuple[str, str]]


class Generic(Dialect):
    """The dialects unknown to sqlglot: names are case-sensitive, quoted with double quotes or backquotes."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[Identifiers] = ['"', "`"]


class Flink(Generic):
    """Generic SQL with names quoted only in backquotes: Flink gives double quotes no meaning.

    Source: Flink's documentation, "Table API & SQL", "Queries", "Syntax".
    """

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[Identifiers] = ["`"]


OTHER_NAMES = {"postgresql": "postgres", "sqlserver": "tsql", "mssql": "tsql", "mariadb": "mysql", "sparksql": "spark"}
KNOWN = frozenset(each.value for each in Dialects if each.value) - {"dax", "prql", "tableau", "solr"}  # not SQL

# Engines that lower-case table names, even quoted ones (Trino, "Identifiers").
_LOWER = frozenset({"trino", "presto", "athena", "hive"})
_SPLITS_NAMESPACES = frozenset({"spark", "databricks"})


@dataclass(frozen=True)
class SqlDialect:
    """`name` is sqlglot's; `is_generic` if sqlglot does not know the dialect and parses it as generic SQL."""

    name: str
    is_generic: bool

    @property
    def rules(self) -> Dialect:
        return Dialect.get_or_raise(self.name)

    @property
    def splits_namespaces(self) -> bool:
        """Whether a table in namespace b of a is written `c.a.b.t`; other dialects write `c."a.b".t`."""
        return self.name in _SPLITS_NAMESPACES

    def fold(self, identifier: exp.Expr) -> str:
        """The name of a table, schema or catalog as the engine looks it up."""
        if self.name in _LOWER:
            return str(identifier.name).lower()
        rules = self.rules
        if rules.normalization_strategy in (NormalizationStrategy.LOWERCASE, NormalizationStrategy.UPPERCASE):
            return str(rules.normalize_identifier(identifier.copy()).name)
        return str(identifier.name)


def dialect_of(name: str) -> SqlDialect:
    """The dialect of this name, ignoring case and surrounding spaces."""
    plain = name.strip().casefold()
    plain = OTHER_NAMES.get(plain, plain)
    if plain in KNOWN:
        return SqlDialect(plain, is_generic=False)
    return SqlDialect("flink" if plain == "flink" else "generic", is_generic=True)
