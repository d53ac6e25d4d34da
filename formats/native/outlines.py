"""Columns for display: a short type, and the nested fields below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

Json = dict[str, Any]


@dataclass(frozen=True)
class ColumnOutline:
    """A column or nested field. The fields of a struct, also within lists and maps, are in `fields`, not in `type`.

    `id` is Iceberg's field id, None in other formats.
    """

    name: str
    type: str
    required: bool = False
    comment: str = ""
    id: int | None = None
    fields: tuple[ColumnOutline, ...] = ()


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
        )
        for column in columns
    )


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
