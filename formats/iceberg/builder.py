"""Builds Iceberg table metadata: a new table's, and the next state of a table after a commit's updates.

Pure functions over JSON objects. They never change their arguments, and keep fields that they do not know, so that
fields of newer engines survive; the new metadata shares its unchanged parts with the old.
Sources: Iceberg spec, "Table Metadata"; Iceberg REST specification, "TableUpdate". Behaviour and messages follow the
reference implementation's metadata builder.
"""

from __future__ import annotations

from typing import Any

from formats.iceberg import encryption, partitioning, properties, schemas, snapshots, sorting, statistics
from formats.iceberg.defaults import V1_ONLY, fill_in, mirror_v1_fields
from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, as_list, as_object, as_text_map, get_int, has
from formats.iceberg.updates import Action, apply_each, assign_uuid, checked_location, checked_uuid, set_location
from metalake.errors import Invalid

DEFAULT_FORMAT_VERSION = 2
SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)


def new_table_metadata(
    *,
    table_uuid: str,
    location: str,
    schema: dict[str, Any],
    partition_spec: dict[str, Any] | None,
    sort_order: dict[str, Any] | None,
    properties: dict[str, str],
    now_ms: int,
) -> dict[str, Any]:
    """A new table's metadata. Columns and partition fields get fresh ids, whatever ids the client used; the property
    `format-version` chooses 1, 2 or 3 and, like all reserved properties, is not stored.

    Raises Invalid, saying what is wrong with the request.
    """
    given = as_text_map(properties, "properties")
    version = _new_table_version(given)
    schemas.check_schema(as_object(schema, "schema"), version)
    fresh_schema, fresh_ids = schemas.assign_fresh_ids(schema)
    index = schemas.index_schema(fresh_schema)
    spec = _fresh_spec(partitioning.UNPARTITIONED if partition_spec is None else partition_spec, fresh_ids, index)
    order = _fresh_order(sorting.UNSORTED if sort_order is None else sort_order, fresh_ids, index)

    metadata = _empty_metadata(version, now_ms) | {
        "table-uuid": checked_uuid(table_uuid),
        "location": checked_location(location),
        "schemas": [{**fresh_schema, "schema-id": 0}],
        "current-schema-id": 0,
        "last-column-id": index.highest_id,
        "partition-specs": [spec],
        "default-spec-id": spec["spec-id"],
        "last-partition-id": partitioning.last_field_id([spec]),
        "sort-orders": [order],
        "default-sort-order-id": order["order-id"],
        "properties": {**_NEW_TABLE_DEFAULTS, **_unreserved(given)},
    }
    if version == 1:
        mirror_v1_fields(metadata)
    return metadata


def apply_updates(
    base: dict[str, Any] | None,
    updates: list[dict[str, Any]],
    *,
    now_ms: int,
    previous_location: str | None = None,
) -> dict[str, Any]:
    """The metadata after all updates, applied in order; `base` itself if they change nothing. Without a base the
    updates create a table. `previous_location` is the metadata file of `base`, which is added to the metadata log.

    Raises Invalid, saying which update is wrong and why, or Conflict when the commit was prepared on an older state.
    """
    as_list(updates, "updates")
    draft = Draft(_creation_base(updates, now_ms) if base is None else fill_in(base), now_ms=now_ms)
    apply_each(draft, updates, ACTIONS)
    if base is not None and not draft.changed:
        return base
    _finish(draft, base, previous_location)
    return draft.metadata


def _upgrade_format_version(draft: Draft, update: Json) -> None:
    version, current = get_int(update, "format-version"), draft.format_version
    if version > SUPPORTED_FORMAT_VERSIONS[-1]:
        raise Invalid(
            "Cannot upgrade table to unsupported format version: "
            f"v{version} (supported: v{SUPPORTED_FORMAT_VERSIONS[-1]})"
        )
    if version < current:
        raise Invalid(f"Cannot downgrade v{current} table to v{version}")
    if version == current:
        return
    draft.put("format-version", version)
    for key in V1_ONLY:
        draft.metadata.pop(key, None)
    draft.metadata = fill_in(draft.metadata)
    if not draft.metadata["refs"].get("main"):
        draft.put("current-snapshot-id", snapshots.no_current_snapshot(version))


ACTIONS: dict[str, Action] = {
    "assign-uuid": assign_uuid("table-uuid", "table"),
    "upgrade-format-version": _upgrade_format_version,
    "add-schema": schemas.add_schema,
    "set-current-schema": schemas.set_current_schema,
    "remove-schemas": schemas.remove_schemas,
    "add-spec": partitioning.add_spec,
    "set-default-spec": partitioning.set_default_spec,
    "remove-partition-specs": partitioning.remove_partition_specs,
    "add-sort-order": sorting.add_sort_order,
    "set-default-sort-order": sorting.set_default_sort_order,
    "add-snapshot": snapshots.add_snapshot,
    "set-snapshot-ref": snapshots.set_snapshot_ref,
    "remove-snapshots": snapshots.remove_snapshots,
    "remove-snapshot-ref": snapshots.remove_snapshot_ref,
    "set-location": set_location,
    "set-properties": properties.set_properties,
    "remove-properties": properties.remove_properties,
    "set-statistics": statistics.set_statistics,
    "remove-statistics": statistics.remove_statistics,
    "set-partition-statistics": statistics.set_partition_statistics,
    "remove-partition-statistics": statistics.remove_partition_statistics,
    "add-encryption-key": encryption.add_encryption_key,
    "remove-encryption-key": encryption.remove_encryption_key,
}

