"""Translate views between the native API and Iceberg.

An Iceberg view has one default catalog and namespace for all dialects, and no security mode except Trino's property.
Its comment is the property `comment`, as engines write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from formats.iceberg import fields, translate
from formats.iceberg.alterations import property_updates
from formats.iceberg.parsing import Json
from formats.iceberg.views.builder import FIRST_SCHEMA, NEWEST_TYPES
from formats.iceberg.views.security import noted, security_mode
from formats.iceberg.views.versions import (
    FIRST_VERSION,
    LAST_ADDED,
    current_version,
    schema_id_of,
    schema_of,
    sql_representations,
)
from formats.native.columns import Column
from formats.native.view_definition import Representation, ViewDefinition
from metalake.errors import Invalid, at
from metalake.hierarchy import HierarchicalSchema, configured_separator
from metalake.kinds import Kind
from metalake.wire import quote, read

COMMENT = "comment"
SUMMARY = {"engine-name": "metalake"}
NO_SECURITY_MODE = (
    "securityMode: an Iceberg view has none but what Trino notes in it; leave it out, or create the view with Trino"
)


def from_iceberg_view(metadata: Mapping[str, Any], version: Json | None = None) -> ViewDefinition:
    """The view at its current version or at `version`, always with the current properties and comment.

    `metadata` comes from `parse_view_metadata`; columns and default namespace may be missing.
    Raises Invalid if the current version is missing or a schema is malformed.
    """
    shown = version or current_version(metadata)
    columns = fields.read_struct(schema_of(metadata, shown)).fields
    schema = configured_separator().join(shown.get("default-namespace") or ()) or None
    properties = dict(metadata.get("properties") or {})
    comment = properties.pop(COMMENT, None)
    return ViewDefinition(
        representations=tuple(
            Representation(
                dialect=each["dialect"],
                sql=each["sql"],
                default_catalog=shown.get("default-catalog") or None,
                default_schema=schema,
            )
            for each in sql_representations(shown)
        ),
        columns=tuple(map(translate.native_column, columns)),
        security_mode=security_mode(properties),
        comment=comment,
        properties=properties,
    )


def to_iceberg_view(definition: ViewDefinition) -> tuple[Json, Json, dict[str, str]]:
    """The schema, version and properties of a new view for `new_view_metadata`; columns get new ids.

    Raises Invalid for what Iceberg views cannot store, Unsupported for a column type; both name the field.
    """
    for name in noted(definition.properties):
        raise Invalid(f"properties.{name}: is Trino's, which writes it when it creates a view", kind=Kind.VIEW)
    check_fits(definition)
    ids = count(len(definition.columns) + 1)
    columns = [_new_field(column, number + 1, ids, where) for number, (column, where) in enumerate(_read(definition))]
    version = {
        "version-id": FIRST_VERSION,
        "schema-id": FIRST_SCHEMA,
        "summary": SUMMARY,
        "default-namespace": _namespace(definition),
        "representations": [_representation(each, {}) for each in definition.representations],
    }
    if catalog := definition.default_catalog:
        version["default-catalog"] = catalog
    return {"schema-id": FIRST_SCHEMA, **fields.write_struct(fields.Struct(columns))}, version, _properties(definition)


def check_fits(definition: ViewDefinition) -> None:
    """Raise Invalid for what Iceberg views cannot store, naming the field and the remedy."""
    if definition.security_mode is not security_mode(definition.properties):
        raise Invalid(NO_SECURITY_MODE, kind=Kind.VIEW)
    if COMMENT in definition.properties:
        raise Invalid("properties.comment: is reserved; it is the view's comment", kind=Kind.VIEW)
    for position, each in enumerate(definition.representations):
        first = definition.representations[0]
        for field, one, other in (
            ("defaultCatalog", each.default_catalog, first.default_catalog),
            ("defaultSchema", each.default_schema, first.default_schema),
        ):
            if one != other:
                raise Invalid(
                    f"representations[{position}].{field}: is {_shown(one)}, and that of {quote(first.dialect)} is "
                    f"{_shown(other)}; an Iceberg view has one for all of its dialects: give all the same, and write "
                    "whole names in the SQL of the others",
                    kind=Kind.VIEW,
                )


def _shown(value: str | None) -> str:
    return "none" if value is None else quote(value)


def _namespace(definition: ViewDefinition) -> list[str]:
    if definition.default_schema is None:
        return []
    with at("representations[0].defaultSchema"):
        return list(HierarchicalSchema.parse(definition.default_schema).segments)


def _representation(wanted: Representation, before: Json) -> Json:
    """The representation as Iceberg JSON, keeping unknown fields of the dialect's previous one."""
    return {**before, "type": "sql", "sql": wanted.sql, "dialect": wanted.dialect}


