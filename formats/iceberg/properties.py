"""Properties of tables and views: how updates set and remove them, and a table's reserved ones."""

from __future__ import annotations

import re

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, as_text_map, get_object, get_texts
from metalake.errors import Invalid

FORMAT_VERSION = "format-version"
PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT = 100

# Engines send and show these as properties, but they are other fields of the metadata (reference implementation)
RESERVED = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
# Defaults of new tables (reference implementation)
NEW_TABLE_DEFAULTS = {"write.parquet.compression-codec": "zstd"}

_WHOLE = re.compile(r"-?[0-9]{1,10}")


def unreserved(properties: dict[str, str]) -> dict[str, str]:
    """The properties that may be stored."""
    return {key: value for key, value in properties.items() if key not in RESERVED}


def whole_property(properties: dict[str, str], key: str, default: int) -> int:
    """A property that must be a whole number. Raises Invalid, naming it, if it is not."""
    value = properties.get(key)
    if value is None:
        return default
    if not _WHOLE.fullmatch(value):
        raise Invalid(f"Property {key} must be a whole number, not {value[:100]!r}")
    return int(value)


def set_properties(draft: Draft, update: Json) -> None:
    """Set properties of a table; reserved ones are ignored."""
    changes = unreserved(changed_properties(draft, update))
    whole_property(changes, PREVIOUS_VERSIONS_MAX, PREVIOUS_VERSIONS_MAX_DEFAULT)
    put_properties(draft, changes)


def changed_properties(draft: Draft, update: Json) -> dict[str, str]:
    """The properties whose value an update changes. Raises Invalid unless all are text."""
    updates = as_text_map(get_object(update, "updates"), "updates")
    current = draft.metadata["properties"]
    return {key: value for key, value in updates.items() if current.get(key) != value}


def put_properties(draft: Draft, changes: dict[str, str]) -> None:
    """Set these properties; others are kept."""
    if changes:
        draft.edit_dict("properties").update(changes)


def remove_properties(draft: Draft, update: Json) -> None:
    """Remove properties; unknown ones are ignored."""
    for key in get_texts(update, "removals"):
        if key in draft.metadata["properties"]:
            del draft.edit_dict("properties")[key]
