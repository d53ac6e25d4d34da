"""Columns for display: a short type, and the nested fields below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

Json = dict[str, Any]
BARE = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "null"}
)  # literals without quotes


@dataclass(frozen=True)
class ColumnOutline:
    """A column or nested field. The fields of a struct, also within lists and maps, are in `fields`, not in `type`.

    `id` is Iceberg's field id, None in other formats. `default` is the default value in one line; `counts` says that
    the system numbers the rows itself.
    """

    name: str
    type: str
    required: bool = False
    comment: str = ""
    id: int | None = None
    fields: tuple[ColumnOutline, ...] = ()
    default: str = ""
    counts: bool = False


@dataclass(frozen=True)
class KeyOutline:
    """A key or an index of a table: "Primary key", with the paths of its columns."""

    name: str
    type: str
    columns: tuple[str, ...]


class Row(NamedTuple):
    """A column in the flattened list, with its depth (0: top level) and its path of names."""

    column: ColumnOutline
    depth: int
    path: tuple[str, ...]

    @property
    def above(self) -> tuple[str, ...]:
        return self.path[:-1]


def rows_of(columns: Iterable[ColumnOutline], above: tuple[str, ...] = ()) -> Iterator[Row]:
    """Every column and nested field, depth-first."""
    for column in columns:
        path = (*above, column.name)
        yield Row(column, len(above), path)
        yield from rows_of(column.fields, path)


def matching(columns: Iterable[ColumnOutline], text: str) -> list[ColumnOutline]:
    """The columns with the text in their own or a nested field's name, ignoring case."""
    wanted = text.casefold()
    return [column for column in columns if any(wanted in row.column.name.casefold() for row in rows_of([column]))]


def outline_native(columns: Iterable[Json]) -> tuple[ColumnOutline, ...]:
    """Outline native columns, or the fields of a native struct, from their JSON."""
    return tuple(
        ColumnOutline(
            name=str(column.get("name")),
            type=native_type_text(column.get("type")),
            required=not column.get("nullable", True),
            comment=column.get("comment") or "",
            fields=_nested(column.get("type")),
            default=expression_text(column["defaultValue"]) if column.get("defaultValue") else "",
            counts=bool(column.get("autoIncrement")),
        )
        for column in columns
    )


def outline_keys(indexes: Iterable[Json]) -> tuple[KeyOutline, ...]:
    """The indexes of the native wire's JSON."""
    return tuple(
        KeyOutline(
            name=str(index.get("name") or ""),
            type=_key_type(index),
            columns=tuple(".".join(path) for path in index.get("fieldNames") or ()),
        )
        for index in indexes
    )


def _key_type(index: Json) -> str:
    is_no_constraint = (index.get("properties") or {}).get("constraint") == "false"
    word = "UNIQUE_INDEX" if is_no_constraint else str(index.get("indexType") or "")
    return word.replace("_", " ").capitalize()


def expression_text(expression: Any) -> str:
    """An expression of the native wire in one line, as SQL would have it."""
    if not isinstance(expression, dict):
        return str(expression)
    match expression.get("type"):
        case "literal":
            type_ = native_type_text(expression.get("dataType")).partition("(")[0].removesuffix(" unsigned")
            value = str(expression.get("value"))
            return value if type_ in BARE else "'" + value.replace("'", "''") + "'"
        case "field":
            return ".".join(map(str, expression.get("fieldName") or ()))
        case "function":
            arguments = ", ".join(map(expression_text, expression.get("funcArgs") or ()))
            return f"{expression.get('funcName')}({arguments})"
    return str(expression.get("unparsedExpression"))


def _nested(type_: Any) -> tuple[ColumnOutline, ...]:
    if not isinstance(type_, dict):
        return ()
    match type_.get("type"):
        case "struct":
            return outline_native(type_.get("fields") or ())
        case "list":
            return _nested(type_.get("elementType"))
        case "map":
            return (*_nested(type_.get("keyType")), *_nested(type_.get("valueType")))
    return ()


def native_type_text(type_: Any) -> str:
    """A native type in one line, structs without their fields."""
    if not isinstance(type_, dict):
        return str(type_)
    match type_.get("type"):
        case "struct":
            return "struct"
        case "list":
            return f"list<{native_type_text(type_.get('elementType'))}>"
        case "map":
            return f"map<{native_type_text(type_.get('keyType'))}, {native_type_text(type_.get('valueType'))}>"
        case "union":
            return f"union<{', '.join(map(native_type_text, type_.get('types') or ()))}>"
        case "external":
            return str(type_.get("catalogString"))
    return str(type_.get("unparsedType"))
