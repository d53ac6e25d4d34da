"""Column changes, applied one after the other to a draft of an Iceberg schema.

Source: Iceberg spec, "Schema Evolution": fields keep their ids, types only widen, new required fields need a default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from formats.iceberg import types
from formats.iceberg.fields import Field, ListOf, MapOf, Place, Struct, ids_within, places
from formats.native import tables as wire
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

PROMOTIONS = {("int", "long"), ("float", "double")}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass
class SchemaDraft:
    """A schema being changed, and the columns that must not be dropped."""

    struct: Struct
    last_column_id: int
    version: int
    identifier_ids: frozenset[int]
    partition_ids: frozenset[int]
    sort_ids: frozenset[int]
    dropped_any: bool = False

    def new_ids(self) -> Iterator[int]:
        """Fresh field ids; each counts as assigned once it is read."""
        for id in count(self.last_column_id + 1):
            self.last_column_id = id
            yield id

    def find(self, path: Sequence[str]) -> Place | None:
        """The field at a path, or None."""
        return places(self.struct).get(".".join(path))

    def changeable(self, path: Sequence[str], where: str) -> Place:
        """The field at a path. Raises Invalid when there is none, or it is part of a map's key."""
        place = self.find(path)
        if place is None:
            raise Invalid(f"{where}: no column {named(path)}", kind="column")
        if place.in_map_key:
            raise Invalid(f"{where}: {named(path)} is a map key, and those never change", kind="column")
        return place

    def member(self, path: Sequence[str], where: str) -> tuple[Field, list[Field]]:
        """The field at a path and its siblings. Raises Invalid also for a list's element or a map's value."""
        place = self.changeable(path, where)
        if place.holder is None:
            raise Invalid(f"{where}: {named(path)} is part of a list or map, not a field of a struct", kind="column")
        return place.field, place.holder.fields


def named(path: Sequence[str]) -> str:
    """A column's path for messages."""
    return quote(".".join(path))


def add_column(draft: SchemaDraft, change: wire.AddColumn, where: str) -> None:
    """Add a column, last unless the position says otherwise; existing rows read its default."""
    if change.auto_increment:
        raise Unsupported(f"{where}.autoIncrement: Iceberg does not count rows by itself", kind="column")
    *parent, name = change.field_name
    siblings = _struct_to_extend(draft, parent, f"{where}.fieldName").fields
    if any(sibling.name == name for sibling in siblings):
        raise Invalid(f"{where}.fieldName: {named(change.field_name)} is there already", kind="column")
    ids = draft.new_ids()
    id = next(ids)
    type = types.iceberg_type(change.type, ids, f"{where}.type", draft.version)
    default = types.default_value(change.default_value, type, f"{where}.defaultValue", draft.version)
    if default is None and not change.nullable:
        raise Invalid(
            f"{where}.nullable: {named(change.field_name)} needs a default to be required, for the rows there are",
            kind="column",
        )
    rest = {} if default is None else {"initial-default": default, "write-default": default}
    siblings.append(Field(id, name, type, not change.nullable, change.comment, rest))
    if change.position != "default":
        _move(siblings, siblings[-1], change.position, f"{where}.position")


def _struct_to_extend(draft: SchemaDraft, path: Sequence[str], where: str) -> Struct:
    if not path:
        return draft.struct
    type = draft.changeable(path, where).field.type
    if isinstance(type, ListOf):
        type = type.element.type
    elif isinstance(type, MapOf):
        type = type.value.type
    if not isinstance(type, Struct):
        raise Invalid(f"{where}: {named(path)} is no struct, so it takes no fields", kind="column")
    return type


