"""A Hive Metastore: databases, tables of every kind and their partitions, over thrift."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import Any

from hive_metastore.ttypes import Table

from formats.hive.names import HIVE, folded_name
from formats.hive.partitions import partition_values
from formats.hive.tables import HiveTable
from metalake.errors import AlreadyExists, Conflict, NotFound, Unsupported
from metalake.kinds import Kind
from providers.external import PARTITION, Levels, Page, Remote, kept
from providers.hive.calls import (
    alter,
    drop,
    find_database,
    is_there,
    move_path,
    once_written,
    part_of,
    read_database,
    read_kinds,
    read_partition,
    read_partitioned,
    read_table,
    require_same,
    send_alteration,
)
from providers.hive.client import Metastore, connect, connection
from providers.hive.errors import About, Refused
from providers.hive.files import HiveFiles
from providers.hive.folders import Folders, Place, places_of
from providers.hive.locks import locked
from providers.hive.meaning import URIS
from providers.hive.objects import (
    DDL_TIME,
    database_from,
    hive_table,
    partition_from,
    partition_of,
    table_of,
    written,
)
from providers.hive_like.iceberg_entries import POINTER
from providers.reaching.endpoints import Endpoint
from providers.reaching.metastores import check_metastores, parse_metastores, systems_at, systems_named

SCHEMAS, NAMES, TABLES, PARTITIONS = 100, 5_000, 200, 500  # a page's items
EVERY_PARTITION = -1
LISTING_SECONDS = 600.0

# Names and kinds of a listing that goes on, by catalog and database, and when they were taken.
_listings: dict[tuple[int, str], tuple[float, list[tuple[str, str]]]] = {}


class HiveProvider(HiveFiles):
    """An alteration compares under the table's lock. Where a metastore keeps no locks, or another writer takes none,
    what changes in the milliseconds between the comparison and the alteration is noticed only by metastores that
    enforce expected parameters (2.3.10 and later). Databases are compared without a lock: nobody takes one.
    """

    @cached_property
    def endpoints(self) -> list[Endpoint]:
        return parse_metastores(self.properties[URIS])

    def check_locations(self) -> None:
        super().check_locations()
        check_metastores(self.properties[URIS])

    def system_names(self) -> list[str]:
        return systems_named(self.properties[URIS])

    def system(self) -> list[str]:
        return systems_at(self.properties[URIS])

    def test_connection(self) -> None:
        check_metastores(self.properties[URIS])
        metastore = connect(self.endpoints)
        try:
            read_database(metastore, "default")
        except NotFound:
            pass  # it is a metastore all the same
        finally:
            metastore.close()

    def _metastore(self) -> AbstractContextManager[Metastore]:
        return connection(self.endpoints)

    # Schemas

    def list_schemas(self, page: str | None = None) -> Page:
        with self._metastore() as metastore:
            names = metastore.call("get_all_databases", about=About(Kind.CATALOG, "databases"))
            chosen, following = part_of(sorted(names), page, SCHEMAS)
            return Page([found for name in chosen if (found := find_database(metastore, name))], following)

    def load_schema(self, schema: Levels) -> Remote:
        with self._metastore() as metastore:
            return read_database(metastore, schema[0])

    def create_schema(self, schema: Levels, definition: dict[str, Any]) -> Remote:
        name = folded_name(schema[0], HIVE, Kind.SCHEMA)
        with self._metastore() as metastore:
            try:
                metastore.call("create_database", database_from(name, definition), about=About(Kind.SCHEMA, name))
            except AlreadyExists:
                return self._ours(definition, read_database(metastore, name))
            with once_written():
                return read_database(metastore, name)

    def _ours(self, definition: dict[str, Any], found: Remote) -> Remote:
        """What is there already, if it is this very creation: a metastore repeats its own failed transactions."""
        marker = self.marker_of(definition)
        if not marker or self.marker_of(found.definition) != marker:
            raise AlreadyExists(f"{found.kind.capitalize()} {found.name} already exists.", kind=found.kind)
        return found

    def alter_schema(self, schema: Levels, definition: dict[str, Any], version: str) -> Remote:
        name = schema[0]
        with self._metastore() as metastore:
            require_same(read_database(metastore, name), version)
            database = database_from(name, definition)
            metastore.call("alter_database", name, database, about=About(Kind.SCHEMA, name))
            with once_written():
                return read_database(metastore, name)

    def drop_schema(
        self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """Cascade drops its tables one by one, and the files of managed ones with them; what is left in its folder,
        such as files of external tables, stays.
        """
        name, about = schema[0], About(Kind.SCHEMA, schema[0])
        with self._metastore() as metastore:
            read_database(metastore, name)
            tables = [table for table, _ in read_kinds(metastore, name)] if cascade else []
            folders, why = self.folders() if tables else None, None
            for number, table in enumerate(tables):
                with once_written(number > 0), suppress(NotFound):
                    why = self._drop(metastore, read_table(metastore, name, table), folders, by_owner) or why
            with once_written(bool(tables)):
                metastore.call("drop_database", name, False, False, about=about)
        return kept(why)

    # Tables

    def list_tables(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        """By name and without definitions, unless the catalog hides tables for what they are."""
        name = schema[0]
        with self._metastore() as metastore:
            kinds = self._listing(metastore, name, is_first=page is None)
            if not (whole or self.hides_some):
                chosen, following = part_of(kinds, page, NAMES)
                return Page([Remote(table, {}, kind=kind) for table, kind in chosen], following)
            chosen, following = part_of(kinds, page, TABLES)
            names = [table for table, _ in chosen]
            if not names:
                return Page([], following)
            try:
                found = metastore.call("get_table_objects_by_name", name, names, about=About(Kind.SCHEMA, name))
            except Refused:
                read_database(metastore, name)  # says better that it was dropped meanwhile
                raise
            return Page(sorted(map(table_of, found), key=lambda table: table.name), following)

    def _listing(self, metastore: Metastore, database: str, *, is_first: bool) -> list[tuple[str, str]]:
        """The names and kinds of a database's tables; the pages of one listing share them."""
        place, now = (self.catalog_id, database), time.monotonic()
        taken_at, kinds = _listings.get(place, (0.0, []))
        if is_first or not kinds or now - taken_at > LISTING_SECONDS:
            kinds = read_kinds(metastore, database)
            if not kinds:
                read_database(metastore, database)
            for stale in [key for key, (then, _) in list(_listings.items()) if now - then > LISTING_SECONDS]:
                _listings.pop(stale, None)
            if len(kinds) > TABLES:
                _listings[place] = (now, kinds)
        return kinds

    def load_table(self, schema: Levels, table: str) -> Remote:
        with self._metastore() as metastore:
            return table_of(read_table(metastore, schema[0], table))

    def create_table(self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False) -> Remote:
        database, about = schema[0], About(Kind.TABLE, f"{schema[0]}.{table}")
        with self._metastore() as metastore:
            home = read_database(metastore, database).definition["location"]
            is_fresh = self.is_fresh(definition)
            with self.prepared(schema, {**definition, "name": table}) as wanted:
                made = written(wanted, onto=Table(tableName=table, dbName=database))
                if not is_fresh:
                    self.require_place(made, home, by_owner)
                try:
                    metastore.call("create_table", made, about=about)
                except AlreadyExists:
                    return self._ours(definition, table_of(read_table(metastore, database, table)))
            with once_written():
                return table_of(read_table(metastore, database, table))

    def alter_table(
        self, schema: Levels, table: str, definition: dict[str, Any], version: str, by_owner: bool = False
    ) -> Remote:
        with self._locked(schema[0], table) as (metastore, _):
            there = read_table(metastore, schema[0], table)
            require_same(table_of(there), version)
            last = (there.parameters or {}).get(DDL_TIME, "")
            before, was = places_of(there), hive_table(there)
            changed = written(HiveTable.from_json(definition), onto=there)
            if hive_table(changed).is_external != was.is_external:
                raise Unsupported("updates: whose files a table's are is decided at creation", kind=Kind.TABLE)
            self.require_unshared(changed, before, by_owner)
            return alter(metastore, changed, last, expected=(DDL_TIME, last))

    def rename_table(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        """The files of a managed table move with it where they lie in its schema's folder, as a metastore does it."""
        source, target = schema[0], to_schema[0]
        name = folded_name(to_table, HIVE, Kind.TABLE)
        with self._locked(source, table) as (metastore, _):
            there = self._same(metastore, source, table, identity)
            home, goal = (read_database(metastore, each).definition["location"] for each in (source, target))
            if is_there(metastore, target, name):
                raise AlreadyExists(f"Table {target}.{name} already exists.", kind=Kind.TABLE)
            self.require_movable_files(there, target, goal, name, by_owner)
            move_path(there, home, goal, name)
            there.dbName, there.tableName = target, name
            send_alteration(metastore, source, table, there, {})
            with once_written():
                return table_of(read_table(metastore, target, name))

    def drop_table(
        self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """The files of a managed table go, those of an external one stay, so such a one cannot be purged.

        Those of an Iceberg table stay in any case, as in Iceberg's own Hive catalog: a metastore knows only its folder.
        """
        with self._metastore() as metastore:
            there = self._same(metastore, schema[0], table, identity)
            if purge and hive_table(there).is_external and not self._is_iceberg(there):
                raise Unsupported(
                    f"Table {schema[0]}.{table} is external: a metastore does not delete its files; drop it instead.",
                    kind=Kind.TABLE,
                )
            folders = self.folders() if self.has_files(there) else None
            return kept(self._drop(metastore, there, folders, by_owner, purge=purge))

    def _drop(
        self, metastore: Metastore, there: Table, folders: Folders | None, by_owner: bool, *, purge: bool = False
    ) -> str | None:
        """Why files stay that a metastore would have deleted with the table."""
        with_files, why = False, None
        if self.has_files(there) and folders is not None:
            places = [*map(Place, places_of(there)[:1]), *folders.of(there)]
            why = self.why_kept(folders, there, places, by_owner)
            with_files = why is None
        if why and purge:
            said = f"Table {there.dbName}.{there.tableName} was not purged: {why}. A drop without purge is possible."
            raise Unsupported(said, kind=Kind.TABLE)
        drop(metastore, there.dbName, there.tableName, with_files=with_files, purge=purge and with_files)
        return why

    def _is_iceberg(self, there: Table) -> bool:
        return self.metadata_location(table_of(there).definition) is not None

    def commit_table(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        """As Iceberg's own Hive catalog does: under the lock, which no commit goes without.

        Raises Unsupported where the metastore keeps no locks, or the table is none of Iceberg's.
        """
        name = f"{schema[0]}.{table}"
        with self._locked(schema[0], table) as (metastore, has_lock):
            there = read_table(metastore, schema[0], table)
            points_to = self.metadata_location(table_of(there).definition)
            if points_to is None:
                raise Unsupported(f"Table {name} is no Iceberg table.", kind=Kind.TABLE)
            if not has_lock:
                raise Unsupported(
                    f"Table {name}: this metastore keeps no locks, so a commit could undo another; "
                    "create its transaction tables.",
                    kind=Kind.TABLE,
                )
            if points_to != previous:
                raise Conflict(f"Table {name} points to {points_to} by now.", kind=Kind.TABLE)
            last, before = there.parameters.get(DDL_TIME, ""), places_of(there)
            changed = written(self.committed(hive_table(there), location), onto=there)
            self.require_unshared(changed, before, by_owner)
            return alter(metastore, changed, last, expected=(POINTER, previous))

    @contextmanager
    def _locked(self, database: str, table: str) -> Iterator[tuple[Metastore, bool]]:
        """A connection under the table's lock, and whether there is one."""
        with self._metastore() as metastore, locked(self.endpoints, metastore, database, table) as has_lock:
            yield metastore, has_lock

    def _same(self, metastore: Metastore, database: str, table: str, identity: str) -> Table:
        """The table as it is. Raises NotFound where it is another one by now."""
        there = read_table(metastore, database, table)
        if table_of(there).identity != identity:
            raise NotFound(f"Table {database}.{table} does not exist: another has its name now.", kind=Kind.TABLE)
        return there

    # Partitions

    def list_partitions(self, schema: Levels, table: str, page: str | None = None) -> Page:
        about = About(Kind.TABLE, f"{schema[0]}.{table}")
        with self._metastore() as metastore:
            _, keys = read_partitioned(metastore, schema[0], table)
            names = metastore.call("get_partition_names", schema[0], table, EVERY_PARTITION, about=about)
            chosen, following = part_of(sorted(names), page, PARTITIONS)
            found = metastore.call("get_partitions_by_names", schema[0], table, chosen, about=about) if chosen else []
            fitting = [partition_of(keys, each) for each in found if len(each.values) == len(keys)]
            return Page(sorted(fitting, key=lambda one: one.name), following)

    def load_partition(self, schema: Levels, table: str, partition: str) -> Remote:
        with self._metastore() as metastore:
            there, _ = read_partitioned(metastore, schema[0], table)
            return read_partition(metastore, there, partition)

    def add_partition(self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False) -> Remote:
        name = definition["name"]
        with self._metastore() as metastore:
            there, _ = read_partitioned(metastore, schema[0], table)
            if place := definition["location"]:
                self.require_unshared(there, places_of(there), by_owner, place)
            metastore.call("add_partition", partition_from(there, definition), about=About(PARTITION, name))
            with once_written():
                return read_partition(metastore, there, name)

    def drop_partition(
        self, schema: Levels, table: str, partition: str, by_owner: bool = False
    ) -> dict[str, str] | None:
        with self._metastore() as metastore:
            there, keys = read_partitioned(metastore, schema[0], table)
            values, why = partition_values(keys, partition), None
            if with_files := self.has_files(there):
                place = read_partition(metastore, there, partition).definition["location"]
                why = self.why_kept(self.folders(), there, [Place(place)] if place else [], by_owner)
            with_files = with_files and why is None
            metastore.call("drop_partition", schema[0], table, values, with_files, about=About(PARTITION, partition))
        return kept(why)
