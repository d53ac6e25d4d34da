"""Maps SQL types to native ones and back by name, without lengths and precisions."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from formats.sql.comparing import plain
from formats.sql.dialects import SqlDialect

T = exp.DType

_NATIVE = {
    T.BOOLEAN: "boolean", T.TINYINT: "byte", T.SMALLINT: "short", T.INT: "integer", T.BIGINT: "long",
    T.FLOAT: "float", T.DOUBLE: "double", T.DECIMAL: "decimal", T.DATE: "date", T.TIME: "time",
    T.TIMESTAMP: "timestamp", T.TIMESTAMPNTZ: "timestamp", T.TIMESTAMPTZ: "timestamp_tz",
    T.TIMESTAMPLTZ: "timestamp_tz", T.TEXT: "string", T.VARCHAR: "string", T.CHAR: "string", T.BINARY: "binary",
    T.VARBINARY: "binary", T.UUID: "uuid",
}  # fmt: skip
_SQL = {name: each for each, name in reversed(_NATIVE.items())}

# Here the meaning of TIMESTAMP depends on the session and the catalog.
_TIMESTAMP_VARIES = frozenset({"spark", "databricks", "hive"})


def to_sql(native: Any) -> exp.DataType:
    """The sqlglot type; "unknown" if SQL has none."""
    name = plain(native)
    return _SQL.get(name or "", T.UNKNOWN).into_expr()


def from_sql(kind: exp.DataType | None, dialect: SqlDialect) -> str | None:
    """The name of the native type; None if unknown or ambiguous."""
    name = _NATIVE.get(kind.this) if kind is not None else None
    if name is not None and name.startswith("timestamp") and dialect.name in _TIMESTAMP_VARIES:
        return None
    return name
