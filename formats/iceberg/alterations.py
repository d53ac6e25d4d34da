"""Translates native alterations of a table to one Iceberg commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from formats.iceberg import fields
from formats.iceberg.column_changes import COLUMN_CHANGES, SchemaDraft
from formats.iceberg.transforms import source_ids
from formats.iceberg.translate import RESERVED, current_schema, default_sort_order, default_spec
from formats.native import tables as wire
from metalake.errors import Invalid, Unsupported

FIXED_AT_CREATION = ("format-version", "provider", "format")
LAST_ADDED = -1
REFUSED = {
    wire.UpdateColumnAutoIncrement: "Iceberg does not count rows by itself",
    wire.UpdateColumnDefaultValue: "the default of an Iceberg column is given when the column is added, and kept",
    wire.AddTableIndex: "Iceberg has no indexes",
    wire.DeleteTableIndex: "Iceberg has no indexes",
}


def updates_for(
    changes: Sequence[wire.TableUpdate | wire.KeepProperty], metadata: Mapping[str, Any], *, may_move: bool = False
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[str, str | None] | None]:
    """Native changes as the requirements and updates of one Iceberg commit, and the requested rename, if any.

    Changes are applied in order, each to the result of the previous ones; the commit has all or none of them. Changes
    without effect give an empty commit. With `may_move`, setting the property `location` moves the table.
    Raises Unsupported for what Iceberg cannot do, Invalid for a wrong change; both name the change. A rename must be
    the only change, since names are not part of the table's metadata.
    """
    renames = [change for change in changes if isinstance(change, wire.RenameTable)]
    if renames:
        if len(changes) > 1:
            raise Invalid("updates: a rename cannot be combined with other changes", kind="table")
        return [], [], (renames[0].new_name, renames[0].new_schema_name)
    draft = _draft(metadata)
    settings: dict[str, str | None] = {}
    for position, change in enumerate(changes):
        _apply(change, draft, settings, f"updates[{position}]", may_move)
    fields.places(draft.struct)  # refuses what the changes together made ambiguous or too deep
    location = settings.pop("location", None)
    updates = _schema_updates(draft, metadata)
    requirements = _requirements(draft, metadata, schema_changes=bool(updates))
    if location is not None and location != metadata.get("location"):
        updates.append({"action": "set-location", "location": location})
    updates += property_updates(settings, metadata.get("properties") or {})
    return (requirements, updates, None) if updates else ([], [], None)


def _draft(metadata: Mapping[str, Any]) -> SchemaDraft:
    schema = current_schema(metadata)
    return SchemaDraft(
        struct=fields.read_struct(schema),
        last_column_id=metadata["last-column-id"],
        version=metadata["format-version"],
        identifier_ids=frozenset(schema.get("identifier-field-ids") or ()),
        partition_ids=frozenset(source_ids(default_spec(metadata)["fields"])),
        sort_ids=frozenset(source_ids(default_sort_order(metadata)["fields"])),
    )


def _apply(
    change: wire.TableUpdate | wire.KeepProperty,
    draft: SchemaDraft,
    settings: dict[str, str | None],
    where: str,
    may_move: bool,
) -> None:
    """Make one change; a None in `settings` is a property to remove."""
    if reason := REFUSED.get(type(change)):
        raise Unsupported(f"{where}: {reason}", kind="table")
    match change:
        case wire.KeepProperty():
            pass
        case wire.UpdateComment():
            settings["comment"] = change.new_comment
        case wire.SetProperty():
            _require_settable(change.property, where, may_move)
            settings[change.property] = change.value
        case wire.RemoveProperty():
            _require_settable(change.property, where, may_move=False)
            settings[change.property] = None
        case _:
            COLUMN_CHANGES[type(change)](draft, change, where)


def _require_settable(name: str, where: str, may_move: bool) -> None:
    if name in RESERVED:
        raise Invalid(f"{where}.property: {name} is reserved; {RESERVED[name]}", kind="table")
    if name in FIXED_AT_CREATION:
        raise Invalid(f"{where}.property: {name} is decided at creation", kind="table")
    if name == "location" and not may_move:
        raise Invalid(f"{where}.property: location is decided at creation; this catalog moves no tables", kind="table")


def _schema_updates(draft: SchemaDraft, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    current = current_schema(metadata)
    changed = {**current, **fields.write_struct(draft.struct)}
    if _same_columns(changed, current):
        return []
    for known in metadata.get("schemas") or ():
        # Adding an equal schema adds nothing, so there would be no "last added" one to make current.
        if _same_columns(changed, known):
            return [{"action": "set-current-schema", "schema-id": known["schema-id"]}]
    changed["schema-id"] = 1 + max((known["schema-id"] for known in metadata.get("schemas") or ()), default=0)
    return [
        {"action": "add-schema", "schema": changed, "last-column-id": draft.last_column_id},
        {"action": "set-current-schema", "schema-id": LAST_ADDED},
    ]


def _same_columns(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Schemas are equal by their fields and identifiers, whatever their ids (Iceberg: Schema.sameSchema)."""
    return fields.read_struct(dict(one)) == fields.read_struct(dict(other)) and set(
        one.get("identifier-field-ids") or ()
    ) == set(other.get("identifier-field-ids") or ())


def _requirements(draft: SchemaDraft, metadata: Mapping[str, Any], *, schema_changes: bool) -> list[dict[str, Any]]:
    """The requirements that make the commit fail if the table has changed in a way that matters to the changes."""
    required: list[dict[str, Any]] = []
    if "table-uuid" in metadata:
        required.append({"type": "assert-table-uuid", "uuid": metadata["table-uuid"]})
    if schema_changes:
        required += [
            {"type": "assert-current-schema-id", "current-schema-id": metadata.get("current-schema-id", 0)},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": metadata["last-column-id"]},
        ]
    if draft.dropped_any:
        spec_id, order_id = metadata.get("default-spec-id", 0), metadata.get("default-sort-order-id", 0)
        required += [
            {"type": "assert-default-spec-id", "default-spec-id": spec_id},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": order_id},
        ]
    return required


def property_updates(settings: Mapping[str, str | None], current: Mapping[str, str]) -> list[dict[str, Any]]:
    """The updates that set these properties, and remove those that are None."""
    put = {name: value for name, value in settings.items() if value is not None and current.get(name) != value}
    removed = [name for name, value in settings.items() if value is None and name in current]
    updates: list[dict[str, Any]] = []
    if put:
        updates.append({"action": "set-properties", "updates": put})
    if removed:
        updates.append({"action": "remove-properties", "removals": removed})
    return updates
