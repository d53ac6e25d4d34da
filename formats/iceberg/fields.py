"""An Iceberg schema as a tree of fields, to search and change it.

Source: Iceberg spec, "Schemas and Data Types" and appendix C: a field has a permanent id, a name, a type and whether it
is required; a list has one nested field, a map two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from metalake.errors import Invalid
from metalake.wire import quote

MAX_NESTING = 100
KNOWN_FIELD_KEYS = frozenset({"id", "name", "type", "required", "doc"})


@dataclass
class Field:
    """A field of a struct, list or map; `rest` has unknown keys, and the defaults."""

    id: int
    name: str
    type: Type
    required: bool
    doc: str | None = None
    rest: dict[str, Any] = field(default_factory=dict)


@dataclass
class Struct:
    fields: list[Field]


@dataclass
class ListOf:
    element: Field


@dataclass
class MapOf:
    key: Field
    value: Field


Type: TypeAlias = str | Struct | ListOf | MapOf


def read_struct(schema: dict[str, Any]) -> Struct:
    """The tree of an Iceberg schema or struct in JSON. Raises Invalid when it nests too deep or is malformed."""
    try:
        return Struct([_read_field(item, 1) for item in schema["fields"]])
    except (KeyError, TypeError, AttributeError) as error:
        raise _malformed(repr(error)) from error


def _read_field(item: dict[str, Any], depth: int) -> Field:
    rest = {key: value for key, value in item.items() if key not in KNOWN_FIELD_KEYS}
    name, required, doc = item["name"], item["required"], item.get("doc")
    if not isinstance(name, str) or not isinstance(required, bool) or not isinstance(doc, str | None):
        raise _malformed("a column's name and doc must be texts, and required true or false")
    return Field(_id(item["id"]), name, _read_type(item["type"], depth), required, doc, rest)


def _id(value: object) -> int:
    if type(value) is not int:
        raise _malformed("the id of a column must be a whole number")
    return value


def _malformed(reason: str) -> Invalid:
    return Invalid(f"The Iceberg schema is malformed: {reason}", kind="table")


def _read_type(item: Any, depth: int) -> Type:
    if isinstance(item, str):
        return item
    if depth > MAX_NESTING:
        raise Invalid(f"The Iceberg schema nests deeper than {MAX_NESTING} levels", kind="table")
    match item["type"]:
        case "struct":
            return Struct([_read_field(child, depth + 1) for child in item["fields"]])
        case "list":
            element = _read_type(item["element"], depth + 1)
            return ListOf(element_field(_id(item["element-id"]), element, item["element-required"]))
        case "map":
            key, value = _read_type(item["key"], depth + 1), _read_type(item["value"], depth + 1)
            return map_of(_id(item["key-id"]), key, _id(item["value-id"]), value, item["value-required"])
        case unknown:
            raise Invalid(f"The Iceberg schema has a type {quote(str(unknown))} that Iceberg does not define")


def element_field(id: int, type: Type, required: bool) -> Field:
    """The one field of a list."""
    return Field(id, "element", type, required)


def map_of(key_id: int, key: Type, value_id: int, value: Type, value_required: bool) -> MapOf:
    """A map; keys are always required."""
    return MapOf(Field(key_id, "key", key, True), Field(value_id, "value", value, value_required))


def write_struct(struct: Struct) -> dict[str, Any]:
    """The JSON of a struct."""
    return {"type": "struct", "fields": [_write_field(child) for child in struct.fields]}


def _write_field(item: Field) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": item.id,
        "name": item.name,
        "required": item.required,
        "type": _write_type(item.type),
    }
    if item.doc is not None:
        written["doc"] = item.doc
    return written | item.rest


def _write_type(type: Type) -> str | dict[str, Any]:
    match type:
        case Struct():
            return write_struct(type)
        case ListOf(element):
            return {
                "type": "list",
                "element-id": element.id,
                "element": _write_type(element.type),
                "element-required": element.required,
            }
        case MapOf(key, value):
            return {
                "type": "map",
                "key-id": key.id,
                "key": _write_type(key.type),
                "value-id": value.id,
                "value": _write_type(value.type),
                "value-required": value.required,
            }
        case _:
            return type


class Place(NamedTuple):
    """A field and its position: the struct that contains it (None for elements, keys and values), and its path."""

    field: Field
    holder: Struct | None
    path: tuple[str, ...]
    in_map_key: bool = False
    in_collection: bool = False


def places(struct: Struct) -> dict[str, Place]:
    """Every field by its full name, and by the short name that skips `element` and `value` before a struct.

    Raises Invalid when two fields would share a full name, or the schema nests too deep.
    """
    full_names: dict[str, Place] = {}
    short_names: dict[str, Place] = {}
    for place, short_path in _walk(struct, Place(Field(0, "", struct, True), None, ()), ()):
        name = ".".join(place.path)
        if name in full_names:
            raise Invalid(f"Two columns are called {quote(name)}", kind="column")
        full_names[name] = place
        short_names.setdefault(".".join(short_path), place)
    return short_names | full_names


def _walk(type: Type, parent: Place, short: tuple[str, ...]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    if len(parent.path) >= MAX_NESTING and not isinstance(type, str):
        raise Invalid(f"The schema nests deeper than {MAX_NESTING} levels", kind="column")
    match type:
        case Struct(fields):
            for child in fields:
                place = Place(child, type, (*parent.path, child.name), parent.in_map_key, parent.in_collection)
                yield place, (*short, child.name)
                yield from _walk(child.type, place, (*short, child.name))
        case ListOf(element):
            yield from _walk_item(element, parent, short, in_map_key=parent.in_map_key)
        case MapOf(key, value):
            yield from _walk_item(key, parent, short, in_map_key=True)
            yield from _walk_item(value, parent, short, in_map_key=parent.in_map_key)


def _walk_item(
    item: Field, parent: Place, short: tuple[str, ...], *, in_map_key: bool
) -> Iterator[tuple[Place, tuple[str, ...]]]:
    place = Place(item, None, (*parent.path, item.name), in_map_key, True)
    skipped = item.name != "key" and isinstance(item.type, Struct)
    inner = short if skipped else (*short, item.name)
    yield place, (*short, item.name)
    yield from _walk(item.type, place, inner)


def ids_within(item: Field) -> set[int]:
    """The ids of a field and of everything nested in it."""
    return {item.id} | {place.field.id for place, _ in _walk(item.type, Place(item, None, ()), ())}
