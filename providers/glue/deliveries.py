"""Glue's databases and tables from a harvest: Glue's own entries, with times as `moment` writes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from metalake.errors import Invalid
from metalake.kinds import Kind
from providers.glue.responses import database_of, table_of
from providers.hive_like.deliveries import Entry, Name, TableEntry, checked, require_named
from providers.remote_objects import Json, Remote


class DatabaseDefinition(Entry):
    comment: str | None
    location: str | None
    parameters: dict[str, str]
    rest: dict[str, Any]


class DatabaseEntry(Entry):
    name: Name
    definition: DatabaseDefinition


def delivered_database(entry: Json) -> Remote:
    """Raises Invalid."""
    remote = _understood(database_of, entry, Kind.SCHEMA)
    checked(DatabaseEntry, {"name": remote.name, "definition": remote.definition}, Kind.SCHEMA)
    return remote


def delivered_table(entry: Json) -> Remote:
    """Raises Invalid."""
    remote = _understood(table_of, entry, Kind.TABLE)
    if not remote.definition:  # a resource link
        return remote
    given = checked(TableEntry, {"identity": remote.identity, "definition": remote.definition}, Kind.TABLE)
    require_named(given.definition)
    return remote


def _understood(read: Callable[[Json], Remote], entry: Json, kind: Kind) -> Remote:
    try:
        made = entry.get("CreateTime")
        remote = read({**entry, "CreateTime": datetime.fromisoformat(made) if made else None})
        if isinstance(remote.version, str) and len(remote.version) <= 128:
            return remote
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    raise Invalid("This is no entry of AWS Glue, with moments in ISO 8601.", kind=kind)
