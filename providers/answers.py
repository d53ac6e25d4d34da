"""What an outside system answers about its objects, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from metalake.kinds import Kind

METADATA_FILE = "metadata-file"  # among the formats of an Iceberg table whose metadata can be read
PARTITION = "partition"
KEPT = "kept"
Levels = list[str]
Json = dict[str, Any]


@dataclass(frozen=True)
class Remote:
    """A schema, table, view or partition as its own system has it, by its name there.

    `formats` are the words by which lists tell tables apart, divided by commas; none where that takes the definition.
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
    """A part of a listing; `next` asks for what follows."""

    items: list[Remote]
    next: str | None = None

    def as_json(self) -> Json:
        return {"items": [item.as_json() for item in self.items], "next": self.next}


@dataclass(frozen=True)
class NewTable:
    """A table to be made: its definition, and a `plan` of what is done before the system is told of it, if anything.

    A plan may say `write`, the Iceberg metadata that a new file is to hold, and `ground`, which the table must not
    leave; the rest of it is its store's own.
    """

    definition: Json
    plan: Json | None = None


def kept(reason: str | None) -> dict[str, str] | None:
    """The answer of a verb that may delete files; `reason` says why it left them."""
    return {KEPT: reason} if reason else None


def digest(definition: Mapping[str, Any]) -> str:
    """The version of what has none of its own."""
    return hashlib.sha256(orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)).hexdigest()[:40]
