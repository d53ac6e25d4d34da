"""Iceberg schemas: index, validate and compare them, and assign fresh column ids.

Source of the rules: Iceberg spec, "Schemas and Data Types", "Column IDs" and "Identifier Field IDs"; the messages
are those of the reference implementation where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import (
    Json,
    as_object,
    get_bool,
    get_int,
    get_ints,
    get_object,
    get_objects,
    get_text,
    has,
    json_kind,
)
from formats.iceberg.primitives import FIRST_FORMAT_VERSION, check_default, parse_primitive
from metalake.errors import Invalid

MAX_DEPTH = 64
DEFAULTS_FORMAT_VERSION = 3
NESTED = frozenset({"struct", "list", "map"})
DEFAULTS = ("initial-default", "write-default")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or the element of a list, or the key or value of a map."""

    id: int
    name: str  # the full name: "address.street", "tags.element"
    kind: str  # "long", "decimal", "struct", ...
    type: str  # as text, with parameters
    required: bool
    parent: int | None
    defaulted: bool = False


@dataclass(slots=True)
class SchemaIndex:
    """The columns of one schema, at every level, by id and by full name."""

    columns: dict[int, Column] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)

    @property
    def highest_id(self) -> int:
        return max(self.columns, default=0)

    def ancestors(self, column: Column) -> Iterator[Column]:
        """The columns that contain this one, nearest first."""
        while column.parent is not None:
            column = self.columns[column.parent]
            yield column

    def add(self, column: Column) -> None:
        if column.id in self.columns:
            raise Invalid(
                f"Invalid schema: column id {column.id} is used by {self.columns[column.id].name} and {column.name}"
            )
        if column.name in self.ids:
            raise Invalid(
                f"Invalid schema: multiple columns named {column.name}: {self.ids[column.name]} and {column.id}"
            )
        self.columns[column.id] = column
        self.ids[column.name] = column.id


def index_schema(schema: Json) -> SchemaIndex:
    """Every column of a schema. Raises Invalid for malformed or unknown types, repeated ids or names, deep nesting."""
    if schema.get("type") != "struct":
        raise Invalid("type of the schema must be 'struct'")
    index = SchemaIndex()
    _index_struct(schema, "", None, 1, index)
    return index


def check_schema(schema: Json, format_version: int) -> SchemaIndex:
    """Index a client's schema. Raises Invalid for types that the format version lacks, and for wrong identifiers."""
    index = index_schema(schema)
    for column in index.columns.values():
        first = FIRST_FORMAT_VERSION.get(column.kind, 1)
        if format_version < first:
            raise Invalid(
                f"Invalid schema for v{format_version}: Invalid type for {column.name}: "
                f"{column.type} is not supported until v{first}"
            )
        if column.defaulted and format_version < DEFAULTS_FORMAT_VERSION:
            raise Invalid(
                f"Invalid schema for v{format_version}: Invalid initial default for {column.name}: "
                f"non-null default is not supported until v{DEFAULTS_FORMAT_VERSION}"
            )
    if has(schema, "schema-id"):
        get_int(schema, "schema-id")
    if has(schema, "identifier-field-ids"):
        for column_id in get_ints(schema, "identifier-field-ids"):
            _check_identifier(column_id, index)
    return index


def shape(schema: Json) -> str:
    """A string that schemas share which are equal except for their ids."""
    return json.dumps(_comparable(schema), sort_keys=True)


def assign_fresh_ids(schema: Json) -> tuple[Json, dict[int, int]]:
    """The schema with columns numbered from 1, and old id -> new id. A level is numbered before what is nested in it,
    as the reference implementation does. Expects a checked schema."""
    numbers = count(1)
    fresh_of: dict[int, int] = {}

    def number(old: int) -> int:
        fresh_of[old] = next(numbers)
        return fresh_of[old]

    def renumber_struct(struct: Json) -> Json:
        fields = [dict(each, id=number(each["id"])) for each in struct["fields"]]
        return {**struct, "fields": [dict(each, type=renumber(each["type"])) for each in fields]}

    def renumber(kind: Any) -> Any:
        if isinstance(kind, str):
            return kind
        if kind["type"] == "struct":
            return renumber_struct(kind)
        if kind["type"] == "list":
            numbered = {**kind, "element-id": number(kind["element-id"])}
            return {**numbered, "element": renumber(kind["element"])}
        numbered = {**kind, "key-id": number(kind["key-id"]), "value-id": number(kind["value-id"])}
        return {**numbered, "key": renumber(kind["key"]), "value": renumber(kind["value"])}

    fresh = renumber_struct(schema)
    if has(schema, "identifier-field-ids"):
        fresh["identifier-field-ids"] = [fresh_of[old] for old in schema["identifier-field-ids"]]
    return fresh, fresh_of


def add_schema(draft: Draft, update: Json) -> None:
    """Add a schema, or reuse an equal one. The id in the body is only a hint."""
    schema = get_object(update, "schema")
    index = check_schema(schema, draft.format_version)
    last_column_id = max(draft.metadata["last-column-id"], index.highest_id)
    if has(update, "last-column-id"):
        last_column_id = max(last_column_id, get_int(update, "last-column-id"))

    known, wanted = draft.known("schema", shape), shape(schema)
    if (equal := known.first(wanted)) is not None:
        if draft.put("last-column-id", last_column_id):
            draft.remember_added("schema", equal)
        draft.remember_reused("schema", equal)
        return
    schema_id = max(draft.metadata.get("current-schema-id", 0), known.next_id)
    draft.put("last-column-id", last_column_id)
    draft.add("schemas", {**schema, "schema-id": schema_id})
    known.add(wanted, schema_id)
    draft.remember_added("schema", schema_id)