def _properties(definition: ViewDefinition) -> dict[str, str]:
    comment = {} if definition.comment is None else {COMMENT: definition.comment}
    return {**definition.properties, **comment}


def _read(definition: ViewDefinition) -> Iterator[tuple[Column, str]]:
    """Each parsed column, and its path for messages."""
    for position, column in enumerate(definition.columns):
        where = f"columns[{position}]"
        with at(where):
            yield read(Column, column, kind=Kind.VIEW), where


def _new_field(column: Column, id: int, ids: Iterator[int], where: str) -> fields.Field:
    if column.default_value is not None:
        raise Invalid(f"{where}.defaultValue: a view's columns have no default; leave it out", kind=Kind.VIEW)
    return translate.column_field(column, id, ids, where, NEWEST_TYPES)


def updates_for(before: ViewDefinition, after: ViewDefinition, metadata: Mapping[str, Any]) -> list[Json]:
    """The metadata updates of one commit from `before`, as in `metadata`, to `after`; empty if they are equal.

    Columns are matched by name and keep their ids. Whether dialects may be dropped is up to who applies them.
    Raises Invalid for what Iceberg views cannot store, Unsupported for a column type; both name the field.
    """
    check_fits(after)
    known: dict[str, str] = metadata.get("properties") or {}
    updates = property_updates(dict.fromkeys(known, None) | _properties(after), known)
    if (after.representations, after.columns) != (before.representations, before.columns):
        updates += _version_updates(before, after, metadata)
    return updates


def _version_updates(before: ViewDefinition, after: ViewDefinition, metadata: Mapping[str, Any]) -> list[Json]:
    current = current_version(metadata)
    schema = schema_of(metadata, current) if after.columns == before.columns else _changed_schema(after, metadata)
    is_new = schema not in (metadata.get("schemas") or ())
    version = {key: value for key, value in current.items() if key not in ("version-id", "timestamp-ms")} | {
        "schema-id": LAST_ADDED if is_new else schema_id_of(schema),
        "summary": SUMMARY,
        "default-catalog": after.default_catalog,
        "default-namespace": _namespace_after(before, after, current),
        "representations": _representations_after(after, current),
    }
    return [
        *([{"action": "add-schema", "schema": {"type": "struct", **schema}}] if is_new else ()),
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": LAST_ADDED},
    ]


def _namespace_after(before: ViewDefinition, after: ViewDefinition, current: Json) -> list[str]:
    """The default namespace; if unchanged, the stored levels, since one may contain our separator."""
    if after.default_schema == before.default_schema:
        return current.get("default-namespace") or []
    return _namespace(after)


def is_respelled(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the default namespaces of the current versions differ, even if both map to one schema name here.

    To an engine, `["a:b"]` and `["a", "b"]` are different schemas.
    """
    was, now = (current_version(each).get("default-namespace") or [] for each in (before, after))
    return bool(was != now)


def _representations_after(after: ViewDefinition, current: Json) -> list[Json]:
    """The new SQL representations, plus the current ones of other types, which are preserved."""
    known = {each["dialect"].casefold(): each for each in sql_representations(current)}
    others = [each for each in current["representations"] if each not in known.values()]
    return [*(_representation(each, known.get(each.key, {})) for each in after.representations), *others]


def _changed_schema(after: ViewDefinition, metadata: Mapping[str, Any]) -> Json:
    """The schema with the new columns; those matched by name keep their ids and whatever is unchanged."""
    schema = schema_of(metadata, current_version(metadata))
    known = {field.name: field for field in fields.read_struct(schema).fields}
    ids = count(1 + max(_all_ids(metadata.get("schemas") or ()), default=0))
    columns = [_changed_field(column, known.get(column.name), ids, where) for column, where in _read(after)]
    # Identifier fields mean nothing in a view, and may refer to dropped columns.
    others = {key: value for key, value in schema.items() if key != "identifier-field-ids"}
    return others | fields.write_struct(fields.Struct(columns))


def _all_ids(schemas: Iterable[Json]) -> set[int]:
    return {id for schema in schemas for field in fields.read_struct(schema).fields for id in fields.ids_within(field)}


def _changed_field(column: Column, was: fields.Field | None, ids: Iterator[int], where: str) -> fields.Field:
    if was is None:
        return _new_field(column, next(ids), ids, where)
    shown = read(Column, translate.native_column(was))
    if column.type == shown.type and column.default_value == shown.default_value:
        return fields.Field(was.id, was.name, was.type, not column.nullable, column.comment, was.rest)
    return _new_field(column, was.id, ids, where)
