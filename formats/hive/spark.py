"""Spark data source tables in a metastore, whose columns are those of Spark's schema.

Spark writes the schema as JSON into the parameters, whole or in numbered parts; the storage descriptor's columns repeat
it, or are a single placeholder if Hive could not read the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from formats.hive.tables import SPARK_PROVIDER, HiveColumn, HiveTable
from formats.hive.types import native_type
from metalake.errors import Unsupported
from metalake.wire import MAX_BODY_NESTING, nests_deeper_than

SCHEMA = "spark.sql.sources.schema"
NUM_PARTS = f"{SCHEMA}.numParts"
PART_LENGTH = 4000  # characters, the limit of a metastore's parameter
MAX_PARTS = 10_000
DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # column metadata: the char or varchar that Spark stores as a string
PLACEHOLDER = HiveColumn("col", "array<string>", "from deserializer")
HIVE_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
SAME_IN_SPARK = frozenset(
    {
        "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp",
    }
)  # fmt: skip


def is_spark_table(table: HiveTable) -> bool:
    """Whether Spark reads the table by its own schema."""
    return table.parameters.get(SPARK_PROVIDER, "hive").lower() != "hive"


def spark_columns(table: HiveTable) -> tuple[HiveColumn, ...]:
    """The columns that Spark sees, including partition keys; empty if Spark stored no schema."""
    if not is_spark_table(table):
        return ()
    return schema_columns(table.parameters)


def has_schema(parameters: Mapping[str, str]) -> bool:
    """Whether Spark stored a schema, in either form."""
    return SCHEMA in parameters or NUM_PARTS in parameters


def schema_columns(parameters: Mapping[str, str]) -> tuple[HiveColumn, ...]:
    """The columns of Spark's schema; empty if it is missing or not in Spark's form."""
    return tuple(map(_column, _fields(parameters)))


def _fields(parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    """The fields of Spark's schema; empty if it is missing or not in Spark's form."""
    try:
        schema = json.loads(_schema_text(parameters))
        if nests_deeper_than(MAX_BODY_NESTING, schema) or not all(map(_column, schema["fields"])):
            return []
        return schema["fields"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _schema_text(parameters: Mapping[str, str]) -> str:
    if SCHEMA in parameters:
        return parameters[SCHEMA]
    count = min(int(parameters[NUM_PARTS]), MAX_PARTS)
    return "".join(parameters[f"{SCHEMA}.part.{part}"] for part in range(count))


def _column(field: Mapping[str, Any]) -> HiveColumn:
    declared = field.get("metadata", {}).get(DECLARED_TYPE)
    return HiveColumn(_text(field["name"]), _text(declared or _hive_type(field["type"])), _comment(field))


def _comment(field: Mapping[str, Any]) -> str | None:
    comment = field.get("metadata", {}).get("comment")
    return None if comment is None else _text(comment)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _hive_type(spark: str | Mapping[str, Any]) -> str:
    """The Hive type string of a Spark JSON type; types that Hive lacks keep Spark's name."""
    if isinstance(spark, str):
        return HIVE_NAMES.get(spark, spark)
    match spark["type"]:
        case "array":
            return f"array<{_hive_type(spark['elementType'])}>"
        case "map":
            return f"map<{_hive_type(spark['keyType'])},{_hive_type(spark['valueType'])}>"
        case "struct":
            return f"struct<{','.join(map(_hive_field, spark['fields']))}>"
        case "udt":
            return _hive_type(spark["sqlType"])
        case unknown:
            return _text(unknown)


def _hive_field(field: Mapping[str, Any]) -> str:
    name = field["name"].replace("`", "``")
    comment = _comment(field)
    comment_clause = "" if comment is None else " comment '" + comment.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"`{name}`:{_hive_type(field['type'])}{comment_clause}"


def with_spark_columns(parameters: Mapping[str, str], columns: Iterable[HiveColumn]) -> dict[str, str]:
    """The parameters with these columns in Spark's schema; columns of the same name and type stay as Spark wrote them.

    The caller has passed the others to `require_spark_type`.
    """
    known = {(field["name"].lower(), _column(field).type): field for field in _fields(parameters)}
    fields = []
    for column in columns:
        field = known.get((column.name.lower(), column.type)) or _new_field(column)
        metadata = {name: value for name, value in field.get("metadata", {}).items() if name != "comment"}
        if column.comment is not None:
            metadata["comment"] = column.comment
        fields.append({**field, "metadata": metadata})
    text = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)
    others = {name: value for name, value in parameters.items() if not _holds_schema(name)}
    return others | _schema_parameters(text, in_parts=NUM_PARTS in parameters)


def _holds_schema(name: str) -> bool:
    return name in (SCHEMA, NUM_PARTS) or name.startswith(f"{SCHEMA}.part.")


def _schema_parameters(text: str, in_parts: bool) -> dict[str, str]:
    """The parameters of a schema. Older Spark versions read only parts, so a schema in parts stays in parts."""
    if not in_parts and len(text) <= PART_LENGTH:
        return {SCHEMA: text}
    parts = [text[start : start + PART_LENGTH] for start in range(0, len(text), PART_LENGTH)]
    return {NUM_PARTS: str(len(parts))} | {f"{SCHEMA}.part.{number}": part for number, part in enumerate(parts)}


def _new_field(column: HiveColumn) -> dict[str, Any]:
    metadata = {DECLARED_TYPE: column.type} if "char(" in column.type else {}
    return _spark_field(column.name, native_type(column.type), "") | {"metadata": metadata}


def _spark_field(name: str, native: str | Mapping[str, Any], where: str) -> dict[str, Any]:
    return {"name": name, "type": _spark_type(native, where), "nullable": True, "metadata": {}}


def require_spark_type(column: HiveColumn, where: str) -> None:
    """Raise Unsupported for a column type that a Spark table cannot have."""
    _spark_type(native_type(column.type), where)


def _spark_type(native: str | Mapping[str, Any], where: str) -> str | dict[str, Any]:
    if isinstance(native, str):
        if native in SAME_IN_SPARK or native.startswith("decimal("):
            return native
        if native.startswith(("varchar(", "char(")):
            return "string"
        raise Unsupported(f"{where}: a table of Spark's own has no type {native}", kind="column")
    match native["type"]:
        case "list":
            return {"type": "array", "elementType": _spark_type(native["elementType"], where), "containsNull": True}
        case "map":
            return {
                "type": "map",
                "keyType": _spark_type(native["keyType"], where),
                "valueType": _spark_type(native["valueType"], where),
                "valueContainsNull": True,
            }
        case "struct":
            fields = [_spark_field(field["name"], field["type"], where) for field in native["fields"]]
            return {"type": "struct", "fields": fields}
        case kind:
            raise Unsupported(f"{where}: a table of Spark's own has no {kind} type", kind="column")