def delete_column(draft: SchemaDraft, change: wire.DeleteColumn, where: str) -> None:
    """Drop a column with its nested fields, unless partitions, the sort order or the identifier use it."""
    if change.if_exists and draft.find(change.field_name) is None:
        return
    field, siblings = draft.member(change.field_name, f"{where}.fieldName")
    gone = ids_within(field)
    for users, what in (
        (draft.partition_ids, "the table is partitioned by"),
        (draft.sort_ids, "the table is sorted by"),
        (draft.identifier_ids, "rows are identified by"),
    ):
        if users & gone:
            raise Invalid(f"{where}.fieldName: {named(change.field_name)} is what {what}", kind="column")
    if siblings is draft.struct.fields and len(siblings) == 1:
        raise Invalid(f"{where}.fieldName: {named(change.field_name)} is the table's last column", kind="column")
    siblings[:] = [sibling for sibling in siblings if sibling is not field]
    draft.dropped_any = True


def rename_column(draft: SchemaDraft, change: wire.RenameColumn, where: str) -> None:
    """Rename a column."""
    field, siblings = draft.member(change.old_field_name, f"{where}.oldFieldName")
    if any(sibling.name == change.new_field_name for sibling in siblings if sibling is not field):
        raise Invalid(f"{where}.newFieldName: {quote(change.new_field_name)} is there already", kind="column")
    field.name = change.new_field_name


def update_type(draft: SchemaDraft, change: wire.UpdateColumnType, where: str) -> None:
    """Widen a column's type."""
    field = draft.changeable(change.field_name, f"{where}.fieldName").field
    new = types.iceberg_type(change.new_type, draft.new_ids(), f"{where}.newType", draft.version)
    if not isinstance(new, str) or not isinstance(field.type, str):
        raise Invalid(f"{where}.newType: only primitive types change, and only to primitive types", kind="column")
    if not _widens(field.type, new):
        raise Invalid(
            f"{where}.newType: {named(change.field_name)} cannot change from {types.native_type(field.type)} to "
            f"{types.native_type(new)}; Iceberg widens integer to long, float to double and decimals",
            kind="column",
        )
    field.type = new


def _widens(old: str, new: str) -> bool:
    if old == new or (old, new) in PROMOTIONS:
        return True
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if before is None or after is None:
        return False
    return before[2] == after[2] and int(before[1]) <= int(after[1])


def update_comment(draft: SchemaDraft, change: wire.UpdateColumnComment, where: str) -> None:
    """Replace a column's comment; None removes it."""
    draft.member(change.field_name, f"{where}.fieldName")[0].doc = change.new_comment


def update_position(draft: SchemaDraft, change: wire.UpdateColumnPosition, where: str) -> None:
    """Move a column among its siblings."""
    if change.new_position == "default":
        raise Unsupported(f"{where}.newPosition: Iceberg has no default position to move a column to", kind="column")
    field, siblings = draft.member(change.field_name, f"{where}.fieldName")
    _move(siblings, field, change.new_position, f"{where}.newPosition")


def _move(siblings: list[Field], field: Field, position: wire.After | str, where: str) -> None:
    others = [sibling for sibling in siblings if sibling is not field]
    target = 0
    if isinstance(position, wire.After):
        names = [sibling.name for sibling in others]
        if position.after not in names:
            raise Invalid(f"{where}: no other column {quote(position.after)} beside {quote(field.name)}", kind="column")
        target = names.index(position.after) + 1
    siblings[:] = [*others[:target], field, *others[target:]]


def update_nullability(draft: SchemaDraft, change: wire.UpdateColumnNullability, where: str) -> None:
    """Make a required column optional."""
    field = draft.changeable(change.field_name, f"{where}.fieldName").field
    if not change.nullable and not field.required:
        raise Invalid(
            f"{where}.nullable: {named(change.field_name)} may hold nulls already, so it cannot become required",
            kind="column",
        )
    if change.nullable and field.id in draft.identifier_ids:
        raise Invalid(f"{where}.nullable: rows are identified by {named(change.field_name)}", kind="column")
    field.required = not change.nullable


COLUMN_CHANGES: dict[type, Callable[[SchemaDraft, Any, str], None]] = {
    wire.AddColumn: add_column,
    wire.DeleteColumn: delete_column,
    wire.RenameColumn: rename_column,
    wire.UpdateColumnType: update_type,
    wire.UpdateColumnComment: update_comment,
    wire.UpdateColumnPosition: update_position,
    wire.UpdateColumnNullability: update_nullability,
}
