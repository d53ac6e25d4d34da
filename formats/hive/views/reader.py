"""Parses views in a metastore or Glue, in the form of the engine that wrote them, into definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from formats.hive.spark import has_schema, schema_columns
from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.views import flink_schema, trino_json, trino_types
from formats.hive.views.columns import check_count, checked_type, from_hive_columns, native_column
from formats.hive.views.forms import FLINK_COMMENT, VIEW_DEFINITION, Form, detect, is_materialized, properties_of
from formats.hive.views.spark_parameters import defaults_of, query_columns
from formats.hive.views.unreadable import LONGEST_TEXT, Unreadable, checked_sql, checked_text, optional_text
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class HiveView:
    """A view parsed from its entry.

    `expanded_sql` is the SQL with fully qualified names, if the engine stores it besides the user's; `query_columns`
    are the SQL's own column names, if the engine stores them.
    """

    definition: ViewDefinition
    form: Form
    is_materialized: bool = False
    owner: str | None = None
    expanded_sql: str | None = None
    query_columns: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        """The engine of the form; `glue` if it belongs to several engines."""
        return self.form.value

    @property
    def format(self) -> str:
        """The stored format: `glue` in Glue's own form, otherwise `hive`."""
        return self.form.value if self.form is Form.GLUE else "hive"


def read(table: HiveTable) -> HiveView:
    """Parse a view. Raises only Unreadable, if it is not in the form that its engine writes.

    An Iceberg view is defined by its metadata file, so it is Unreadable here.
    """
    form = detect(table)
    if form is Form.ICEBERG:
        raise Unreadable("It is an Iceberg view, which is defined by its metadata file.")
    types = (column.type for column in table.columns)
    texts = (table.view_original_text or "", table.view_expanded_text or "", *table.parameters.values(), *types)
    if (size := sum(map(len, texts))) > LONGEST_TEXT:
        raise Unreadable(f"Its texts have {size} characters; at most {LONGEST_TEXT} are read.")
    return _READERS[form](table)


def _read_hive(table: HiveTable) -> HiveView:
    return _of_one(table, Form.HIVE, from_hive_columns(table.columns), _comment(table))


def _read_spark(table: HiveTable) -> HiveView:
    columns = from_hive_columns(spark_view_columns(table))
    names = query_columns(table.parameters)
    if names and len(names) != len(columns):
        counts = f"{len(names)} columns in view.query.out, {len(columns)} in its schema"
        raise Unreadable(f"Spark stored two numbers of columns: {counts}.")
    view = _of_one(table, Form.SPARK, columns, _comment(table), defaults_of(table.parameters))
    return replace(view, query_columns=tuple(names))


def spark_view_columns(table: HiveTable) -> tuple[HiveColumn, ...]:
    """The columns of Spark's schema, or the entry's if Spark wrote none. Raises Unreadable."""
    if not has_schema(table.parameters):
        return table.columns
    columns = schema_columns(table.parameters)
    if not columns and table.columns:
        raise Unreadable("Its parameters spark.sql.sources.schema do not hold a schema as Spark writes it.")
    return columns


def _read_flink(table: HiveTable) -> HiveView:
    described = flink_schema.columns_of(table.parameters)
    columns = tuple(column for column, _ in described) or from_hive_columns(table.columns)
    comment = optional_text(table.parameters.get(FLINK_COMMENT), "comment")
    return _of_one(table, Form.FLINK, columns, (_comment(table) if comment is None else comment) or None)


def _of_one(
    table: HiveTable,
    form: Form,
    columns: tuple[Json, ...],
    comment: str | None,
    defaults: tuple[str | None, str | None] = (None, None),
) -> HiveView:
    """A view with its SQL in the entry; `defaults` are its default catalog and schema."""
    sql = checked_sql(table.view_original_text, table.view_expanded_text)
    expanded = optional_text(table.view_expanded_text, "SQL")
    catalog, schema = defaults
    only = Representation(dialect=form.value, sql=sql, default_catalog=catalog, default_schema=schema)
    return HiveView(
        definition=_definition(table, (only,), columns, comment),
        form=form,
        is_materialized=is_materialized(table),
        owner=optional_text(table.owner, "owner"),
        expanded_sql=expanded if expanded and expanded != sql else None,
    )


