"""The versions of an Iceberg view: validate, add, set the current one, expire old ones.

Sources: Iceberg view spec, "Versions" and "Version log"; behaviour and messages follow the reference implementation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import (
    Json,
    as_text_map,
    get_int,
    get_long,
    get_object,
    get_objects,
    get_text,
    get_texts,
    has,
)
from formats.iceberg.properties import whole_property
from formats.iceberg.updates import REFERENCE_TEXT
from formats.native import view_definition
from formats.native.view_definition import Representation, ViewDefinition
from metalake.errors import Invalid

HISTORY_SIZE = "version.history.num-entries"
HISTORY_SIZE_DEFAULT = 10
MAY_DROP_DIALECTS = "replace.drop-dialect.allowed"
FIRST_VERSION = 1
LAST_ADDED = -1
OF = "view-version"
NOT_COMPARED = ("version-id", "timestamp-ms")


def checked(version: Json, now_ms: int) -> Json:
    """A client's version, validated and without nulls; its timestamp defaults to `now_ms`. Raises Invalid, TooLarge."""
    as_given = {key: value for key, value in version.items() if value is not None}
    if has(as_given, "version-id"):
        get_int(as_given, "version-id", OF)
    if has(as_given, "default-catalog"):
        get_text(as_given, "default-catalog", OF)
    get_texts(as_given, "default-namespace", OF)
    _check_representations(get_objects(as_given, "representations", OF))
    return as_given | {
        "timestamp-ms": get_long(as_given, "timestamp-ms", OF) if has(as_given, "timestamp-ms") else now_ms,
        "summary": as_text_map(as_given.get("summary", {}), f"summary of {OF}"),
    }


def numbered(version: Json, version_id: int, schema_id: int) -> Json:
    """The version with these ids."""
    return {**version, "version-id": version_id, "schema-id": schema_id}


def _check_representations(representations: list[Json]) -> None:
    queries = [_query(each, f"representations[{position}]") for position, each in enumerate(representations)]
    dialects = set[str]()
    for query in queries:
        if query.key in dialects:
            repeated = f"Invalid view version: Cannot add multiple queries for dialect {query.dialect.lower()}"
            raise Invalid(repeated, kind=REFERENCE_TEXT)
        dialects.add(query.key)
    view_definition.check(ViewDefinition(representations=tuple(queries)))


def _query(representation: Json, place: str) -> Representation:
    if (kind := get_text(representation, "type", place)) != "sql":
        raise Invalid(f"type of {place} must be 'sql', not {kind[:100]!r}: Iceberg views have no other representation")
    return Representation(
        dialect=get_text(representation, "dialect", place), sql=get_text(representation, "sql", place)
    )


def add_view_version(draft: Draft, update: Json) -> None:
    """Add a version, or reuse an equal one. The requested id is ignored; schema -1 means the one last added."""
    given = get_object(update, OF)
    version = checked(given, draft.now_ms)
    schema_id = get_int(given, "schema-id", OF)
    if schema_id == LAST_ADDED:
        schema_id = draft.last_added("schema")
    if schema_id not in draft.by_id("schemas"):
        raise Invalid(f"Cannot add version with unknown schema: {schema_id}")
    known = draft.known("version", _shape)
    version = numbered(version, max(known.next_id, FIRST_VERSION), schema_id)
    wanted = _shape(version)
    if (equal := known.first(wanted)) is None:
        equal = version["version-id"]
        draft.add("versions", version)
        known.add(wanted, equal)
    # An existing equal version counts as last added too: it is what the client refers to by -1.
    draft.remember_added("version", equal)


def _shape(version: Json) -> str:
    """A comparison key: equal for versions that differ only in id, timestamp, or null, empty and absent fields."""
    return json.dumps(
        {key: value for key, value in version.items() if key not in NOT_COMPARED and value not in (None, {}, [])},
        sort_keys=True,
    )


def set_current_view_version(draft: Draft, update: Json) -> None:
    """Set the current version; -1 means the one last added by this request."""
    draft.make_current("version", get_int(update, "view-version-id"), "current-version-id", "current version")


def finish(draft: Draft, base: Json, *, may_drop_dialects: bool) -> None:
    """Check the new current version against the previous one, log it, and expire versions beyond the history size."""
    draft.settle()
    current = current_version(draft.metadata)
    added = set(draft.by_id("versions")) - {each["version-id"] for each in base["versions"]}
    if current["version-id"] != base["current-version-id"]:
        if not may_drop_dialects:
            _check_dialects(draft, base, current)
        # A rollback to an existing version is logged with the current time.
        at = current["timestamp-ms"] if current["version-id"] in added else draft.now_ms
        draft.edit_list("version-log").append({"timestamp-ms": at, "version-id": current["version-id"]})
    _expire(draft, added | {current["version-id"]})
    draft.settle()


def current_version(metadata: Mapping[str, Any]) -> Json:
    """The current version. Raises Invalid if the metadata lacks it."""
    current = metadata.get("current-version-id")
    version = _version(metadata, current)
    if version is None:
        raise Invalid(f"The view's metadata has no version {current}, which it says is the current one", kind="view")
    return version


def _version(metadata: Mapping[str, Any], version_id: Any) -> Json | None:
    return next((each for each in metadata["versions"] if each["version-id"] == version_id), None)


def _check_dialects(draft: Draft, base: Json, current: Json) -> None:
    if draft.metadata["properties"].get(MAY_DROP_DIALECTS, "").lower() == "true":
        return
    before = dialects(_version(base, base["current-version-id"]) or {})
    after = dialects(current)
    if not set(before) <= set(after):
        raise Invalid(
            f"Cannot replace view due to loss of view dialects ({MAY_DROP_DIALECTS}=false):\n"
            f"Previous dialects: [{', '.join(before)}]\nNew dialects: [{', '.join(after)}]"
        )


def dialects(version: Json) -> list[str]:
    """The dialects of a version, in lower case."""
    return [each["dialect"].lower() for each in sql_representations(version)]


def sql_representations(version: Json) -> list[Json]:
    """The SQL representations of a version; other types, which a newer writer may have added, are left out."""
    return [each for each in version.get("representations") or () if each["type"].lower() == "sql"]


def history_size(properties: dict[str, str]) -> int:
    """The maximum number of versions in the metadata. Raises Invalid unless positive."""
    size = whole_property(properties, HISTORY_SIZE, HISTORY_SIZE_DEFAULT)
    if size <= 0:
        raise Invalid(f"{HISTORY_SIZE} must be positive but was {size}")
    return size


def _expire(draft: Draft, needed: set[int]) -> None:
    """Expire the oldest versions except needed ones, and truncate the log after the last entry of an expired one."""
    size = max(len(needed), history_size(draft.metadata["properties"]))
    there = set(draft.by_id("versions"))
    if len(there) <= size:
        return
    remaining = needed | set(sorted(there - needed, reverse=True)[: size - len(needed)])
    draft.drop("versions", there - remaining)
    log = draft.metadata["version-log"]
    gone = [position for position, entry in enumerate(log) if entry["version-id"] not in remaining]
    if gone:
        draft.metadata["version-log"] = log[gone[-1] + 1 :]


def schema_id_of(schema: Json) -> int:
    """The schema id of a schema or version; 0 where older writers omit it."""
    return schema.get("schema-id") or 0


def schema_of(metadata: Mapping[str, Any], version: Json) -> Json:
    """The schema of a version; an empty one if missing."""
    wanted = schema_id_of(version)
    return next((each for each in metadata.get("schemas") or () if schema_id_of(each) == wanted), {"fields": []})