_REQUIRED = {
    "table-uuid": "assign-uuid",
    "location": "set-location",
    "current-schema-id": "set-current-schema",
    "default-spec-id": "set-default-spec",
    "default-sort-order-id": "set-default-sort-order",
}

# The keyword argument `properties` hides the module inside new_table_metadata.
_NEW_TABLE_DEFAULTS = properties.NEW_TABLE_DEFAULTS
_unreserved = properties.unreserved


def _finish(draft: Draft, base: Json | None, previous_location: str | None) -> None:
    metadata = draft.metadata
    if base is None:
        for key, action in _REQUIRED.items():
            if not has(metadata, key):
                raise Invalid(f"A new table needs a {key}: send {action}")
    draft.settle()
    if draft.layout_changed:
        _check_layout(draft)
    snapshots.correct_snapshot_log(draft)
    updated_ms = draft.now_ms if draft.updated_ms is None else draft.updated_ms
    # The time never goes back: readers refuse metadata older than its own log, and writers' clocks differ.
    metadata["last-updated-ms"] = updated_ms if base is None else max(updated_ms, base["last-updated-ms"])
    if metadata["format-version"] == 1:
        mirror_v1_fields(metadata)
    if base is not None and previous_location is not None:
        entry = {"metadata-file": previous_location, "timestamp-ms": base["last-updated-ms"]}
        metadata["metadata-log"] = [*metadata["metadata-log"], entry][-_metadata_log_size(metadata) :]


def _check_layout(draft: Draft) -> None:
    """Refuse, as Java does, a current schema that lacks source columns of the default spec or sort order. Older specs
    may lack theirs, since only old data uses them."""
    metadata = draft.metadata
    index = schemas.current_schema_index(draft)
    for spec in metadata["partition-specs"]:
        if spec["spec-id"] == metadata["default-spec-id"]:
            partitioning.check_sources(spec["fields"], index)
    for order in metadata["sort-orders"]:
        if order["order-id"] == metadata["default-sort-order-id"]:
            sorting.check_sources(order["fields"], index)


def _metadata_log_size(metadata: Json) -> int:
    size = properties.whole_property(
        metadata["properties"], properties.PREVIOUS_VERSIONS_MAX, properties.PREVIOUS_VERSIONS_MAX_DEFAULT
    )
    return max(1, size)


def _empty_metadata(format_version: int, now_ms: int) -> Json:
    metadata: Json = {
        "format-version": format_version,
        "last-updated-ms": now_ms,
        "last-column-id": 0,
        "schemas": [],
        "partition-specs": [],
        "last-partition-id": partitioning.NO_FIELD_ID,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": snapshots.no_current_snapshot(format_version),
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    if format_version >= 2:
        metadata["last-sequence-number"] = 0
    if format_version >= 3:
        metadata["next-row-id"] = 0
    return metadata


def _creation_base(updates: list[Any], now_ms: int) -> Json:
    """An empty table of the version that the updates request, which may be lower than the default."""
    for update in updates:
        if isinstance(update, dict) and update.get("action") == "upgrade-format-version":
            version = update.get("format-version")
            if type(version) is int and version in SUPPORTED_FORMAT_VERSIONS:
                return _empty_metadata(version, now_ms)
            break  # a wrong version, which is refused when this update is applied
    return _empty_metadata(DEFAULT_FORMAT_VERSION, now_ms)


def _new_table_version(given: dict[str, str]) -> int:
    version = properties.whole_property(given, properties.FORMAT_VERSION, DEFAULT_FORMAT_VERSION)
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise Invalid(f"Unsupported format version: v{version} (supported: v{SUPPORTED_FORMAT_VERSIONS[-1]})")
    return version


def _fresh_spec(spec: Json, fresh_ids: dict[int, int], index: schemas.SchemaIndex) -> Json:
    fields = [
        {**field, "source-id": _fresh_source(field, fresh_ids, "partition")}
        for field in partitioning.read_fields(as_object(spec, "partition-spec"))
    ]
    partitioning.check_names(fields, index)
    partitioning.check_sources(fields, index)
    return {**spec, "spec-id": 0, "fields": partitioning.number_from_start(fields)}


def _fresh_order(order: Json, fresh_ids: dict[int, int], index: schemas.SchemaIndex) -> Json:
    fields = [
        {**field, "source-id": _fresh_source(field, fresh_ids, "sort")}
        for field in sorting.read_fields(as_object(order, "write-order"))
    ]
    sorting.check_sources(fields, index)
    order_id = sorting.FIRST_ORDER_ID if fields else sorting.UNSORTED["order-id"]
    return {**order, "order-id": order_id, "fields": fields}


def _fresh_source(field: Json, fresh_ids: dict[int, int], kind: str) -> int:
    source_id = field["source-id"]
    if source_id not in fresh_ids:
        raise Invalid(f"Cannot find source column for {kind} field: {field['transform']}({source_id})")
    return fresh_ids[source_id]
