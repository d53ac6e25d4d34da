"""Detects which engine's private form a view in a metastore or Glue has, and knows each form's parameters.

docs/decisions/hive-views.md describes each form, with sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from formats.hive.properties import FORMAT_MARKS, RESERVED
from formats.hive.tables import HiveTable

ICEBERG_VIEW = "iceberg-view"
PRESTO_VIEW = "presto_view"
VIEW_COMMENT, MATERIALIZED_COMMENT = "Presto View", "Presto Materialized View"
VIEW_PREFIX, MATERIALIZED_PREFIX = "/* Presto View: ", "/* Presto Materialized View: "
CREATED_BY_SPARK = "spark.sql.create.version"
IS_GENERIC = "is_generic"
FLINK_SCHEMAS = ("flink.schema", "flink.generic.table.schema")  # the second is of Flink 1.10 and before
FLINK_COMMENT = "flink.comment"
VIEW_DEFINITION = "ViewDefinition"  # Glue only, in the `rest` of a HiveTable

_OF_TRINO = {
    *(PRESTO_VIEW, "trino_created_by", "trino_version", "trino_query_id", "presto_version", "presto_query_id"),
    *("storage_table", "storage_schema", "trino.run-as-owner"),
}
_OF_FLINK = {IS_GENERIC, FLINK_COMMENT, "flink.connector", "flink.transient_lastddltime"}
_PREFIXES = {
    "spark.sql.": "Spark",
    "view.": "Spark",
    **{f"{schema}.": "Flink" for schema in FLINK_SCHEMAS},
    "flink.partition.keys.": "Flink",
    "flink.flink.": "Flink",  # left over if Flink renames a view and then alters it
}


class Form(StrEnum):
    """How a view is stored, in the order of detection; the last one needs no mark.

    An engine's form has the engine's name, which is also its SQL dialect.
    """

    ICEBERG = "iceberg"
    GLUE = "glue"
    TRINO = "trino"
    SPARK = "spark"
    FLINK = "flink"
    HIVE = "hive"


def detect(table: HiveTable) -> Form:
    """The form of an entry that is a view."""
    parameters = table.parameters
    if parameters.get("table_type", "").lower() == ICEBERG_VIEW:
        return Form.ICEBERG
    if table.rest.get(VIEW_DEFINITION) or table.rest.get("IsMultiDialectView"):
        return Form.GLUE
    if _is_trino(table):
        return Form.TRINO
    if CREATED_BY_SPARK in parameters:
        return Form.SPARK
    return Form.FLINK if _is_flink(parameters) else Form.HIVE


def is_materialized(table: HiveTable) -> bool:
    """Whether the view is materialized: in Hive by the entry's type, in Trino by its comment."""
    return table.table_type == "MATERIALIZED_VIEW" or _has_marks(table, MATERIALIZED_COMMENT, MATERIALIZED_PREFIX)


def _is_trino(table: HiveTable) -> bool:
    return _has_marks(table, VIEW_COMMENT, VIEW_PREFIX) or _has_marks(table, MATERIALIZED_COMMENT, MATERIALIZED_PREFIX)


def _has_marks(table: HiveTable, comment: str, prefix: str) -> bool:
    """Whether it is Trino's by its flag, and by its comment or, if that was changed, by its text."""
    if table.parameters.get(PRESTO_VIEW, "").lower() != "true":
        return False
    comments = {(text or "").lower() for text in (table.comment, table.parameters.get("comment"))}
    return comment.lower() in comments or (table.view_original_text or "").startswith(prefix)


def _is_flink(parameters: Mapping[str, str]) -> bool:
    """Whether Flink describes it by properties; Flink marks Hive's own views with `is_generic=false`."""
    generic = parameters.get(IS_GENERIC)
    if generic is not None:
        return generic.lower() == "true"
    return any(f"{schema}.0.name" in parameters for schema in FLINK_SCHEMAS)


def why_reserved(name: str) -> str | None:
    """Why a property is reserved, ignoring case, so that users neither see nor set it; None if it is not."""
    name = name.lower()
    if name in _OF_TRINO:
        return "it is written by Trino"
    if name in _OF_FLINK:
        return "it is written by Flink"
    if name in FORMAT_MARKS:
        return "it says where an Iceberg view is"
    engine = next((engine for prefix, engine in _PREFIXES.items() if name.startswith(prefix)), None)
    return f"it is written by {engine}" if engine else RESERVED.get(name)


def properties_of(table: HiveTable) -> dict[str, str]:
    """The user's own parameters."""
    return {name: value for name, value in table.parameters.items() if why_reserved(name) is None}
