"""What lies where in a metastore: asked before it is told to delete or to move files, or to put a table on some.

A metastore deletes the folder of a managed table with it, whoever else's files are in it, and knows nothing of which
tables lie in a folder. So its databases, tables and partitions are listed, all of them: a table may lie anywhere.
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
from providers.hive_like.meaning import POINTER

LOOK_SECONDS = 8.0  # of a call's 30: a metastore that is larger than what is listed meanwhile is not looked through
AT_ONCE = 500
ALL = "*"
VIRTUAL_VIEW = "VIRTUAL_VIEW"
NAMED_PLACES = frozenset({"path", "avro.schema.url", POINTER, *PATH_PROPERTIES})
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", re.DOTALL)


class Reading(NamedTuple):
    """A place taken apart; an empty storage or host may be any."""

    storage: str
    host: str
    segments: tuple[str, ...]

    def holds(self, other: Reading) -> bool:
        same_storage = not (self.storage and other.storage) or self.storage == other.storage
        same_host = not (self.host and other.host) or self.host == other.host
        return same_storage and same_host and other.segments[: len(self.segments)] == self.segments


class Place:
    """A place as a metastore has it, in whatever spelling."""

    def __init__(self, text: str) -> None:
        self.text = text
        url = SCHEME.fullmatch(text)
        scheme, host, path = (url[1].lower(), url[2] or "", url[3]) if url else ("", "", text)
        storage = "hdfs" if scheme in CLUSTERS else SAME_STORAGE.get(scheme, scheme)
        if scheme in AZURE:
            host = host.replace(".blob.", ".dfs.", 1)
        elif scheme not in BUCKETS:
            host = ""  # a cluster goes by several names
        paths = {posixpath.normpath(f"/{each}") for each in (path, unquote(path))}  # some engines decode it
        if storage in ("file", ""):
            paths |= {os.path.realpath(path) for path in paths}  # whatever symbolic links lead to is meant, too
        self.readings = [Reading(storage, host, tuple(filter(None, path.split("/")))) for path in paths]

    def holds(self, other: Place) -> bool:
        """Whether what deletes this one might delete the other: in doubt it would."""
        return any(one.holds(another) for one in self.readings for another in other.readings)


class Lying(NamedTuple):
    """Something of a table, or of a database where the table is empty, that lies in a place."""

    database: str
    table: str
    place: Place

    def is_of(self, table: Table) -> bool:
        return (self.database, self.table) == (table.dbName, table.tableName)


@dataclass(frozen=True)
class Folders:
    """What was found to lie somewhere; `is_whole` where that is all."""

    lying: list[Lying]
    is_whole: bool

    def hold_others(self, place: Place, table: Table) -> bool:
        """Whether anything that is not the table's lies in a place."""
        return any(place.holds(one.place) for one in self.lying if not one.is_of(table))

    def are_others(self, place: Place, table: Table, database: str) -> bool:
        """Whether a place holds what is not the table's, or is part of it; everything in the table's database lies in
        the folders that hold that one, such as that of `default`.
        """
        home = next((one.place for one in self.lying if (one.database, one.table) == (database, "")), None)

        def is_around(one: Lying) -> bool:
            return not one.table and home is not None and one.place.holds(home)

        return any(
            place.holds(one.place) or (one.place.holds(place) and not is_around(one))
            for one in self.lying
            if not one.is_of(table)
        )

    def of(self, table: Table) -> list[Place]:
        """Where a table's own files are, its partitions' included."""
        return [one.place for one in self.lying if one.is_of(table)]


def listed(metastore: Metastore) -> Folders:
    """Everything that lies anywhere, as far as the metastore says it. Raises ProviderUnavailable: try again."""
    lying: list[Lying] = []
    until = time.monotonic() + LOOK_SECONDS
    try:
        for one in _lying(metastore):
            lying.append(one)
            if time.monotonic() > until:
                return Folders(lying, is_whole=False)
    except (Unsupported, Refused, ProviderTimeout):  # it does not list them so, or not in time
        return Folders(lying, is_whole=False)
    except ProviderUnavailable as failure:
        if failure.retryable:
            raise
        return Folders(lying, is_whole=False)
    return Folders(lying, is_whole=True)


def _lying(metastore: Metastore) -> Iterator[Lying]:
    about = About(Kind.CATALOG, "tables")
    for database in metastore.call("get_all_databases", about=About(Kind.CATALOG, "databases")):
        try:
            place = metastore.call("get_database", database, about=About(Kind.SCHEMA, database)).locationUri
        except NotFound:
            continue
        yield from _in_places(database, "", [place])
    tables: dict[str, list[str]] = {}
    for one in metastore.call("get_table_meta", ALL, ALL, [], about=about):
        if one.tableType != VIRTUAL_VIEW:  # which alone has no files
            tables.setdefault(one.dbName, []).append(one.tableName)
    partitioned = []
    for database, names in tables.items():
        for chosen in _portions(names):
            for table in metastore.call("get_table_objects_by_name", database, chosen, about=about):
                yield from _in_places(database, table.tableName, places_of(table))
                if table.partitionKeys:
                    partitioned.append((database, table.tableName))
    for database, name in partitioned:
        yield from _partitions(metastore, database, name)


def _partitions(metastore: Metastore, database: str, table: str) -> Iterator[Lying]:
    about = About(Kind.TABLE, f"{database}.{table}")
    try:
        for chosen in _portions(metastore.call("get_partition_names", database, table, -1, about=about)):
            for one in metastore.call("get_partitions_by_names", database, table, chosen, about=about):
                yield from _in_places(database, table, [one.sd.location if one.sd else None])
    except NotFound:
        return  # dropped meanwhile


def _portions(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), AT_ONCE):
        yield names[start : start + AT_ONCE]


def _in_places(database: str, table: str, places: Iterable[str | None]) -> Iterator[Lying]:
    for place in places:
        if place:
            yield Lying(database, table, Place(place))


def places_of(table: Table) -> list[str]:
    """Where an entry says that its files are: the table's own location, and what engines and Iceberg read instead."""
    storage = table.sd
    serde = storage.serdeInfo.parameters if storage and storage.serdeInfo else None
    parameters = {**(table.parameters or {}), **(serde or {})}
    named = [value for key, value in parameters.items() if key.strip().lower() in NAMED_PLACES]
    return [place for place in dict.fromkeys([storage.location if storage else None, *named]) if place]


def beside(places: Iterable[Place], *within: Place) -> list[Place]:
    """Those that lie in none of the others, nor in one another."""
    chosen: list[Place] = []
    for place in places:
        if not any(other.holds(place) for other in (*within, *chosen)):
            chosen.append(place)
    return chosen
