"""Changes of schemas and tables as stored and sent: the native API's updates, as JSON.

The changes of a schema are `setProperty`, `removeProperty` and `updateComment`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from formats.native.tables import KeepProperty, TableUpdate

Json = dict[str, Any]
_UPDATES: TypeAdapter[list[Any]] = TypeAdapter(list[TableUpdate])


def as_json(updates: Sequence[Any]) -> list[Json]:
    """The updates as JSON, without no-ops (`KeepProperty`)."""
    return [update.to_wire() for update in updates if not isinstance(update, KeepProperty)]


def read_changes(changes: Sequence[Json]) -> list[Any]:
    """Parse the output of `as_json` into the update classes of `formats.native.tables`."""
    return _UPDATES.validate_python(list(changes))


def of_schema(
    before: Mapping[str, str], after: Mapping[str, str], comment: tuple[str | None, str | None]
) -> list[Json]:
    """The diff from the properties `before` to `after`; `comment` is the old and the new comment."""
    changes: list[Json] = [{"@type": "removeProperty", "property": name} for name in before if name not in after]
    changes += [
        {"@type": "setProperty", "property": name, "value": value}
        for name, value in after.items()
        if before.get(name) != value
    ]
    was, now = comment
    return changes if was == now else [*changes, {"@type": "updateComment", "newComment": now}]


def changed_schema(
    comment: str | None, properties: Mapping[str, str], changes: Sequence[Json]
) -> tuple[str | None, dict[str, str]]:
    """Apply changes in order; returns the schema's new comment and properties."""
    properties = dict(properties)
    for change in changes:
        match change["@type"]:
            case "setProperty":
                properties[change["property"]] = change["value"]
            case "removeProperty":
                properties.pop(change["property"], None)
            case "updateComment":
                comment = change["newComment"]
    return comment, properties
