"""Small tables that the metadata tests start from."""

from copy import deepcopy
from typing import Any

from formats.iceberg.builder import apply_updates, new_table_metadata

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
OTHER_UUID = "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94"
NOW = 1_700_000_000_000
Json = dict[str, Any]


# Any, where a test may send something wrong
def column(number: Any, name: Any, kind: Any = "long", *, required: Any = False, **more: Any) -> Json:
    return {"id": number, "name": name, "type": kind, "required": required, **more}


def schema(*columns: Json, **more: Any) -> Json:
    return {"type": "struct", "fields": list(columns), **more}


def struct(*columns: Json) -> Json:
    return {"type": "struct", "fields": list(columns)}


def list_of(number: int, element: Any, *, required: bool = True) -> Json:
    return {"type": "list", "element-id": number, "element": element, "element-required": required}


def map_of(key_id: int, key: Any, value_id: int, value: Any) -> Json:
    return {"type": "map", "key-id": key_id, "key": key, "value-id": value_id, "value": value, "value-required": False}


def partition_field(source: Any, transform: Any, name: Any, **more: Any) -> Json:
    return {"source-id": source, "transform": transform, "name": name, **more}


def sort_field(source: int, transform: str = "identity", direction: str = "asc", nulls: str = "nulls-first") -> Json:
    return {"source-id": source, "transform": transform, "direction": direction, "null-order": nulls}


EVENTS = schema(column(1, "id", required=True), column(2, "at", "timestamp"), column(3, "name", "string"))


def table(version: int = 2, **more: Any) -> Json:
    """Columns id, at and name (1 to 3), partitioned by day(at), not sorted, without a snapshot."""
    wanted: Json = {
        "table_uuid": UUID,
        "location": "s3://lake/events",
        "schema": EVENTS,
        "partition_spec": {"fields": [partition_field(2, "day", "at_day")]},
        "sort_order": None,
        "properties": {"owner": "ada"},
        "now_ms": NOW,
        **more,
    }
    wanted["properties"] = {**wanted["properties"], "format-version": str(version)}
    return new_table_metadata(**wanted)


def snapshot(number: int, *, sequence: Any = None, parent: Any = None, **more: Any) -> Json:
    made = {
        "snapshot-id": number,
        "timestamp-ms": NOW + number,
        "manifest-list": f"s3://lake/events/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **more,
    }
    if sequence is not None:
        made["sequence-number"] = sequence
    if parent is not None:
        made["parent-snapshot-id"] = parent
    return made


def add(made: Json) -> Json:
    return {"action": "add-snapshot", "snapshot": made}


def point(name: Any, number: Any, kind: Any = "branch", **more: Any) -> Json:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": number, **more}


def append(metadata: Json, number: int, **more: Any) -> Json:
    """The table after an append to main of snapshot `number`."""
    main = metadata["refs"].get("main")
    sequence = None if metadata["format-version"] == 1 else metadata["last-sequence-number"] + 1
    made = snapshot(number, sequence=sequence, parent=main and main["snapshot-id"], **more)
    return commit(metadata, add(made), point("main", number))


def commit(metadata: Json, *updates: Json, **more: Any) -> Json:
    """Apply updates and see to it that what was given stays as it was."""
    before, asked = deepcopy(metadata), deepcopy(updates)
    after = apply_updates(metadata, list(updates), **{"now_ms": NOW + 1_000_000, **more})
    assert metadata == before
    assert updates == asked
    return after
