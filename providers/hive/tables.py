"""A metastore's tables of every format."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from hive_metastore.ttypes import Table

from formats.hive.names import HIVE, folded_name
from formats.hive.tables import EXTERNAL_TABLE, HiveTable
from formats.iceberg import locations
from formats.native.tables import CreateTableRequest
from metalake.errors import AlreadyExists, Invalid, TooLarge, Unsupported
from metalake.kinds import Kind
from metalake.wire import quote
from providers.hive.calls import (
    alter,
    is_there,
    move_path,
    part_of,
    read_database,
    read_kinds,
    read_same,
    read_table,
    read_whole,
    require_ours,
    require_same,
    send_alteration,
    unknown_after_write,
)
from providers.hive.catalog import HiveCatalog
from providers.hive.client import Metastore
from providers.hive.deliveries import delivered_table
from providers.hive.errors import About
from providers.hive.files import TableFiles
from providers.hive.folders import places_of
from providers.hive.locks import locked_table
from providers.hive.objects import DDL_TIME, hive_table, table_of, written
from providers.hive.partitions import HivePartitions
from providers.hive.pointers import HivePointers
from providers.hive.settings import LIST_ALL
from providers.hive_like.parameters import formats_of_remote, marked
from providers.hive_like.tables import HiveLikeTables
from providers.remote_objects import Json, Levels, Page, Remote, files_left

NAMES, TABLES = 5_000, 200  # page sizes
LISTING_SECONDS = 600.0
MOST_NAMES = 1_000_000  # in all cached listings together
MANAGED_STAYS = "a metastore deletes the folder of a managed table with it, so such a table lies in its schema's folder"
TO_NAME_ONE = "leave the location out, or make an EXTERNAL_TABLE"
LONGEST_KEY, LONGEST_TEXT = 256, 4_000  # characters, in a metastore's database

_keeping = threading.Lock()
# Listings in progress: (catalog, database) -> when they were listed, and the names with kinds.
_listings: dict[tuple[int, str], tuple[float, list[tuple[str, str]]]] = {}


class HiveTables(HiveLikeTables):
    """Tables; an alteration compares versions under the table's lock.

    Without locks, or with a writer that takes none, only metastores that check expected parameters (2.3.10 and later)
    detect a change in the milliseconds between comparison and alteration.
    """

    provider: HiveCatalog
    partitions, pointers = HivePartitions, HivePointers
    lists_by_names = True

    @property
    def files(self) -> TableFiles:
        return TableFiles(self.provider)

    def list(
        self, schema: Levels, page: str | None = None, whole: bool = False, names: Sequence[str] | None = None
    ) -> Page:
        """A page of tables, without definitions unless `whole` or if the catalog hides tables by format."""
        name = schema[0]
        with self.provider.metastore() as metastore:
            if names is not None:
                wanted, following = part_of(sorted(names), page, TABLES)
                return read_whole(metastore, name, wanted, following)
            kinds = self._listing(metastore, name, is_first=page is None)
            if not (whole or self.hides_some):
                chosen, following = part_of(kinds, page, NAMES)
                return Page([Remote(table, {}, kind=kind) for table, kind in chosen], following)
            chosen, following = part_of(kinds, page, TABLES)
            return read_whole(metastore, name, [table for table, _ in chosen], following)

    def _listing(self, metastore: Metastore, database: str, *, is_first: bool) -> Sequence[tuple[str, str]]:
        """The names and kinds of a database's tables, cached for the pages of one listing."""
        place, now = (self.provider.catalog_id, database), time.monotonic()
        listed_at, kinds = _listings.get(place, (0.0, []))
        if is_first or not kinds or now - listed_at > LISTING_SECONDS:
            kinds = read_kinds(metastore, database)
            if not kinds:
                read_database(metastore, database)
            with _keeping:
                _listings.pop(place, None)
                if len(kinds) > TABLES:
                    _listings[place] = (now, kinds)
                for oldest, (then, _) in list(_listings.items())[:-1]:
                    if now - then > LISTING_SECONDS or sum(len(names) for _, names in _listings.values()) > MOST_NAMES:
                        del _listings[oldest]
        return kinds

    def load(self, schema: Levels, table: str) -> Remote:
        with self.provider.metastore() as metastore:
            return table_of(read_table(metastore, schema[0], table))

    def delivered(self, entry: Json) -> Remote:
        return delivered_table(entry)

    def create(
        self,
        schema: Levels,
        table: str,
        definition: Json,
        plan: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        database, about = schema[0], About(Kind.TABLE, f"{schema[0]}.{table}")
        definition = marked(definition, marker) | {"name": table}
        with self.provider.metastore() as metastore:
            home = read_database(metastore, database).definition["location"]
            is_fresh = self.files.is_fresh(definition, plan)
            with self.pointed.prepared(schema, definition, plan) as wanted:
                made = written(wanted, onto=Table(tableName=table, dbName=database))
                if not is_fresh:
                    self.files.require_place(made, home, by_owner)
                try:
                    metastore.call("create_table", made, about=about)
                except AlreadyExists:
                    return require_ours(table_of(read_table(metastore, database, table)), definition)
            with unknown_after_write():
                return table_of(read_table(metastore, database, table))

    def alter(
        self,
        schema: Levels,
        table: str,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        with locked_table(self.provider, schema[0], table) as (metastore, _):
            there = read_table(metastore, schema[0], table)
            require_same(table_of(there), version)
            last = (there.parameters or {}).get(DDL_TIME, "")
            before, was = places_of(there), hive_table(there)
            changed = written(self.wanted(was, changes, expected, marker), onto=there)
            if hive_table(changed).is_external != was.is_external:
                raise Unsupported("updates: whose files a table's are is decided at creation", kind=Kind.TABLE)
            self.files.require_unshared(changed, before, by_owner)
            return alter(metastore, changed, last, expected=(DDL_TIME, last))

    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        """Rename the table; a metastore moves a managed table's files if they lie in its schema's folder."""
        source, target = schema[0], to_schema[0]
        name = folded_name(to_table, HIVE, Kind.TABLE)
        with locked_table(self.provider, source, table) as (metastore, _):
            there = read_same(metastore, source, table, identity)
            home, goal = (read_database(metastore, each).definition["location"] for each in (source, target))
            if is_there(metastore, target, name):
                raise AlreadyExists(f"Table {target}.{name} already exists.", kind=Kind.TABLE)
            self.files.require_movable(there, target, goal, name, by_owner)
            move_path(there, home, goal, name)
            there.dbName, there.tableName = target, name
            send_alteration(metastore, source, table, there, {})
            with unknown_after_write():
                return table_of(read_table(metastore, target, name))

    def drop(
        self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """Drop the table, with its files if managed; external tables keep them, so purging one raises Unsupported.

        An Iceberg table's files always stay, as with Iceberg's HiveCatalog: a metastore knows only its folder.
        """
        with self.provider.metastore() as metastore:
            there = read_same(metastore, schema[0], table, identity)
            if purge and hive_table(there).is_external and not self._is_iceberg(there):
                raise Unsupported(
                    f"Table {schema[0]}.{table} is external: a metastore does not delete its files; drop it instead.",
                    kind=Kind.TABLE,
                )
            folders = self.files.folders() if self.files.has_files(there) else None
            return files_left(self.files.drop(metastore, there, folders, by_owner, purge=purge))

    def _is_iceberg(self, there: Table) -> bool:
        return self.pointed.location(table_of(there).definition) is not None

    # Definitions

    def require_fit(self, table: HiveTable) -> None:
        for key in table.parameters:
            if len(key) > LONGEST_KEY:
                raise TooLarge(f"properties: the name {quote(key)} is over {LONGEST_KEY} characters", kind=Kind.TABLE)
        for column in (*table.columns, *table.partition_keys):
            if len(column.comment or "") > LONGEST_TEXT:
                what = f"columns: the comment of {quote(column.name)}"
                raise TooLarge(f"{what} is over {LONGEST_TEXT} characters", kind=Kind.TABLE)

    def placed(self, schema: Remote, asked: CreateTableRequest) -> dict[str, str]:
        """A new table's properties with its location; without one the metastore puts it below its database.

        A table with another location is external by default, as in Spark: a metastore deletes a managed table's folder.
        """
        location, own = asked.properties.get("location"), schema.definition["location"]
        if location is None:
            return asked.properties
        place = self.provider.places.hive_place(location, own)
        wanted = {"table-type": EXTERNAL_TABLE} | asked.properties | {"location": place}
        if wanted["table-type"].upper() == EXTERNAL_TABLE:
            return wanted
        if own and locations.are_one(place, f"{own.removesuffix('/')}/{asked.name}"):
            return wanted
        raise Invalid(f"properties.location: {MANAGED_STAYS}; {TO_NAME_ONE}", kind=Kind.TABLE)

    def require_movable(self, table: HiveTable) -> None:
        if not table.is_external:
            raise Invalid(f"updates: location: {MANAGED_STAYS}; {TO_NAME_ONE}", kind=Kind.TABLE)

    @property
    def hides_some(self) -> bool:
        return self.provider.properties.get(LIST_ALL) == "false"

    def shows(self, table: Remote) -> bool:
        return not self.hides_some or "hive" in formats_of_remote(table)