def set_current_schema(draft: Draft, update: Json) -> None:
    """Make a schema current; -1 is the one last added by this request."""
    draft.make_current("schema", get_int(update, "schema-id"), "current-schema-id", "current schema")


def remove_schemas(draft: Draft, update: Json) -> None:
    """Remove schemas that are no longer needed; unknown ids are ignored."""
    draft.remove("schema", get_ints(update, "schema-ids"), "current-schema-id", "current schema")


def current_schema_index(draft: Draft) -> SchemaIndex:
    """The columns of the current schema; in a new table without one, those of the schema added last.

    Raises Invalid when there is neither.
    """
    current = draft.metadata.get("current-schema-id")
    known = draft.by_id("schemas")
    if current is None and known:
        current = draft.last_added("schema")  # DuckDB makes its schema current after the spec and the order
    if current not in known:
        raise Invalid("There is no schema yet: add one first")
    if draft.indexed is None or draft.indexed[0] is not known[current]:
        draft.indexed = known[current], index_schema(known[current])
    index: SchemaIndex = draft.indexed[1]
    return index


def _index_struct(struct: Json, prefix: str, parent: int | None, depth: int, index: SchemaIndex) -> None:
    where = f"struct {prefix[:-1]}" if prefix else "the schema"
    for each in get_objects(struct, "fields", where):
        name = prefix + get_text(each, "name", f"a column of {where}")
        if has(each, "doc"):
            get_text(each, "doc", f"column {name}")
        column = _index_type(
            each.get("type"),
            get_int(each, "id", f"column {name}", minimum=0),
            name,
            get_bool(each, "required", f"column {name}"),
            parent,
            depth,
            index,
            defaulted=any(has(each, default) for default in DEFAULTS),
        )
        for default in DEFAULTS:
            if has(each, default):
                check_default(each[default], column.kind, f"{default} of column {name}")


def _index_type(
    kind: object,
    column_id: int,
    name: str,
    required: bool,
    parent: int | None,
    depth: int,
    index: SchemaIndex,
    *,
    defaulted: bool = False,
) -> Column:
    if depth > MAX_DEPTH:
        raise Invalid(f"Invalid schema: columns are nested more than {MAX_DEPTH} levels deep")
    if isinstance(kind, str):
        try:
            primitive = parse_primitive(kind)
        except Invalid as error:
            raise Invalid(f"{error.message} of column {name}") from error
        if primitive.kind == "unknown" and required:
            raise Invalid(f"column {name} of type unknown must be optional")
        column = Column(column_id, name, primitive.kind, primitive.text, required, parent, defaulted)
        index.add(column)
        return column

    nested = as_object(kind, f"type of column {name}")
    if nested.get("type") not in ("struct", "list", "map"):
        type_name = nested.get("type")
        shown = repr(type_name[:100]) if isinstance(type_name, str) else json_kind(type_name)
        raise Invalid(f"Unknown or malformed type {shown} of column {name}")
    column = Column(column_id, name, nested["type"], nested["type"], required, parent, defaulted)
    index.add(column)
    if column.kind == "struct":
        _index_struct(nested, f"{name}.", column_id, depth + 1, index)
    elif column.kind == "list":
        _index_part(nested, "element", get_bool(nested, "element-required", f"list {name}"), column, depth, index)
    else:
        _index_part(nested, "key", True, column, depth, index)
        _index_part(nested, "value", get_bool(nested, "value-required", f"map {name}"), column, depth, index)
    return column


def _index_part(nested: Json, part: str, required: bool, owner: Column, depth: int, index: SchemaIndex) -> None:
    part_id = get_int(nested, f"{part}-id", f"{owner.kind} {owner.name}", minimum=0)
    _index_type(nested.get(part), part_id, f"{owner.name}.{part}", required, owner.id, depth + 1, index)


def _check_identifier(column_id: int, index: SchemaIndex) -> None:
    column = index.columns.get(column_id)
    if column is None:
        raise Invalid(f"Cannot add fieldId {column_id} as an identifier field: field does not exist")
    refusal = f"Cannot add field {column.name} as an identifier field"
    if column.kind in NESTED or column.kind == "variant":
        raise Invalid(f"{refusal}: not a primitive type field")
    if not column.required:
        raise Invalid(f"{refusal}: not a required field")
    if column.kind in ("float", "double"):
        raise Invalid(f"{refusal}: must not be float or double field")
    for ancestor in index.ancestors(column):
        if ancestor.kind != "struct":
            raise Invalid(f"{refusal}: must not be nested in {ancestor.kind} {ancestor.name}")
        if not ancestor.required:
            raise Invalid(f"{refusal}: must not be nested in an optional field {ancestor.name}")


def _comparable(node: Any, key: str = "") -> Any:
    """A schema without its id, nulls and spelling variants, so that equality means the same columns."""
    if isinstance(node, dict):
        stated = {name: value for name, value in node.items() if value is not None and name != "schema-id"}
        if stated.get("identifier-field-ids") == []:
            del stated["identifier-field-ids"]
        return {name: _comparable(value, name) for name, value in stated.items()}
    if key == "identifier-field-ids" and isinstance(node, list):
        return sorted(map(str, node))
    if isinstance(node, list):
        return [_comparable(value) for value in node]
    if isinstance(node, str) and key in ("type", "element", "key", "value") and node not in NESTED:
        try:
            return parse_primitive(node).text
        except Invalid:
            return node  # a type of a newer engine in the stored metadata
    return node
