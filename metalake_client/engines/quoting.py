"""Names and texts in the quotes of SQL, where a quote inside is written twice."""

from __future__ import annotations


def backquoted(*parts: str) -> str:
    """A name of Spark or Flink: each part in backquotes, with dots between."""
    return _dotted("`", parts)


def double_quoted(*parts: str) -> str:
    """A name of Trino or DuckDB: each part in double quotes, with dots between."""
    return _dotted('"', parts)


def text(value: str) -> str:
    """A text of Flink's or DuckDB's SQL."""
    return _quoted("'", value)


def spark_text(value: str) -> str:
    """A string literal of Spark SQL, in which backslashes are escaped."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _dotted(quote: str, parts: tuple[str, ...]) -> str:
    return ".".join(_quoted(quote, part) for part in parts)


def _quoted(quote: str, part: str) -> str:
    return f"{quote}{part.replace(quote, quote * 2)}{quote}"
