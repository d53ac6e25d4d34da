"""Properties of tables and views: how updates set and remove them, and which of a table the catalog reserves."""

from __future__ import annotations

import re

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, as_text_map, get_object, get_texts
from metalake.errors import Invalid

FORMAT_VERSION = "format-version"
PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT = 100

# Engines send and show these as properties, but other fields of the metadata have them (reference implementation)
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
# Given to new tables that do not choose for themselves (reference implementation)
NEW_TABLE_DEFAULTS = {"write.parquet.compression-codec": "zstd"}

_WHOLE = re.compile(r"-?[0-9]{1,10}")


def unreserved(properties: dict[str, str]) -> dict[str, str]:
    """The properties that may be stored."""
    return {key: value for key, value in properties.items() if key not in RESERVED}


def whole_property(properties: dict[str, str], key: str, default: int) -> int:
    """A property that holds a whole number. Raises Invalid, naming it, when it holds something else."""
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
    """The properties to which an update gives another value. Raises Invalid unless all are text."""
    wanted = as_text_map(get_object(update, "updates"), "updates")
    known = draft.metadata["properties"]
    return {key: value for key, value in wanted.items() if known.get(key) != value}


def put_properties(draft: Draft, changes: dict[str, str]) -> None:
    """Set these properties beside the others."""
    if changes:
        draft.edit_dict("properties").update(changes)


def remove_properties(draft: Draft, update: Json) -> None:
    """Remove properties; unknown ones are ignored."""
    for key in get_texts(update, "removals"):
        if key in draft.metadata["properties"]:
            del draft.edit_dict("properties")[key]
