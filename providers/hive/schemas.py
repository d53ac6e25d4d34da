"""A metastore's databases."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from formats.hive.names import HIVE, folded_name
from formats.iceberg import locations
from metalake.errors import AlreadyExists, Invalid, NotFound, Unsupported
from metalake.kinds import Kind
from providers.hive.calls import (
    find_database,
    part_of,
    read_database,
    read_kinds,
    read_table,
    require_ours,
    require_same,
    unknown_after_write,
)
from providers.hive.catalog import ROOT, HiveCatalog
from providers.hive.deliveries import delivered_database
from providers.hive.errors import About
from providers.hive.files import TableFiles
from providers.hive.objects import database_from
from providers.hive_like.parameters import marked
from providers.hive_like.schemas import HiveLikeSchemas
from providers.remote_objects import Json, Levels, Page, Remote, files_left

PAGE = 100


class HiveSchemas(HiveLikeSchemas):
    """Databases; an alteration compares versions without a lock, since no writer takes one."""

    provider: HiveCatalog
    deletes_folders = True

    def list(self, page: str | None = None) -> Page:
        with self.provider.metastore() as metastore:
            names = metastore.call("get_all_databases", about=About(Kind.CATALOG, "databases"))
            chosen, following = part_of(sorted(names), page, PAGE)
            return Page([database for name in chosen if (database := find_database(metastore, name))], following)

    def load(self, schema: Levels) -> Remote:
        with self.provider.metastore() as metastore:
            return read_database(metastore, schema[0])

    def delivered(self, entry: Json) -> Remote:
        return delivered_database(entry)

    def create(self, schema: Levels, definition: Json, marker: str = "") -> Remote:
        name = folded_name(schema[0], HIVE, Kind.SCHEMA)
        with self.provider.metastore() as metastore:
            made = database_from(name, marked(definition, marker))
            try:
                metastore.call("create_database", made, about=About(Kind.SCHEMA, name))
            except AlreadyExists:
                return require_ours(read_database(metastore, name), marked(definition, marker))
            with unknown_after_write():
                return read_database(metastore, name)

    def alter(
        self,
        schema: Levels,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
    ) -> Remote:
        name = schema[0]
        with self.provider.metastore() as metastore:
            now = read_database(metastore, name)
            require_same(now, version)
            database = database_from(name, marked(self.wanted(now.definition, changes, expected), marker))
            metastore.call("alter_database", name, database, about=About(Kind.SCHEMA, name))
            with unknown_after_write():
                return read_database(metastore, name)

    def drop(
        self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """Drop the database; with `cascade` first its tables one by one, including managed tables' files.

        Other files in its folder stay, such as external tables'.
        """
        name, about = schema[0], About(Kind.SCHEMA, schema[0])
        with self.provider.metastore() as metastore:
            read_database(metastore, name)
            tables = [table for table, _ in read_kinds(metastore, name)] if cascade else []
            files, why = TableFiles(self.provider), None
            folders = files.folders() if tables else None
            for number, table in enumerate(tables):
                with unknown_after_write(number > 0), suppress(NotFound):
                    why = files.drop(metastore, read_table(metastore, name, table), folders, by_owner) or why
            with unknown_after_write(bool(tables)):
                metastore.call("drop_database", name, False, False, about=about)
        return files_left(why)

    def draft(self, comment: str | None, properties: dict[str, str]) -> Json:
        location, parameters = self.split_location({"parameters": {}}, properties)
        if location is not None:
            location = self.provider.places.hive_place(location)
        return {"comment": comment, "location": location, "parameters": parameters, "owner": None, "owner_type": None}

    def with_properties(self, definition: Json, comment: str | None, properties: dict[str, str]) -> Json:
        """Only parameters can change: a Hive 2 metastore silently ignores any other change."""
        location, parameters = self.split_location(definition, properties)
        if comment != definition["comment"]:
            raise Unsupported("A metastore keeps the comment that a schema was made with.", kind=Kind.SCHEMA)
        if location is not None and not locations.are_one(location, definition["location"] or ""):
            raise Invalid("location: where a schema lies is decided at creation.", kind=Kind.SCHEMA)
        return {**definition, "parameters": parameters}

    def overlaps(self, location: str, other: Remote) -> bool:
        """The default database's location contains the others' folders, so lying inside it is no overlap."""
        place = other.definition["location"]
        return bool(place) and locations.overlap(location, place, within=other.name != ROOT)
