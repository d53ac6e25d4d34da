"""Spark's view parameters besides the schema: the default catalog and namespace, and the query's column names.

Source: Spark's CatalogTable and SessionCatalog.fromCatalogTable, and views that Spark 3.5 and 4.1 wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formats.hive.views.unreadable import MOST_COLUMNS, Unreadable, checked_text

SESSION_CATALOG = "spark_catalog"
NAMESPACE = "view.catalogAndNamespace"
OLD_DATABASE = "view.default.database"  # of Spark 2
QUERY_COLUMNS, QUERY_COLUMN = "view.query.out.numCols", "view.query.out.col"


def defaults_of(parameters: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The default catalog and schema; a nested schema is joined by dots, as in SQL. Raises Unreadable."""
    parts = _numbered(parameters, f"{NAMESPACE}.numParts", f"{NAMESPACE}.part")
    if not parts:
        return None, parameters.get(OLD_DATABASE)
    return parts[0], ".".join(parts[1:]) or None


def with_defaults(parameters: Mapping[str, str], catalog: str, schema: str | None) -> dict[str, str]:
    """The parameters with another default catalog and schema; a dot separates the schema's levels."""
    others = {name: value for name, value in parameters.items() if not name.startswith((f"{NAMESPACE}.", OLD_DATABASE))}
    parts = [catalog, *(schema.split(".") if schema else ())]
    numbered = {f"{NAMESPACE}.part.{number}": part for number, part in enumerate(parts)}
    return others | {f"{NAMESPACE}.numParts": str(len(parts))} | numbered


def query_columns(parameters: Mapping[str, str]) -> list[str]:
    """The query's own column names; none if Spark did not write them. Raises Unreadable."""
    return _numbered(parameters, QUERY_COLUMNS, QUERY_COLUMN)


def with_query_columns(parameters: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The parameters with other query column names."""
    others = {name: value for name, value in parameters.items() if not name.startswith("view.query.out.")}
    numbered = {f"{QUERY_COLUMN}.{number}": name for number, name in enumerate(names)}
    return others | {QUERY_COLUMNS: str(len(names))} | numbered


def _numbered(parameters: Mapping[str, str], count: str, each: str) -> list[str]:
    """The values of numbered parameters. Raises Unreadable if their count is invalid or one is missing."""
    if count not in parameters:
        return []
    text = parameters[count]
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) <= MOST_COLUMNS):
        raise Unreadable(f"Its parameter {count} is not a number up to {MOST_COLUMNS}.")
    names = [f"{each}.{number}" for number in range(int(text))]
    if missing := next((name for name in names if name not in parameters), None):
        raise Unreadable(f"Its parameter {missing} is missing.")
    return [checked_text(parameters[name], f"parameter {name}") for name in names]
