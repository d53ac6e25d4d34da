"""The SQL dialects of views: their names, and how each normalises the case of table names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect, Dialects, NormalizationStrategy

Identifiers: TypeAlias = list[str | tuple[str, str]]


class Generic(Dialect):
    """SQL of a dialect that sqlglot does not know: names are quoted by either sign, and are as they are written."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[Identifiers] = ['"', "`"]


class Flink(Generic):
    """As generic SQL, with names quoted as Flink does: a double quote means nothing there.

    Source: Flink's documentation, "Table API & SQL", "Queries", "Syntax".
    """

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[Identifiers] = ["`"]


OTHER_NAMES = {"postgresql": "postgres", "sqlserver": "tsql", "mssql": "tsql", "mariadb": "mysql", "sparksql": "spark"}
KNOWN = frozenset(each.value for each in Dialects if each.value) - {"dax", "prql", "tableau", "solr"}  # not SQL

# Engines whose names of tables are lower case however they are written, even quoted ones (Trino, "Identifiers").
_LOWER = frozenset({"trino", "presto", "athena", "hive"})
_SPLITS_NAMESPACES = frozenset({"spark", "databricks"})


@dataclass(frozen=True)
class SqlDialect:
    """`name` is sqlglot's; `is_generic` says that sqlglot does not know the dialect, so it was read as generic SQL."""

    name: str
    is_generic: bool

    @property
    def rules(self) -> Dialect:
        return Dialect.get_or_raise(self.name)

    @property
    def splits_namespaces(self) -> bool:
        """Whether `c.a.b.t` is how it writes a table in the namespace b of a; others write `c."a.b".t`."""
        return self.name in _SPLITS_NAMESPACES

    def fold(self, identifier: exp.Expr) -> str:
        """A table's name, or a schema's or catalog's, as the engine looks it up."""
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
