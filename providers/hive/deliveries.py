"""A metastore's databases and tables from a harvest, as definitions."""

from __future__ import annotations

from metalake.kinds import Kind
from providers.hive.objects import database_of, described_table
from providers.hive_like.deliveries import Entry, Name, TableEntry, checked, require_named
from providers.remote_objects import Json, Remote


class DatabaseDefinition(Entry):
    comment: str | None
    location: str | None
    parameters: dict[str, str]
    owner: str | None
    owner_type: str | None


class DatabaseEntry(Entry):
    name: Name
    definition: DatabaseDefinition


def delivered_database(entry: Json) -> Remote:
    """Raises Invalid."""
    given = checked(DatabaseEntry, entry, Kind.SCHEMA)
    return database_of(given.name, given.definition.model_dump())


def delivered_table(entry: Json) -> Remote:
    """Raises Invalid."""
    given = checked(TableEntry, entry, Kind.TABLE)
    return described_table(require_named(given.definition), given.identity)
