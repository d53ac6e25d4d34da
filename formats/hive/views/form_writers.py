"""Writers of each engine's form: apply the difference between two definitions, the first perhaps None, to an entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from formats.hive.columns import column_name, new_column
from formats.hive.formats import STORAGE_FORMATS
from formats.hive.spark import require_spark_type, with_spark_columns
from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.types import hive_type
from formats.hive.views import flink_schema, trino_json
from formats.hive.views.columns import Json, type_texts
from formats.hive.views.flink_types import flink_type
from formats.hive.views.forms import CREATED_BY_SPARK, FLINK_COMMENT, IS_GENERIC, PRESTO_VIEW, VIEW_COMMENT, Form
from formats.hive.views.reader import spark_view_columns, trino_columns
from formats.hive.views.spark_parameters import (
    SESSION_CATALOG,
    defaults_of,
    query_columns,
    with_defaults,
    with_query_columns,
)
from formats.hive.views.trino_types import trino_type
from formats.native.columns import Column
from formats.native.view_definition import Representation, ViewDefinition
from metalake.errors import Invalid, MetalakeError, Unsupported
from metalake.kinds import Kind

VIRTUAL_VIEW = "VIRTUAL_VIEW"
LIKE_TRINO, LIKE_SPARK = "476", "4.1.4"  # the versions whose forms we write
TRINOS_COLUMN = HiveColumn("dummy", "string")  # an entry needs columns; Trino stores a view's in its text


@dataclass(frozen=True)
class Change:
    """A change of definition; `before` is None for a new view, `schema` is the new view's database."""

    before: ViewDefinition | None
    after: ViewDefinition
    schema: str = ""
    query_columns: Sequence[str] | None = None

    @property
    def now(self) -> Representation:
        return self.after.representations[0]

    @property
    def is_of_sql(self) -> bool:
        return self.before is None or self.before.representations[0].sql != self.now.sql

    @property
    def is_of_columns(self) -> bool:
        return self.before is None or self.before.columns != self.after.columns

    @property
    def is_of_comment(self) -> bool:
        return self.before is None or self.before.comment != self.after.comment

    @property
    def columns_before(self) -> tuple[Json, ...]:
        return self.before.columns if self.before else ()


def empty_entry(form: Form, name: str, owner: str | None) -> HiveTable:
    """An entry with the fields common to all views of a form."""
    table = HiveTable(name=name, table_type=VIRTUAL_VIEW, owner=owner)
    if form is Form.TRINO:
        made_by = {"trino_created_by": "Metalake", "trino_version": LIKE_TRINO}
        parameters = {PRESTO_VIEW: "true", "comment": VIEW_COMMENT, **made_by}
        return replace(table, columns=(TRINOS_COLUMN,), parameters=parameters)
    marks = {
        Form.SPARK: {CREATED_BY_SPARK: LIKE_SPARK, "view.schemaMode": "COMPENSATION"},
        Form.FLINK: {IS_GENERIC: "true"},
    }
    files = STORAGE_FORMATS["TEXTFILE" if form is Form.FLINK else "SEQUENCEFILE"]
    return replace(
        table, **files._asdict(), serde_parameters={"serialization.format": "1"}, parameters=marks.get(form, {})
    )


def _write_hive(table: HiveTable, change: Change) -> HiveTable:
    _require_no_defaults(change, "Hive")
    table = _with_comment(_with_sql(table, change), change)
    if not change.is_of_columns:
        return table
    wanted = [
        {**column, "name": column_name(column["name"], f"columns[{number}].name")}
        for number, column in enumerate(change.after.columns)
    ]
    before = zip(change.columns_before, (column.type for column in table.columns), strict=True)
    return replace(table, columns=_hive_columns(table, wanted, type_texts(before, wanted, _hive_type)))


