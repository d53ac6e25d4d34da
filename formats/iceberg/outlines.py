"""Summaries of a table's metadata for pages: its columns, its snapshots, and how its schema changed.

Source: Iceberg spec, "Table Metadata Fields", "Snapshots" and appendix C. Metadata may come from other writers, so
malformed parts are skipped and never raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from formats.iceberg.fields import MAX_NESTING
from formats.native.outlines import ColumnOutline, Row, rows_of

MOST_SNAPSHOTS = 100
MOST_SCHEMAS = 100
MOST_CHANGES = 20  # of one schema
Json = dict[str, Any]
Schemas = Mapping[int | None, Json]


@dataclass(frozen=True)
class Amount:
    """Rows or files that a snapshot added and deleted, and its total; None if its summary does not say."""

    added: int | None
    deleted: int | None
    total: int | None


@dataclass(frozen=True)
class SnapshotOutline:
    """One snapshot; `refs` are its branches and tags, `schema_changes` the differences from its parent as sentences.

    `at` is None for a time out of range.
    """

    id: int | None
    at: datetime | None
    operation: str
    parent_id: int | None
    rows: Amount
    files: Amount
    refs: tuple[str, ...]
    is_current: bool
    schema_changes: tuple[str, ...]


@dataclass(frozen=True)
class SchemaOutline:
    """One schema; `changes` are the differences from the previous one as sentences, `first_used` when its oldest
    snapshot was committed."""

    id: int | None
    column_count: int
    is_current: bool
    changes: tuple[str, ...]
    first_used: datetime | None


@dataclass(frozen=True)
class Versions:
    """The newest snapshots and schemas of a table, newest first, and the total numbers."""

    snapshots: tuple[SnapshotOutline, ...]
    snapshot_count: int
    schemas: tuple[SchemaOutline, ...]
    schema_count: int


def current_columns(metadata: Json) -> tuple[ColumnOutline, ...]:
    """The columns of the current schema; none if the metadata has no such schema."""
    return outline_struct(_schemas(metadata).get(_whole(metadata.get("current-schema-id")), {}))


@dataclass(frozen=True)
class Contents:
    """What a table holds as of its current snapshot; None where the summary does not say. `size` is in bytes."""

    rows: int | None
    size: int | None
    files: int | None
    at: datetime | None
    operation: str


def contents_of(metadata: Json) -> Contents | None:
    """The contents by the summary of the current snapshot; None without one.

    Source: Iceberg spec, "Optional Snapshot Summary Fields".
    """
    current = _whole(metadata.get("current-snapshot-id"))
    for snapshot in _objects(metadata, "snapshots"):
        if current is not None and _whole(snapshot.get("snapshot-id")) == current:
            summary = _object(snapshot, "summary")
            return Contents(
                rows=_whole(summary.get("total-records")),
                size=_whole(summary.get("total-files-size")),
                files=_whole(summary.get("total-data-files")),
                at=_moment(snapshot.get("timestamp-ms")),
                operation=str(summary.get("operation") or ""),
            )
    return None


def outline_struct(struct: Json, depth: int = 0) -> tuple[ColumnOutline, ...]:
    """The columns of a schema, or the fields of a struct; fields nested too deep are left out."""
    return tuple(
        ColumnOutline(
            name=str(field.get("name")),
            type=_type_text(field.get("type"), depth),
            required=bool(field.get("required")),
            comment=str(field.get("doc") or ""),
            id=_whole(field.get("id")),
            fields=_nested(field.get("type"), depth + 1),
        )
        for field in _objects(struct, "fields")
    )


def _nested(type_: Any, depth: int) -> tuple[ColumnOutline, ...]:
    if not isinstance(type_, dict) or depth > MAX_NESTING:
        return ()
    match type_.get("type"):
        case "struct":
            return outline_struct(type_, depth)
        case "list":
            return _nested(type_.get("element"), depth + 1)
        case "map":
            return (*_nested(type_.get("key"), depth + 1), *_nested(type_.get("value"), depth + 1))
    return ()


def _type_text(type_: Any, depth: int) -> str:
    if not isinstance(type_, dict):
        return str(type_)
    if depth > MAX_NESTING:
        return "…"
    match type_.get("type"):
        case "list":
            return f"list<{_type_text(type_.get('element'), depth + 1)}>"
        case "map":
            key, value = (_type_text(type_.get(part), depth + 1) for part in ("key", "value"))
            return f"map<{key}, {value}>"
    return str(type_.get("type"))


def outline_versions(metadata: Json) -> Versions:
    """The newest snapshots and schemas that the metadata lists."""
    snapshots = sorted(_objects(metadata, "snapshots"), key=_age)
    by_id = {_whole(snapshot.get("snapshot-id")): snapshot for snapshot in snapshots}
    schemas = _schemas(metadata)
    changes = _Changes(schemas)
    refs = _refs(metadata)

    def outline(snapshot: Json) -> SnapshotOutline:
        id, parent_id = _whole(snapshot.get("snapshot-id")), _whole(snapshot.get("parent-snapshot-id"))
        parent = by_id.get(parent_id, {})
        return SnapshotOutline(
            id=id,
            at=_moment(snapshot.get("timestamp-ms")),
            operation=str(_object(snapshot, "summary").get("operation") or ""),
            parent_id=parent_id,
            rows=_amount(snapshot, "records"),
            files=_amount(snapshot, "data-files"),
            refs=tuple(refs.get(id, ())),
            is_current=id is not None and id == _whole(metadata.get("current-snapshot-id")),
            schema_changes=changes.between(_schema_id(parent), _schema_id(snapshot)),
        )

    return Versions(
        snapshots=tuple(map(outline, snapshots[: -MOST_SNAPSHOTS - 1 : -1])),
        snapshot_count=len(snapshots),
        schemas=_outline_schemas(metadata, schemas, changes, snapshots),
        schema_count=len(schemas),
    )


def _outline_schemas(
    metadata: Json, schemas: Schemas, changes: _Changes, snapshots: list[Json]
) -> tuple[SchemaOutline, ...]:
    first_used: dict[int | None, datetime | None] = {}
    for snapshot in snapshots:
        first_used.setdefault(_schema_id(snapshot), _moment(snapshot.get("timestamp-ms")))
    ids = list(schemas)
    outlined = [
        SchemaOutline(
            id=id,
            column_count=len(_objects(schemas[id], "fields")),
            is_current=id == _whole(metadata.get("current-schema-id")),
            changes=changes.between(ids[place - 1], id) if place else (),
            first_used=first_used.get(id),
        )
        for place, id in list(enumerate(ids))[-MOST_SCHEMAS:]
    ]
    return tuple(reversed(outlined))


class _Changes:
    """The differences between schemas of a table, as sentences; each pair is compared once."""

    def __init__(self, schemas: Schemas) -> None:
        self.schemas = schemas
        self.compared: dict[tuple[int | None, int | None], tuple[str, ...]] = {}

    def between(self, before: int | None, after: int | None) -> tuple[str, ...]:
        if before == after or before not in self.schemas or after not in self.schemas:
            return ()
        pair = before, after
        if pair not in self.compared:
            self.compared[pair] = tuple(_compare(self.schemas[before], self.schemas[after]))
        return self.compared[pair]


def _compare(before: Json, after: Json) -> list[str]:
    old, new = _by_id(before), _by_id(after)
    changes = [f"dropped {_path(old[id])}" for id in old if id not in new]
    for id, row in new.items():
        changes += [f"added {_path(row)} {row.column.type}"] if id not in old else _compare_column(old[id], row)
    if not changes and list(old) != list(new):
        changes = ["the order of columns"]
    more = len(changes) - MOST_CHANGES
    return [*changes[:MOST_CHANGES], f"and {more} more changes"] if more > 0 else changes


def _compare_column(old: Row, new: Row) -> list[str]:
    was, now, path = old.column, new.column, _path(new)
    changes = []
    if was.name != now.name:
        changes.append(f"renamed {_path(old)} to {now.name}")
    if was.type != now.type:
        changes.append(f"{path} from {was.type} to {now.type}")
    if was.required != now.required:
        changes.append(f"{path} {'required' if now.required else 'optional'}")
    if was.comment != now.comment:
        changes.append(f"the comment of {path}")
    return changes


def _by_id(schema: Json) -> dict[int | None, Row]:
    return {row.column.id: row for row in rows_of(outline_struct(schema))}


def _path(row: Row) -> str:
    return ".".join(row.path)


def _schemas(metadata: Json) -> Schemas:
    """The schemas by id, the oldest first; version 1 may only have the current one."""
    listed = _objects(metadata, "schemas") or [_object(metadata, "schema")]
    return {_schema_id(schema): schema for schema in listed}


def _schema_id(of: Json) -> int | None:
    return _whole(of.get("schema-id"))


def _refs(metadata: Json) -> dict[int | None, list[str]]:
    refs: dict[int | None, list[str]] = {}
    for name, ref in sorted(_object(metadata, "refs").items()):
        if isinstance(ref, dict):
            refs.setdefault(_whole(ref.get("snapshot-id")), []).append(name)
    return refs


def _object(of: Json, key: str) -> Json:
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def _objects(of: Json, key: str) -> list[Json]:
    values = of.get(key)
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _age(snapshot: Json) -> tuple[int, int]:
    return _whole(snapshot.get("timestamp-ms")) or 0, _whole(snapshot.get("sequence-number")) or 0


def _amount(snapshot: Json, of: str) -> Amount:
    summary = _object(snapshot, "summary")
    return Amount(*(_whole(summary.get(f"{word}-{of}")) for word in ("added", "deleted", "total")))


def _whole(value: Any) -> int | None:
    """A number; in a summary numbers are texts."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _moment(ms: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
