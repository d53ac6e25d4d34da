"""Snapshots, snapshot references (branches and tags) and the snapshot log.

Source of the rules: Iceberg spec, "Snapshots", "Snapshot References" and "Row Lineage"; messages as in the reference
implementation where it has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from formats.iceberg.defaults import MAIN, NO_SNAPSHOT
from formats.iceberg.draft import Draft
from formats.iceberg.parsing import (
    LONG_MAX,
    Json,
    as_text_map,
    as_whole,
    get_int,
    get_long,
    get_longs,
    get_object,
    get_text,
    get_texts,
    has,
)
from metalake.errors import Conflict, Invalid

ROW_LINEAGE_VERSION = 3
CLOCK_SKEW_MS = 60_000
OPERATIONS = ("append", "replace", "overwrite", "delete")


def add_snapshot(draft: Draft, update: Json) -> None:
    """Add a snapshot. Raises Conflict if it is based on stale metadata: the client must reload and retry."""
    snapshot = get_object(update, "snapshot")
    _check_shape(snapshot, draft.format_version)
    for key, name in (("schemas", "schema"), ("partition-specs", "partition spec"), ("sort-orders", "sort order")):
        if not draft.by_id(key):
            raise Invalid(f"Attempting to add a snapshot before a {name} is added")
    snapshot_id = snapshot["snapshot-id"]
    if snapshot_id in draft.by_id("snapshots"):
        raise Invalid(f"Snapshot already exists for id: {snapshot_id}")
    _advance_sequence_number(draft, snapshot)
    if draft.format_version >= ROW_LINEAGE_VERSION:
        _advance_row_id(draft, snapshot)
    draft.add("snapshots", snapshot)
    draft.added_snapshots[snapshot_id] = snapshot
    draft.updated_ms = snapshot["timestamp-ms"]


def set_snapshot_ref(draft: Draft, update: Json) -> None:
    """Point a branch or tag at a snapshot. Moving `main` sets the current snapshot and adds a snapshot log entry."""
    name = get_text(update, "ref-name")
    ref = _read_ref(name, update)
    if draft.metadata["refs"].get(name) == ref:
        return
    snapshot_id = ref["snapshot-id"]
    if snapshot_id not in draft.by_id("snapshots"):
        raise Invalid(f"Cannot set {name} to unknown snapshot: {snapshot_id}")
    if snapshot_id in draft.added_snapshots:
        draft.updated_ms = draft.added_snapshots[snapshot_id]["timestamp-ms"]
    if name == MAIN:
        draft.put("current-snapshot-id", snapshot_id)
        _log_current(draft, snapshot_id)
    _ref_names(draft).setdefault(snapshot_id, []).append(name)
    draft.edit_dict("refs")[name] = ref


def remove_snapshot_ref(draft: Draft, update: Json) -> None:
    """Drop a branch or tag; unknown names are ignored. Dropping `main` leaves the table empty."""
    _remove_refs(draft, [get_text(update, "ref-name")])


def remove_snapshots(draft: Draft, update: Json) -> None:
    """Remove snapshots with their statistics and references; unknown ids are ignored."""
    gone = draft.drop("snapshots", get_longs(update, "snapshot-ids"))
    if not gone:
        return
    draft.drop("statistics", gone)
    draft.drop("partition-statistics", gone)
    draft.snapshots_removed = True
    for snapshot_id in gone:
        names = _ref_names(draft).pop(snapshot_id, ())
        refs = draft.metadata["refs"]
        _remove_refs(draft, [name for name in names if name in refs and refs[name]["snapshot-id"] == snapshot_id])


def correct_snapshot_log(draft: Draft) -> None:
    """Drop log entries of snapshots that were current only within this commit, and all entries before a removed
    snapshot: a gap in the log would break time travel."""
    superseded = draft.added_mains - {draft.metadata.get("current-snapshot-id")}
    if not superseded and not draft.snapshots_removed:
        return
    corrected: list[Json] = []
    for entry in draft.metadata["snapshot-log"]:
        if entry["snapshot-id"] not in draft.by_id("snapshots"):
            corrected.clear()
        elif entry["snapshot-id"] not in superseded:
            corrected.append(entry)
    draft.put("snapshot-log", corrected)


def no_current_snapshot(format_version: int) -> int | None:
    """The current-snapshot-id of an empty table: null since version 3, -1 before, as older readers expect."""
    return None if format_version >= ROW_LINEAGE_VERSION else NO_SNAPSHOT


def _check_shape(snapshot: Json, format_version: int) -> None:
    get_long(snapshot, "snapshot-id", "the snapshot")
    get_long(snapshot, "timestamp-ms", "the snapshot")
    if format_version > 1 or not has(snapshot, "manifests"):
        get_text(snapshot, "manifest-list", "the snapshot")
    else:
        get_texts(snapshot, "manifests", "the snapshot")
    if format_version > 1 or has(snapshot, "summary"):
        summary = as_text_map(get_object(snapshot, "summary", "the snapshot"), "summary of the snapshot")
        if get_text(summary, "operation", "the snapshot's summary") not in OPERATIONS:
            raise Invalid(f"operation of the snapshot's summary must be one of {', '.join(OPERATIONS)}")
    for key in ("parent-snapshot-id", "sequence-number", "first-row-id", "added-rows"):
        if has(snapshot, key):
            get_long(snapshot, key, "the snapshot")
    if has(snapshot, "schema-id"):
        get_int(snapshot, "schema-id", "the snapshot")
    if has(snapshot, "key-id"):
        get_text(snapshot, "key-id", "the snapshot")
    if has(snapshot, "first-row-id") and not has(snapshot, "added-rows"):
        raise Invalid("Invalid added-rows (required when first-row-id is set): null")


def _advance_sequence_number(draft: Draft, snapshot: Json) -> None:
    number = snapshot.get("sequence-number") or 0
    if draft.format_version == 1:
        if number != 0:
            raise Invalid(f"Sequence number must be 0 in v1: {number}")
        return
    last = draft.metadata["last-sequence-number"]
    if number <= last and has(snapshot, "parent-snapshot-id"):
        raise Conflict(
            "Validation failed, please retry: "
            f"Cannot add snapshot with sequence number {number} older than last sequence number {last}"
        )
    draft.put("last-sequence-number", max(last, number))


def _advance_row_id(draft: Draft, snapshot: Json) -> None:
    if not has(snapshot, "first-row-id"):
        raise Invalid("Cannot add a snapshot: first-row-id is null")
    first, following = snapshot["first-row-id"], draft.metadata["next-row-id"]
    if first < following:
        raise Conflict(
            "Validation failed, please retry: "
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {following}"
        )
    draft.put("next-row-id", as_whole(first + snapshot["added-rows"], "first-row-id + added-rows", 0, LONG_MAX))


def _read_ref(name: str, update: Json) -> Json:
    kind = get_text(update, "type")
    if kind not in ("branch", "tag"):
        raise Invalid("type must be 'branch' or 'tag'")
    if name == MAIN and kind != "branch":
        raise Invalid("main must be a branch")
    get_long(update, "snapshot-id")
    for key in ("max-ref-age-ms", "max-snapshot-age-ms"):
        if has(update, key):
            get_long(update, key, minimum=1)
    if has(update, "min-snapshots-to-keep"):
        get_int(update, "min-snapshots-to-keep", minimum=1)
    if kind == "tag":
        for key in ("min-snapshots-to-keep", "max-snapshot-age-ms"):
            if has(update, key):
                raise Invalid(f"Tags do not support setting {key}")
    return {key: value for key, value in update.items() if key not in ("action", "ref-name") and value is not None}


def _log_current(draft: Draft, snapshot_id: int) -> None:
    log = draft.edit_list("snapshot-log")
    latest = log[-1]["timestamp-ms"] if log else 0
    if snapshot_id in draft.added_snapshots:
        draft.added_mains.add(snapshot_id)
        timestamp = draft.added_snapshots[snapshot_id]["timestamp-ms"]
        if timestamp < latest - CLOCK_SKEW_MS:
            raise Invalid(
                f"Invalid snapshot timestamp {timestamp}: over a minute before the last snapshot log entry {latest}"
            )
    else:
        # Our own clock: a writer's clock running ahead must not make every later rollback fail.
        timestamp = max(draft.now_ms if draft.updated_ms is None else draft.updated_ms, latest)
    log.append({"snapshot-id": snapshot_id, "timestamp-ms": timestamp})


def _ref_names(draft: Draft) -> dict[int, list[str]]:
    """Branch and tag names by snapshot id; a moved one is still listed under its old snapshot too."""
    if draft.ref_names is None:
        draft.ref_names = {}
        for name, ref in draft.metadata["refs"].items():
            draft.ref_names.setdefault(ref["snapshot-id"], []).append(name)
    return draft.ref_names


def _remove_refs(draft: Draft, names: Iterable[str]) -> None:
    for name in names:
        if name in draft.metadata["refs"]:
            del draft.edit_dict("refs")[name]
            if name == MAIN:
                draft.put("current-snapshot-id", no_current_snapshot(draft.format_version))
