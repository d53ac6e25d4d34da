"""The purge of a dropped table: every file its metadata leads to, and none that belongs to somebody else."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from catalogs.iceberg.files import delete_file, read_bytes
from catalogs.iceberg.locations import owned_by, referenced_files
from catalogs.iceberg.manifests import content_paths, manifest_paths
from metalake.errors import Invalid, NotFound

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

log = logging.getLogger(__name__)

PURGE_THREADS = 8
PURGE_BATCH = 1_000
MAX_MANIFEST_BYTES = 64 * 1024 * 1024


class Depth(IntEnum):
    """How deep a file lies below the metadata; the deeper ones go first, so that a purge cut short can be resumed."""

    CONTENT = 0
    MANIFEST = 1
    MANIFEST_LIST = 2


def reachable_files(
    io: FileIO, metadata: Mapping[str, Any], allowed: Sequence[str], file_roots: Sequence[str]
) -> Iterator[str]:
    """The files a purge may delete, each once, in bounded memory: data, deletes, manifests, their lists, statistics,
    older metadata files.

    Only the table's own (`locations.owned_by`) are read or returned. With `gc.enabled=false` the data may be shared
    with another table and is left out, as in Iceberg's own catalogs. Raises ProviderUnavailable.
    """
    for _, location in _walk(io, metadata, owned_by(metadata, allowed, file_roots)):
        yield location


def purge(
    io: FileIO,
    metadata: Mapping[str, Any],
    metadata_location: str,
    allowed: Sequence[str],
    file_roots: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> int:
    """Delete a dropped table's files, its metadata file last, and return how many there were.

    Running it again after a crash finishes the work; files already gone are fine. Directories are not removed.
    Raises ProviderUnavailable if the storage stops answering.
    """
    owns = owned_by(metadata, allowed, file_roots)
    deleted = 0
    with ThreadPoolExecutor(PURGE_THREADS, thread_name_prefix="purge") as pool:
        for batch in _batches(_walk(io, metadata, owns)):
            for depth in Depth:
                ready = [location for level, location in batch if level is depth]
                deleted += sum(pool.map(partial(_delete_own, io), ready))
            if progress:
                progress(deleted)
    return deleted + (_delete_own(io, metadata_location) if owns(metadata_location) else 0)


def _walk(io: FileIO, metadata: Mapping[str, Any], owns: Callable[[str], bool]) -> Iterator[tuple[Depth, str]]:
    """Every file of the table once, what a file names before the file itself."""
    seen = _Seen()
    with_content = str((metadata.get("properties") or {}).get("gc.enabled", "true")).lower() != "false"

    def is_new(location: str) -> bool:
        return owns(location) and seen.add(location)

    for snapshot in metadata.get("snapshots") or ():
        manifest_list = snapshot.get("manifest-list") or ""
        new_list = is_new(manifest_list)
        manifests = _named_in(io, manifest_list, manifest_paths) if new_list else snapshot.get("manifests") or ()
        for manifest in filter(is_new, manifests):
            if with_content:
                for file in filter(is_new, _named_in(io, manifest, content_paths)):
                    yield Depth.CONTENT, file
            yield Depth.MANIFEST, manifest
        if new_list:
            yield Depth.MANIFEST_LIST, manifest_list
    for location in filter(is_new, referenced_files(metadata)):
        yield Depth.CONTENT, location


def _named_in(io: FileIO, location: str, paths: Callable[[bytes], Iterator[str]]) -> Iterator[str]:
    """What a manifest or manifest list names; nothing if it is gone already or nobody can read it."""
    try:
        yield from paths(read_bytes(io, location, MAX_MANIFEST_BYTES))
    except NotFound:
        return
    except Invalid as error:
        log.warning("The purge leaves behind what %s names: %s", location, error.message)


def _delete_own(io: FileIO, location: str) -> int:
    """Delete what is a file; metadata that names a directory must not stop the purge."""
    try:
        return delete_file(io, location)
    except Invalid as error:
        log.warning("The purge leaves something behind: %s", error.message)
        return 0


def _batches(files: Iterator[tuple[Depth, str]]) -> Iterator[list[tuple[Depth, str]]]:
    batch: list[tuple[Depth, str]] = []
    for file in files:
        batch.append(file)
        if len(batch) == PURGE_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


class _Seen:
    """A set of locations that spills to a temporary file, since a table may have many millions."""

    def __init__(self) -> None:
        self.database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.database.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        self.database.execute("BEGIN")

    def add(self, location: str) -> bool:
        """Whether the location is new."""
        digest = blake2b(location.encode(), digest_size=16).digest()
        return self.database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1