def _write_spark(table: HiveTable, change: Change) -> HiveTable:
    """Spark's schema has the original names, the entry's columns the lower-case ones that a metastore stores."""
    stored = spark_view_columns(table)
    parameters = _with_spark_defaults(table.parameters, change)
    if change.is_of_sql or change.is_of_columns or change.query_columns is not None:
        parameters = with_query_columns(parameters, _query_columns(table, change))
    table = _with_comment(_with_sql(replace(table, parameters=parameters), change), change)
    if not change.is_of_columns:
        return table
    wanted = change.after.columns
    types = type_texts(zip(change.columns_before, (one.type for one in stored), strict=True), wanted, _spark_type)
    columns = [HiveColumn(one["name"], type, one.get("comment")) for one, type in zip(wanted, types, strict=True)]
    parameters = with_spark_columns(table.parameters, columns)
    return replace(table, parameters=parameters, columns=_hive_columns(table, wanted, types))


def _with_spark_defaults(parameters: dict[str, str], change: Change) -> dict[str, str]:
    """Spark needs a default catalog and schema: omitted ones stay, or for a new view are its own."""
    catalog, schema = defaults_of(parameters)
    wanted = change.now.default_catalog or catalog, change.now.default_schema or schema
    if change.before is not None and wanted == (catalog, schema):
        return parameters
    return with_defaults(parameters, wanted[0] or SESSION_CATALOG, wanted[1] or change.schema or None)


def _query_columns(table: HiveTable, change: Change) -> list[str]:
    """The query's column names: while the SQL is unchanged, a renamed column keeps its query column."""
    names = [column["name"] for column in change.after.columns]
    if change.query_columns is not None:
        if len(change.query_columns) != len(names):
            counts = f"the view has {len(names)} columns, its query {len(change.query_columns)}"
            raise Invalid(f"columns: {counts}", kind=Kind.VIEW)
        return list(change.query_columns)
    stored = query_columns(table.parameters)
    if change.is_of_sql or not stored:
        return names
    before = [column["name"] for column in change.columns_before]
    by_name = dict(zip(before, stored, strict=True))
    renamed = {new: by_name[old] for old, new in zip(before, names, strict=False) if old not in names}
    return [by_name.get(name) or renamed.get(name, name) for name in names]


def _write_flink(table: HiveTable, change: Change) -> HiveTable:
    _require_no_defaults(change, "Flink")
    parameters = dict(table.parameters)
    if change.is_of_comment:
        parameters = {name: value for name, value in parameters.items() if name not in (FLINK_COMMENT, "comment")}
        if change.after.comment is not None:
            parameters[FLINK_COMMENT] = change.after.comment
        table = replace(table, comment=None)
    table = _with_sql(replace(table, parameters=parameters), change)
    if not change.is_of_columns:
        return table
    wanted = change.after.columns
    types = type_texts(flink_schema.columns_of(parameters), wanted, _flink_type)
    return replace(
        table,
        parameters=flink_schema.with_columns(parameters, wanted, types),
        columns=_columns_for_others(table, wanted),
    )


def _write_trino(table: HiveTable, change: Change) -> HiveTable:
    if change.now.default_schema is not None and change.now.default_catalog is None:
        raise Invalid("defaultCatalog: Trino needs one where there is a defaultSchema", kind=Kind.VIEW)
    if change.before is not None and replace(change.before, properties=change.after.properties) == change.after:
        return table
    data = trino_json.decode(table.view_original_text or "") if change.before else {}
    stored = trino_columns(data) if change.before else ()
    types = type_texts(stored, change.after.columns, _trino_type)
    others = {column["name"]: column for column in data.get("columns", ())}
    columns = [
        {**others.get(column["name"], {}), "name": column["name"], "type": type, "comment": column.get("comment")}
        for column, type in zip(change.after.columns, types, strict=True)
    ]
    data = data | {
        "originalSql": change.now.sql,
        "catalog": change.now.default_catalog,
        "schema": change.now.default_schema,
        "columns": [_without_nulls(column) for column in columns],
        "comment": change.after.comment,
        **_runs_as(table.owner, change),
    }
    text = trino_json.encode(_without_nulls(data))
    table = replace(table, view_original_text=text, view_expanded_text=f"/* {VIEW_COMMENT} */")
    if not change.is_of_columns or table.columns == (TRINOS_COLUMN,):
        return table
    return replace(table, columns=_columns_for_others(table, change.after.columns) or (TRINOS_COLUMN,))


