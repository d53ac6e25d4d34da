"""Which files we may let a metastore delete or move, and where a table may lie.

We list all of the metastore's entries to see whose files lie in a folder, and the folder itself to see files without an
entry. If that fails, only the catalog's owner, who is responsible for the files, may have them deleted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hive_metastore.ttypes import Table

from formats.hive.tables import VIEW_TYPES
from formats.iceberg import locations, storage
from metalake.errors import Invalid, MetalakeError, NotFound, Unsupported
from metalake.kinds import Kind
from metalake.protected_files import protected_files
from providers.hive import folders as hive_folders
from providers.hive.calls import drop
from providers.hive.catalog import HiveCatalog
from providers.hive.client import Metastore
from providers.hive.folders import Folders, Place, beside, places_of
from providers.hive.objects import hive_table
from providers.hive_like.iceberg_entries import written_for
from providers.remote_objects import Json

OWNER = "the owner of the catalog can have them deleted"
OTHERS = "files of other tables or schemas lie among its own, so they stay"
OURS = "files of this server itself lie among its own, so they stay"
UNLISTED = f"the metastore is too large to see in time whose files lie in its folder, so they stay; {OWNER}"
UNSEEN = f"its folder cannot be looked at from here, so its files stay; {OWNER}"
TO_ASK = "leave the location out, or ask the owner of the catalog, to whom all its places are open"
FRESH = re.compile(r"-[0-9a-f]{32}")  # the suffix that `HiveLikePointers.place` gives a new table's folder
MOST = 16  # folders to list per table


class TableFiles:
    """The files of one catalog's tables."""

    def __init__(self, catalog: HiveCatalog) -> None:
        self.catalog = catalog

    def folders(self) -> Folders:
        """List all locations, on a separate connection: a timeout makes the connection unusable."""
        with self.catalog.metastore() as metastore:
            return hive_folders.listed(metastore)

    def is_empty(self, place: str) -> bool | None:
        """Whether a folder is empty or missing; None if this server cannot list it."""
        if place.partition("://")[0].lower() in locations.CLUSTERS:
            return None
        try:
            return storage.is_empty(self.catalog.io, self.catalog.pointers.files(place).allowed_place(place))
        except NotFound:
            return False  # the path is a file
        except MetalakeError:
            return None

    # Files to delete or move

    def has_files(self, table: Table) -> bool:
        """Whether a drop deletes the table's files: for managed tables, but not Iceberg tables or views."""
        described = hive_table(table)
        is_iceberg = self.catalog.pointers.location(described.as_json()) is not None
        return not (described.is_view or described.is_external or is_iceberg)

    def why_files_stay(self, folders: Folders, table: Table, places: Sequence[Place], by_owner: bool) -> str | None:
        """Why a metastore may not delete a table's files in these locations; None if it may."""
        places = beside(places)
        if any(folders.hold_others(place, table) for place in places):
            return OTHERS
        if any(place.holds(Place(f"file://{file}")) for place in places for file in protected_files()):
            return OURS
        if by_owner:
            return None
        if not folders.is_whole:
            return UNLISTED
        is_seen = len(places) <= MOST and all(self.is_empty(place.text) is not None for place in places)
        return None if is_seen else UNSEEN

    def drop(
        self, metastore: Metastore, there: Table, folders: Folders | None, by_owner: bool, *, purge: bool = False
    ) -> str | None:
        """Drop the table; returns why files stay that a metastore would have deleted, or None.

        Raises Unsupported for a purge if they must stay.
        """
        with_files, why = False, None
        if self.has_files(there) and folders is not None:
            places = [*map(Place, places_of(there)[:1]), *folders.of(there)]
            why = self.why_files_stay(folders, there, places, by_owner)
            with_files = why is None
        if why and purge:
            message = f"Table {there.dbName}.{there.tableName} was not purged: {why}. A drop without purge is possible."
            raise Unsupported(message, kind=Kind.TABLE)
        drop(metastore, there.dbName, there.tableName, with_files=with_files, purge=purge and with_files)
        return why

    def require_movable(self, table: Table, database: str, goal: str | None, name: str, by_owner: bool) -> None:
        """Raise Invalid if a rename might move other tables' files, or move this one's among them.

        `goal` is the folder of the target database.
        """
        is_moved = (table.parameters or {}).get("EXTERNAL", "").upper() != "TRUE"  # all that a metastore checks
        if table.tableType in VIEW_TYPES or not (is_moved and goal and table.sd and table.sd.location):
            return
        folders, target = self.folders(), f"{goal.removesuffix('/')}/{name}"
        if folders.hold_others(Place(table.sd.location), table):
            raise Invalid(f"A rename moves the table's files: {OTHERS}.", kind=Kind.TABLE)
        if folders.are_others(Place(target), table, database) or self.is_empty(target) is False:
            raise Invalid(
                f"A rename moves the table's files: {target} is not free; choose another name.", kind=Kind.TABLE
            )
        if not (by_owner or folders.is_whole):
            raise Invalid(
                "A rename moves the table's files, and the metastore is too large to see in time whose they are; ask "
                "the owner of the catalog to rename it.",
                kind=Kind.TABLE,
            )

    # New tables and places

    def is_fresh(self, definition: Json, plan: Json | None) -> bool:
        """Whether a new Iceberg table goes into an empty folder with a unique name, as by default."""
        pointer = written_for(definition, plan)
        place = (pointer or "").rpartition("/metadata/")[0]
        return bool(FRESH.search(place[-33:])) and self.is_empty(place) is True

    def require_place(self, table: Table, home: str | None, by_owner: bool) -> None:
        """Raise Invalid if a new table would take over existing files of other or dropped tables."""
        if table.tableType in VIEW_TYPES:
            return
        place = table.sd.location or (f"{home.removesuffix('/')}/{table.tableName}" if home else None)
        if place and (self.has_files(table) or not table.sd.location) and self.is_empty(place) is False:
            raise Invalid(
                f"{place} holds files already, and a table that is made there would take them over; remove them, or "
                "make an EXTERNAL_TABLE with that location.",
                kind=Kind.TABLE,
            )
        if not self.has_files(table):
            self.require_unshared(table, [], by_owner)

    def require_unshared(self, table: Table, before: Sequence[str], by_owner: bool, *more: str) -> None:
        """Raise Invalid if a table's new location has other tables' files; `before` are its present locations."""
        new = beside(map(Place, (*places_of(table), *more)), *map(Place, before))
        if by_owner or not new:
            return
        folders = self.folders()
        for place in new:
            if not folders.is_whole or folders.are_others(place, table, table.dbName):
                why = "overlaps what is there" if folders.is_whole else "may overlap what is there"
                raise Invalid(f"Location {place.text!r:.200} {why}; {TO_ASK}.", kind="location")
