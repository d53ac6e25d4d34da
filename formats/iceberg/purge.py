"""Purges a dropped table: deletes every file that is reachable from the metadata and owned by the table."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from formats.iceberg.manifests import content_paths, manifest_paths
from formats.iceberg.storage import delete_file, read_bytes
from formats.iceberg.table_locations import effective_locations, owned_by, referenced_files
from metalake.errors import Invalid, NotFound

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

log = logging.getLogger(__name__)

PURGE_THREADS = 8
PURGE_BATCH = 1_000
MAX_MANIFEST_BYTES = 64 * 1024 * 1024


Ask = Callable[[str, str, Callable[[], Any]], Any]
"""Wraps a storage call: gets the verb (`read_file`, `delete_file`), the location, and the function that makes it."""


def ask_directly(verb: str, location: str, act: Callable[[], Any]) -> Any:
    return act()


class Depth(IntEnum):
    """A file's depth below the metadata; deeper files are deleted first, so that a purge can be resumed."""

    CONTENT = 0
    MANIFEST = 1
    MANIFEST_LIST = 2


@dataclass
class Purged:
    """How many files were deleted, how many are not the table's, and how many of its own were left behind."""

    deleted: int = 0
    foreign: int = 0
    left_behind: int = 0  # with `gc.enabled=false` (data may be shared), counts manifests only


def reachable_files(
    io: FileIO, metadata: Mapping[str, Any], allowed: Sequence[str], file_roots: Sequence[str]
) -> Iterator[str]:
    """The files that a purge may delete, each once, in bounded memory: data and delete files, manifests, manifest
    lists, statistics, older metadata files.

    Only the table's own (`table_locations.owned_by`) are read or returned. With `gc.enabled=false` the data may be
    shared with another table and is left out, as in Iceberg's own catalogs. Raises ProviderUnavailable.
    """
    owns = owned_by(effective_locations(metadata), allowed, file_roots)
    for _, location in _walk(io, metadata, owns, Purged()):
        yield location


def purge(
    io: FileIO,
    metadata: Mapping[str, Any],
    metadata_location: str,
    owns: Callable[[str], bool],
    progress: Callable[[int], None] | None = None,
    *,
    ask: Ask = ask_directly,
) -> Purged:
    """Delete the files that a dropped table owns, its metadata file last.

    Idempotent: run it again after a crash; missing files are not an error. Directories are not removed.
    Raises ProviderUnavailable if the storage stops answering.
    """
    outcome = Purged()
    with ThreadPoolExecutor(PURGE_THREADS, thread_name_prefix="purge") as pool:
        for batch in _batches(_walk(io, metadata, owns, outcome, ask)):
            for depth in Depth:
                ready = [location for level, location in batch if level is depth]
                _count(outcome, pool.map(partial(_delete_own, io, ask), ready))
            if progress:
                progress(outcome.deleted)
    if owns(metadata_location):
        _count(outcome, [_delete_own(io, ask, metadata_location)])
    else:
        outcome.foreign += 1
    return outcome


def _count(outcome: Purged, deletions: Iterable[int | None]) -> None:
    for deleted in deletions:
        outcome.deleted += deleted or 0
        outcome.left_behind += deleted is None


def _walk(
    io: FileIO, metadata: Mapping[str, Any], owns: Callable[[str], bool], outcome: Purged, ask: Ask = ask_directly
) -> Iterator[tuple[Depth, str]]:
    """Every file of the table once, after the files that it references; skipped files are counted in `outcome`."""
    seen = _Seen()
    with_content = str((metadata.get("properties") or {}).get("gc.enabled", "true")).lower() != "false"
    read = partial(_named_in, io, ask, outcome)

    def is_new(location: str) -> bool:
        if not location or not seen.add(location):
            return False
        is_own = owns(location)
        outcome.foreign += not is_own
        return is_own

    for snapshot in metadata.get("snapshots") or ():
        manifest_list = snapshot.get("manifest-list") or ""
        new_list = is_new(manifest_list)
        manifests = read(manifest_list, manifest_paths) if new_list else snapshot.get("manifests") or ()
        for manifest in filter(is_new, manifests):
            if with_content:
                for file in filter(is_new, read(manifest, content_paths)):
                    yield Depth.CONTENT, file
            else:
                outcome.left_behind += 1
            yield Depth.MANIFEST, manifest
        if new_list:
            yield Depth.MANIFEST_LIST, manifest_list
    for location in filter(is_new, referenced_files(metadata)):
        yield Depth.CONTENT, location


def _named_in(
    io: FileIO, ask: Ask, outcome: Purged, location: str, paths: Callable[[bytes], Iterator[str]]
) -> Iterator[str]:
    """The paths in a manifest or manifest list; none if it is missing or unreadable."""
    try:
        yield from paths(ask("read_file", location, lambda: read_bytes(io, location, MAX_MANIFEST_BYTES)))
    except NotFound:
        return
    except Invalid as error:
        outcome.left_behind += 1
        log.warning("the purge leaves the files of %s: %s", location, error.message)


def _delete_own(io: FileIO, ask: Ask, location: str) -> int | None:
    """Delete a file; the number deleted, or None for a directory, which must not stop the purge."""
    try:
        deleted: int = ask("delete_file", location, lambda: delete_file(io, location))
        return deleted
    except Invalid as error:
        log.warning("the purge leaves a file: %s", error.message)
        return None


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