def _runs_as(owner: str | None, change: Change) -> Json:
    """Trino's security fields, if they change; an INVOKER view has no owner, and our views have no path."""
    was, mode = change.before and change.before.security_mode, change.after.security_mode
    if change.before is not None and mode in (None, was):
        return {}
    path: Json = {} if change.before else {"path": []}
    if not change.after.is_definer:
        return {"owner": None, "runAsInvoker": True, **path}
    if not owner:
        raise Invalid("securityMode: Trino runs a DEFINER view as its owner, and this one has none", kind=Kind.VIEW)
    return {"owner": owner, "runAsInvoker": False, **path}


def _without_nulls(data: Json) -> Json:
    return {name: value for name, value in data.items() if value is not None}


def _with_sql(table: HiveTable, change: Change) -> HiveTable:
    if not change.is_of_sql:
        return table
    return replace(table, view_original_text=change.now.sql, view_expanded_text=change.now.sql)


def _with_comment(table: HiveTable, change: Change) -> HiveTable:
    """Set the comment, and the parameter `comment` if the entry also has that."""
    if not change.is_of_comment:
        return table
    parameters = {name: value for name, value in table.parameters.items() if name != "comment"}
    if "comment" in table.parameters and change.after.comment is not None:
        parameters["comment"] = change.after.comment
    return replace(table, comment=change.after.comment, parameters=parameters)


def _require_no_defaults(change: Change, engine: str) -> None:
    for place, value in (("defaultCatalog", change.now.default_catalog), ("defaultSchema", change.now.default_schema)):
        if value is not None:
            refusal = f"a view in {engine}'s form has none; write complete names into its SQL"
            raise Invalid(f"representations[0].{place}: {refusal}", kind=Kind.VIEW)


def _hive_columns(table: HiveTable, wanted: Iterable[Json], types: Iterable[str]) -> tuple[HiveColumn, ...]:
    """The entry's columns; Glue's parameters of a column are preserved by name."""
    stored = {column.name: column for column in table.columns}
    columns = []
    for column, type in zip(wanted, types, strict=True):
        name = column["name"].lower()
        parameters = stored[name].parameters if name in stored else {}
        columns.append(HiveColumn(name, type, column.get("comment"), parameters))
    return tuple(columns)


def _columns_for_others(table: HiveTable, wanted: Sequence[Json]) -> tuple[HiveColumn, ...]:
    """The entry's columns, which the engine itself does not read; none if Hive lacks one of the types."""
    try:
        return _hive_columns(table, wanted, type_texts((), wanted, _loose_hive_type))
    except MetalakeError:
        return ()


def _hive_type(column: Column, where: str) -> str:
    return new_column(column.name, column, where).type


def _loose_hive_type(column: Column, where: str) -> str:
    """The Hive type, ignoring nullability."""
    return hive_type(column.type, f"{where}.type")


def _spark_type(column: Column, where: str) -> str:
    wanted = new_column(column.name, column, where)
    require_spark_type(wanted, f"{where}.type")
    return wanted.type


def _flink_type(column: Column, where: str) -> str:
    return flink_type(column.type, column.nullable, f"{where}.type")


def _trino_type(column: Column, where: str) -> str:
    if not column.nullable:
        raise Unsupported(f"{where}.nullable: the columns of Trino's views may be null; leave it out", kind="column")
    return trino_type(column.type, f"{where}.type")


WRITERS = {
    Form.TRINO: _write_trino,
    Form.SPARK: _write_spark,
    Form.FLINK: _write_flink,
    Form.HIVE: _write_hive,
}