def _definition(
    table: HiveTable,
    representations: tuple[Representation, ...],
    columns: tuple[Json, ...],
    comment: str | None,
    security_mode: SecurityMode | None = None,
) -> ViewDefinition:
    return ViewDefinition(
        representations=representations,
        columns=columns,
        security_mode=security_mode,
        comment=comment,
        properties=properties_of(table),
    )


def _comment(table: HiveTable) -> str | None:
    comment = table.comment if table.comment is not None else table.parameters.get("comment")
    return optional_text(comment, "comment")


def _read_trino(table: HiveTable) -> HiveView:
    data = trino_json.decode(table.view_original_text or "")
    if data.get("originalSql") is None:
        raise Unreadable("The JSON in its text has no originalSql.")
    only = Representation(
        dialect=Form.TRINO.value,
        sql=checked_sql(data["originalSql"]),
        default_catalog=optional_text(data.get("catalog"), "catalog"),
        default_schema=optional_text(data.get("schema"), "schema"),
    )
    columns = tuple(column for column, _ in trino_columns(data))
    comment = optional_text(data.get("comment"), "comment")
    mode = None if is_materialized(table) else _security_mode(data)
    return HiveView(
        definition=_definition(table, (only,), columns, comment, mode),
        form=Form.TRINO,
        is_materialized=is_materialized(table),
        owner=optional_text(table.owner or data.get("owner"), "owner"),
    )


def trino_columns(data: Json) -> tuple[tuple[Json, str], ...]:
    """Each column with its type string. Raises Unreadable."""
    columns = data.get("columns")
    if not isinstance(columns, list) or not columns:
        raise Unreadable("The JSON in its text has no columns.")
    check_count(len(columns))
    return tuple(map(_trino_column, columns))


def _trino_column(column: Any) -> tuple[Json, str]:
    if not isinstance(column, dict) or not {"name", "type"} <= column.keys():
        raise Unreadable("The JSON in its text has a column without name or type.")
    text = checked_type(column["type"])
    return native_column(column["name"], trino_types.native_type(text), column.get("comment")), text


def _security_mode(data: Mapping[str, Any]) -> SecurityMode:
    """The security mode; Trino's default is DEFINER, with the owner's rights."""
    runs_as_invoker = data.get("runAsInvoker", False)
    if not isinstance(runs_as_invoker, bool):
        raise Unreadable("In the JSON of its text, runAsInvoker is neither true nor false.")
    return SecurityMode.INVOKER if runs_as_invoker else SecurityMode.DEFINER


def _read_glue(table: HiveTable) -> HiveView:
    """Glue's own form; of several versions of a dialect, the first that is not stale is shown, else the first."""
    definition = table.rest.get(VIEW_DEFINITION)
    stored = definition.get("Representations") if isinstance(definition, dict) else None
    if not isinstance(stored, list) or not stored or not all(isinstance(one, dict) for one in stored):
        raise Unreadable("Its ViewDefinition has no Representations.")
    by_dialect: dict[str, Representation] = {}
    for one in sorted(stored, key=lambda one: bool(one.get("IsStale"))):
        dialect = checked_text(one.get("Dialect"), "dialect").strip().lower()
        if not dialect:
            raise Unreadable("One of its Representations has a blank dialect.")
        sql = checked_sql(one.get("ViewOriginalText"), one.get("ViewExpandedText"))
        by_dialect.setdefault(dialect, Representation(dialect=dialect, sql=sql))
    columns = from_hive_columns(table.columns)
    return HiveView(
        definition=_definition(table, tuple(by_dialect.values()), columns, _comment(table)),
        form=Form.GLUE,
        owner=optional_text(table.owner, "owner"),
    )


_READERS = {
    Form.GLUE: _read_glue,
    Form.TRINO: _read_trino,
    Form.SPARK: _read_spark,
    Form.FLINK: _read_flink,
    Form.HIVE: _read_hive,
}
