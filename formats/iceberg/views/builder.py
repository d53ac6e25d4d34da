"""Build Iceberg view metadata for new views, and apply a commit's updates to existing metadata.

As in the table builder, pure functions over JSON objects that never modify their arguments and preserve unknown fields.
Sources: Iceberg view spec; Iceberg REST specification, "ViewUpdate". Behaviour and messages follow
the reference implementation's metadata builder.
"""

from __future__ import annotations

from typing import Any

from formats.iceberg import properties, schemas
from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, as_object, as_text_map, get_int, get_object
from formats.iceberg.updates import Action, apply_each, assign_uuid, checked_location, checked_uuid, set_location
from formats.iceberg.views import security, versions
from metalake.errors import Invalid

FORMAT_VERSION = 1
NEWEST_TYPES = 3  # views allow the column types of every table format version
FIRST_SCHEMA = 0


def new_view_metadata(
    *,
    view_uuid: str,
    location: str,
    schema: dict[str, Any],
    version: dict[str, Any],
    properties: dict[str, str],
    now_ms: int,
) -> dict[str, Any]:
    """The metadata of a new view. The schema gets id 0 and the version id 1, ignoring the client's; column ids stay.

    `version` is the `view-version` of a create request. Raises Invalid or TooLarge.
    """
    wanted = as_text_map(properties, "properties")
    security.check_spelling(wanted)
    versions.history_size(wanted)
    schemas.check_schema(as_object(schema, "schema"), NEWEST_TYPES)
    first = versions.numbered(
        versions.checked(as_object(version, "view-version"), now_ms), versions.FIRST_VERSION, FIRST_SCHEMA
    )
    return {
        "view-uuid": checked_uuid(view_uuid),
        "format-version": FORMAT_VERSION,
        "location": checked_location(location),
        "schemas": [{**schema, "schema-id": FIRST_SCHEMA}],
        "current-version-id": versions.FIRST_VERSION,
        "versions": [first],
        "version-log": [{"timestamp-ms": first["timestamp-ms"], "version-id": versions.FIRST_VERSION}],
        "properties": wanted,
    }


def apply_view_updates(
    base: dict[str, Any], updates: list[dict[str, Any]], *, now_ms: int, may_drop_dialects: bool = False
) -> dict[str, Any]:
    """Apply the updates in order; returns `base` itself if nothing changes.

    A new current version must have every dialect of the previous one, unless `may_drop_dialects` or the view property
    `replace.drop-dialect.allowed` is set. Raises Invalid or TooLarge, naming the update.
    """
    draft = Draft(_filled_in(base), now_ms=now_ms)
    apply_each(draft, updates, ACTIONS)
    if not draft.changed:
        return base
    security.check_spelling(draft.metadata["properties"], base.get("properties") or {})
    versions.finish(draft, base, may_drop_dialects=may_drop_dialects)
    return draft.metadata


def run_by_invokers(base: dict[str, Any], *, now_ms: int) -> dict[str, Any]:
    """The metadata without Trino's owner, so that Trino runs it as SECURITY INVOKER; `base` itself if it has none."""
    draft = Draft(_filled_in(base), now_ms=now_ms)
    removals = list(security.noted(draft.metadata["properties"]))
    apply_each(draft, [{"action": "remove-properties", "removals": removals}], ACTIONS)
    return draft.metadata if draft.changed else base


def _filled_in(base: Json) -> Json:
    """The metadata with defaults for the empty fields that older writers omit."""
    empty: Json = {"schemas": [], "version-log": [], "properties": {}}
    return base | {key: value for key, value in empty.items() if base.get(key) is None}


def _upgrade_format_version(_draft: Draft, update: Json) -> None:
    wanted = get_int(update, "format-version")
    if wanted > FORMAT_VERSION:
        raise Invalid(f"Unsupported format version: {wanted}; the only one of views is {FORMAT_VERSION}")
    if wanted < FORMAT_VERSION:
        raise Invalid(f"Cannot downgrade v{FORMAT_VERSION} view to v{wanted}")


def _add_schema(draft: Draft, update: Json) -> None:
    """Add a schema, or reuse an equal one. The requested id is only a hint."""
    schema = get_object(update, "schema")
    schemas.check_schema(schema, NEWEST_TYPES)
    known, wanted = draft.known("schema", schemas.shape), schemas.shape(schema)
    if (equal := known.first(wanted)) is None:
        equal = known.next_id
        draft.add("schemas", {**schema, "schema-id": equal})
        known.add(wanted, equal)
    # An existing equal schema counts as last added too: it is what the client refers to by -1.
    draft.remember_added("schema", equal)


def _set_properties(draft: Draft, update: Json) -> None:
    properties.put_properties(draft, properties.changed_properties(draft, update))


ACTIONS: dict[str, Action] = {
    "assign-uuid": assign_uuid("view-uuid", "view"),
    "upgrade-format-version": _upgrade_format_version,
    "add-schema": _add_schema,
    "set-location": set_location,
    "set-properties": _set_properties,
    "remove-properties": properties.remove_properties,
    "add-view-version": versions.add_view_version,
    "set-current-view-version": versions.set_current_view_version,
}
