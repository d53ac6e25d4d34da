"""Statistics files of snapshots: at most one table-wide and one per-partition file each. Source: Iceberg spec, "Table
Statistics" and "Partition Statistics"."""

from __future__ import annotations

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, as_text_map, get_ints, get_long, get_object, get_objects, get_text, has
from metalake.errors import Invalid


def set_statistics(draft: Draft, update: Json) -> None:
    """Set or replace a snapshot's statistics file."""
    statistics = get_object(update, "statistics")
    _check_file(statistics)
    get_long(statistics, "file-footer-size-in-bytes", "statistics")
    for blob in get_objects(statistics, "blob-metadata", "statistics"):
        get_text(blob, "type", "blob-metadata")
        get_long(blob, "snapshot-id", "blob-metadata")
        get_long(blob, "sequence-number", "blob-metadata")
        get_ints(blob, "fields", "blob-metadata")
        if has(blob, "properties"):
            as_text_map(blob["properties"], "properties of blob-metadata")
    if has(update, "snapshot-id") and get_long(update, "snapshot-id") != statistics["snapshot-id"]:
        raise Invalid("snapshot-id differs from the snapshot-id of statistics")
    _replace(draft, "statistics", statistics)


def remove_statistics(draft: Draft, update: Json) -> None:
    """Remove a snapshot's statistics file, if it has one."""
    draft.drop("statistics", [get_long(update, "snapshot-id")])


def set_partition_statistics(draft: Draft, update: Json) -> None:
    """Set or replace a snapshot's partition statistics file."""
    statistics = get_object(update, "partition-statistics")
    _check_file(statistics)
    _replace(draft, "partition-statistics", statistics)


def remove_partition_statistics(draft: Draft, update: Json) -> None:
    """Remove a snapshot's partition statistics file, if it has one."""
    draft.drop("partition-statistics", [get_long(update, "snapshot-id")])


def _check_file(statistics: Json) -> None:
    get_long(statistics, "snapshot-id", "statistics")
    get_text(statistics, "statistics-path", "statistics")
    get_long(statistics, "file-size-in-bytes", "statistics")


def _replace(draft: Draft, key: str, statistics: Json) -> None:
    if draft.by_id(key).get(statistics["snapshot-id"]) != statistics:
        draft.drop(key, [statistics["snapshot-id"]])
        draft.add(key, statistics)
