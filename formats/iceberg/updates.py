"""Metadata updates common to tables and views (Iceberg REST specification, "BaseUpdate")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from formats.iceberg.draft import Draft
from formats.iceberg.locations import with_scheme
from formats.iceberg.parsing import Json, as_list, as_object, as_text, get_text
from metalake.errors import Invalid

Action = Callable[[Draft, Json], None]
REFERENCE_TEXT = "reference-text"
"""The kind of errors whose text clients compare with the reference implementation's: no position is appended."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def apply_each(draft: Draft, updates: list[Any], actions: Mapping[str, Action]) -> None:
    """Apply updates in order. Raises Invalid or Conflict, naming the update's action and position."""
    for position, update in enumerate(as_list(updates, "updates")):
        _apply(draft, position, update, actions)


def _apply(draft: Draft, position: int, update: object, actions: Mapping[str, Action]) -> None:
    action: object = None
    try:
        checked = as_object(update, "an update")
        action = get_text(checked, "action")
        if action not in actions:
            raise Invalid("Unknown action")
        actions[action](draft, checked)
    except Invalid as error:
        if error.kind == REFERENCE_TEXT:
            raise
        named = f"{action[:100]!r}, " if isinstance(action, str) else ""
        raise type(error)(f"{error.message} ({named}updates[{position}])", kind=error.kind) from error


def assign_uuid(key: str, noun: str) -> Action:
    """An update that assigns the UUID under `key`. It raises Invalid if another one is assigned already."""

    def assign(draft: Draft, update: Json) -> None:
        wanted = checked_uuid(get_text(update, "uuid"))
        known = draft.metadata.get(key)
        if known is not None and known.lower() != wanted.lower():
            raise Invalid(f"Cannot reassign uuid: the {noun}'s is {known}, not {wanted}")
        if known is None:
            draft.put(key, wanted)

    return assign


def set_location(draft: Draft, update: Json) -> None:
    """Set the location. Raises Invalid for an empty one."""
    draft.put("location", checked_location(get_text(update, "location")))


def checked_uuid(value: object) -> str:
    """The value. Raises Invalid unless it is a UUID."""
    text = as_text(value, "uuid")
    if not _UUID.fullmatch(text):
        raise Invalid(f"uuid must be a UUID, not {text[:100]!r}")
    return text


def checked_location(value: object) -> str:
    """The location with a scheme and without trailing slashes. Raises Invalid for an empty one."""
    location = as_text(value, "location")
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    if not location:
        raise Invalid("location must not be empty")
    return with_scheme(location)
