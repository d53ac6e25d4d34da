"""Lists all locations in a metastore before it deletes or moves files, or puts a table on existing ones.

A metastore deletes a managed table's whole folder, including other tables' files in it, and has no call for the tables
in a folder. So all databases, tables and partitions are listed: a table may lie anywhere.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from hive_metastore.ttypes import Table

from formats.iceberg.locations import AZURE, BUCKETS, CLUSTERS, SAME_STORAGE
from formats.iceberg.table_locations import PATH_PROPERTIES
from metalake.errors import NotFound, ProviderTimeout, ProviderUnavailable, Unsupported
from metalake.kinds import Kind
from providers.hive.client import Metastore
from providers.hive.errors import About, Refused
from providers.hive_like.parameters import POINTER

LOOKS = 4  # attempts; a busy metastore sometimes has drops during two in a row
AT_ONCE = 200
LOOK_SECONDS = 8.0  # of a call's 30 seconds; a longer listing is cut off and incomplete
VIRTUAL_VIEW = "VIRTUAL_VIEW"
NAMED_PLACES = frozenset({"path", "avro.schema.url", POINTER, *PATH_PROPERTIES})
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", re.DOTALL)


class Reading(NamedTuple):
    """A parsed location; an empty storage or host matches any."""

    storage: str
    host: str
    segments: tuple[str, ...]

    def holds(self, other: Reading) -> bool:
        same_storage = not (self.storage and other.storage) or self.storage == other.storage
        same_host = not (self.host and other.host) or self.host == other.host
        return same_storage and same_host and other.segments[: len(self.segments)] == self.segments


class Place:
    """A location in any spelling that a metastore may have, with all its interpretations."""

    def __init__(self, text: str) -> None:
        self.text = text
        url = SCHEME.fullmatch(text)
        scheme, host, path = (url[1].lower(), url[2] or "", url[3]) if url else ("", "", text)
        storage = "hdfs" if scheme in CLUSTERS else SAME_STORAGE.get(scheme, scheme)
        if scheme in AZURE:
            host = host.replace(".blob.", ".dfs.", 1)
        elif scheme not in BUCKETS:
            host = ""  # a cluster may have several names
        paths = {posixpath.normpath(f"/{each}") for each in (path, unquote(path))}  # some engines URL-decode a path
        if storage in ("file", ""):
            paths |= {os.path.realpath(path) for path in paths}  # symbolic links resolved
        self.readings = [Reading(storage, host, tuple(filter(None, path.split("/")))) for path in paths]

    def holds(self, other: Place) -> bool:
        """Whether deleting this location might delete the other; True in doubt."""
        return any(one.holds(another) for one in self.readings for another in other.readings)


class OwnedPlace(NamedTuple):
    """The location of a table or, with an empty table name, of a database."""

    database: str
    table: str
    place: Place

    def is_of(self, table: Table) -> bool:
        return (self.database, self.table) == (table.dbName, table.tableName)


@dataclass(frozen=True)
class Folders:
    """The locations of all tables and databases; `is_whole` is False if the listing is incomplete."""

    owned: list[OwnedPlace]
    is_whole: bool

    def hold_others(self, place: Place, table: Table) -> bool:
        """Whether a location contains one of another table or database."""
        return any(place.holds(one.place) for one in self.owned if not one.is_of(table))

    def are_others(self, place: Place, table: Table, database: str) -> bool:
        """Whether a location contains one of another table or database, or lies inside one.

        Database folders that contain the table's own database, such as that of `default`, do not count: all its tables
        lie in them.
        """
        home = next((one.place for one in self.owned if (one.database, one.table) == (database, "")), None)

        def is_around(one: OwnedPlace) -> bool:
            return not one.table and home is not None and one.place.holds(home)

        return any(
            place.holds(one.place) or (one.place.holds(place) and not is_around(one))
            for one in self.owned
            if not one.is_of(table)
        )

    def of(self, table: Table) -> list[Place]:
        """The locations of a table and its partitions."""
        return [one.place for one in self.owned if one.is_of(table)]


def listed(metastore: Metastore) -> Folders:
    """The locations of all tables and databases. Raises ProviderUnavailable if a retry may succeed.

    A metastore fails a listing if something in it is dropped concurrently, so it is retried.
    """
    until = time.monotonic() + LOOK_SECONDS
    for _ in range(LOOKS):
        folders = _listed_until(until, metastore)
        if folders.is_whole or time.monotonic() > until:
            break
    return folders


def _listed_until(until: float, metastore: Metastore) -> Folders:
    owned: list[OwnedPlace] = []
    try:
        for one in _all_places(metastore):
            owned.append(one)
            if time.monotonic() > until:
                return Folders(owned, is_whole=False)
    except (NotFound, Unsupported, Refused, ProviderTimeout):  # it cannot list them, or not in time
        return Folders(owned, is_whole=False)
    except ProviderUnavailable as failure:
        if failure.retryable:
            raise
        return Folders(owned, is_whole=False)
    return Folders(owned, is_whole=True)


def _all_places(metastore: Metastore) -> Iterator[OwnedPlace]:
    databases = metastore.call("get_all_databases", about=About(Kind.CATALOG, "databases"))
    for database in databases:
        try:
            place = metastore.call("get_database", database, about=About(Kind.SCHEMA, database)).locationUri
        except NotFound:
            continue
        yield from _in_places(database, "", [place])
    partitioned = []
    for database in databases:
        about = About(Kind.SCHEMA, database)
        for chosen in _portions(metastore.call("get_all_tables", database, about=about)):
            for table in metastore.call("get_table_objects_by_name", database, chosen, about=about):
                if table.tableType == VIRTUAL_VIEW and POINTER not in (table.parameters or {}):
                    continue  # only Iceberg's views have files
                yield from _in_places(database, table.tableName, places_of(table))
                if table.partitionKeys:
                    partitioned.append((database, table.tableName))
    for database, name in partitioned:
        yield from _partitions(metastore, database, name)


def _partitions(metastore: Metastore, database: str, table: str) -> Iterator[OwnedPlace]:
    about = About(Kind.TABLE, f"{database}.{table}")
    try:
        for chosen in _portions(metastore.call("get_partition_names", database, table, -1, about=about)):
            for one in metastore.call("get_partitions_by_names", database, table, chosen, about=about):
                yield from _in_places(database, table, [one.sd.location if one.sd else None])
    except NotFound:
        return  # dropped concurrently


def _portions(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), AT_ONCE):
        yield names[start : start + AT_ONCE]


def _in_places(database: str, table: str, places: Iterable[str | None]) -> Iterator[OwnedPlace]:
    for place in places:
        if place:
            yield OwnedPlace(database, table, Place(place))


def places_of(table: Table) -> list[str]:
    """The locations of an entry's files: the table's own, and those in parameters that engines read instead."""
    storage = table.sd
    serde = storage.serdeInfo.parameters if storage and storage.serdeInfo else None
    parameters = {**(table.parameters or {}), **(serde or {})}
    named = [value for key, value in parameters.items() if key.strip().lower() in NAMED_PLACES]
    return [place for place in dict.fromkeys([storage.location if storage else None, *named]) if place]


def beside(places: Iterable[Place], *within: Place) -> list[Place]:
    """The locations that lie neither in one of `within` nor in an earlier one of `places`."""
    chosen: list[Place] = []
    for place in places:
        if not any(other.holds(place) for other in (*within, *chosen)):
            chosen.append(place)
    return chosen
