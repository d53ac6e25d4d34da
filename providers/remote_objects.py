"""Objects of an outside system, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from formats.native.view_definition import ViewDefinition
from metalake.kinds import Kind

METADATA_FILE = "metadata-file"  # among the formats of an Iceberg table whose metadata can be read
PARTITION = "partition"
FILES_LEFT = "kept"
Levels = list[str]
Json = dict[str, Any]


@dataclass(frozen=True)
class Remote:
    """A schema, table, view or partition as its outside system returns it, by its name there.

    `identity` distinguishes it from a later object of the same name, `version` from an earlier state of itself; both
    are empty if the system has none. `formats` are the table's formats, comma-separated; empty if only the definition
    has them. Listings read only the definition's `comment` (a string or null); the rest is up to the remote store.
    """

    name: str
    definition: Json
    identity: str = ""
    version: str = ""
    kind: str = Kind.TABLE
    formats: str = ""

    def as_json(self) -> Json:
        return {**vars(self)}


@dataclass(frozen=True)
class Page:
    """A page of a listing; `next` is the token of the next page, None on the last."""

    items: list[Remote]
    next: str | None = None

    def as_json(self) -> Json:
        return {"items": [item.as_json() for item in self.items], "next": self.next}


@dataclass(frozen=True)
class NewTable:
    """A table to create: its definition, and the `plan` of what to do before the call to the system, if anything.

    A plan may have `write` (the Iceberg metadata of a new file) and `ground` (where the table must lie); its store may
    add more.
    """

    definition: Json
    plan: Json | None = None


@dataclass(frozen=True)
class ViewEntry:
    """A view in an outside system: the engine whose form it has, its stored format, and its definition.

    An Iceberg view is defined by the metadata file at `metadata_location`, so its `definition` is None.
    `query_columns` are the SQL's own column names, if the engine stores them.
    """

    engine: str
    format: str
    definition: ViewDefinition | None = None
    is_materialized: bool = False
    metadata_location: str | None = None
    query_columns: tuple[str, ...] = ()


def files_left(reason: str | None) -> dict[str, str] | None:
    """The result of a verb that may delete files: None, or why it left them."""
    return {FILES_LEFT: reason} if reason else None


def digest(definition: Mapping[str, Any]) -> str:
    """A version for an object whose system has none: a hash of its definition."""
    return hashlib.sha256(orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)).hexdigest()[:40]
