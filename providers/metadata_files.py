"""Iceberg metadata files: where they may lie; reading, writing and removing them.

A managed catalog has one MetadataFiles; each table of an external catalog has its own, which also allows the locations
that the outside system returns for the table.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django.conf import settings

from formats.iceberg import files, forbidden_properties, locations, metadata_json, storage, table_locations
from formats.iceberg.column_names import check_column_names
from formats.iceberg.folders import table_folder
from formats.iceberg.metadata_cache import MetadataCache, ParsedCache
from formats.iceberg.purge import MAX_MANIFEST_BYTES, Purged, purge
from metalake.blocking import is_short, may_block
from metalake.errors import Invalid, MetalakeError, NotFound, ProviderTimeout, TooLarge
from providers import remote
from providers.deadline import require_time

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_PLACE_BYTES = locations.MAX_LENGTH - 128  # leaves room for the names of its files
METADATA = MetadataCache(settings.METALAKE_METADATA_CACHE // settings.METALAKE_PROCESSES)
PARSED = ParsedCache(METADATA.max_bytes // 8)
EXPIRE_FIRST = (
    "Expire the table's snapshots in the catalog where it is now, and register the metadata file that this writes: "
    "in Spark CALL <catalog>.system.expire_snapshots(table => '<schema>.<table>', older_than => TIMESTAMP '...'), "
    "in Trino ALTER TABLE <table> EXECUTE expire_snapshots(retention_threshold => '7d')."
)
SMALL = 64 * 1024  # bytes: the largest file that a short read may read


def _own_disk() -> str:
    """The prefix of locations on the disk of our own SQLite store, which short reads use anyway; "" if there are none.

    Checked once, since a stat on a network disk may hang.
    """
    warehouse = settings.METALAKE_HOME / "warehouse"
    if not settings.ON_SQLITE or warehouse.is_symlink() or warehouse.is_mount():
        return ""
    return f"file://{warehouse}/"


OWN_DISK = _own_disk()


class MetadataFiles:
    """Metadata files below the allowed locations; opens the storage lazily."""

    def __init__(
        self,
        catalog_id: int,
        open_io: Callable[[], FileIO],
        allowed: Sequence[str],
        file_roots: Sequence[str],
        warehouse: str = "",
        places: Sequence[str] = (),
        *,
        case_twins: bool = False,
    ) -> None:
        """`places` are one table's, allowed as well as the catalog's; `case_twins` allows columns that differ only by
        case.
        """
        self.catalog_id = catalog_id
        self.shared, self.allowed = list(allowed), [*allowed, *places]
        self.file_roots, self.warehouse = list(file_roots), warehouse
        self.case_twins = case_twins
        self._open_io = open_io

    @cached_property
    def io(self) -> FileIO:
        return self._open_io()

    def place(self, folder: str, name: str, uuid: UUID, asked: str | None) -> str:
        """A new table's location: the requested one, or one in its schema's folder. Raises Invalid."""
        asked = asked or table_folder(folder, name, uuid)
        return locations.check_allowed(asked, self.allowed, file_roots=self.file_roots)

    def check_metadata(self, metadata: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> None:
        """Check all properties and locations of the metadata, whether or not changed since `base`, and the names of
        changed columns. Raises Invalid.
        """
        forbidden_properties.check_properties(metadata.get("properties") or {})
        check_column_names(metadata, base, case_twins=self.case_twins)
        table_locations.check_metadata_locations(metadata, self.allowed, self.file_roots)
        for claim in self.claims(metadata):
            if any(locations.is_under(place, claim) for place in self.shared):
                raise Invalid(f"{claim} is the catalog's; a table takes a folder below it.", kind="location")
            if len(claim.encode()) > MAX_PLACE_BYTES:
                raise Invalid(f"A table's location may take {MAX_PLACE_BYTES} bytes.", kind="location")

    def claims(self, metadata: Mapping[str, Any]) -> list[str]:
        """The canonical locations that the table writes to, without those below another one."""
        places = sorted({locations.canonical(place) for place in table_locations.effective_locations(metadata)})
        return [
            place
            for place in places
            if not any(place != other and locations.is_under(place, other) for other in places)
        ]

    def make_folders(self, location: str, *paths: str) -> None:
        """Create the local folders that a client writes to before it commits a staged table: DuckDB does not.

        Raises ProviderUnavailable, and Invalid if a folder cannot be created or lies outside the allowed locations.
        """
        own = location.removesuffix("/")
        for place in (f"{own}/data", f"{own}/metadata", *paths):
            if locations.is_local(place):
                storage.make_folder(locations.check_allowed(place, self.allowed, file_roots=self.file_roots))

    def _reach(self, verb: str, location: str, act: Callable[[], T], *, waits: bool = True) -> T:
        """Call `act` on a file with its storage's deadline and circuit breaker; on local disks without them."""
        if locations.is_local(location):
            may_block()  # may be a network disk
            return act()
        return remote.reach(self.catalog_id, verb, act, waits=waits)

    def read(self, location: str) -> bytes:
        """The content of a metadata file, perhaps cached. Raises NotFound, TooLarge, ProviderUnavailable."""
        content = METADATA.get(self.catalog_id, location)
        if content is None:
            content = self._read(location)
            METADATA.put(self.catalog_id, location, content)
        return content

    def _read(self, location: str, *, waits: bool = True) -> bytes:
        if is_short() and OWN_DISK and location.startswith(OWN_DISK):
            content = files.read_small_metadata(location, SMALL)
            if content is not None:
                return content
        return self._reach(remote.READ_FILE, location, lambda: files.read_metadata(self.io, location), waits=waits)

    def read_manifest(self, location: str) -> bytes:
        """The content of a manifest. Raises NotFound, TooLarge, ProviderUnavailable."""
        return self._reach(
            remote.READ_FILE, location, lambda: storage.read_bytes(self.io, location, MAX_MANIFEST_BYTES)
        )

    def allowed_place(self, location: str) -> str:
        """The canonical form of a location. Raises Invalid if the catalog does not allow it."""
        return locations.canonical(locations.check_allowed(location, self.allowed, file_roots=self.file_roots))

    def read_foreign(self, location: str) -> bytes:
        """The content of a caller's metadata file. Raises Invalid if missing or not allowed, TooLarge."""
        self.allowed_place(location)
        try:
            content = self._read(location)
        except NotFound as missing:
            raise Invalid(missing.message, kind="metadata-file") from None
        except TooLarge as large:
            raise TooLarge(f"{large.message}. {EXPIRE_FIRST}", kind="metadata-file") from None
        storage.make_durable(location)
        METADATA.put(self.catalog_id, location, content)  # a former file of that name may be cached
        return content

    def write(self, metadata: dict[str, Any], previous: str | None) -> tuple[str, bytes]:
        """Write a new metadata file; returns its location and content."""
        location, content = self._reach(
            "write_file",
            metadata["location"],
            lambda: self._write_in_time(metadata, metadata_json.next_version(previous)),
        )
        METADATA.put(self.catalog_id, location, content)
        PARSED.put(content, metadata)
        return location, content

    def forget(self, location: str) -> None:
        """Evict a file that nothing points to any more from the cache."""
        METADATA.forget(self.catalog_id, location)

    def _write_in_time(self, metadata: Mapping[str, Any], version: int) -> tuple[str, bytes]:
        """Write a file; remove it if the deadline has passed, as nothing will point to it."""
        written = files.write_metadata(self.io, metadata, version=version)
        try:
            require_time()
        except ProviderTimeout:
            storage.delete_quietly(self.io, written[:1])
            raise
        return written

    def discard(self, *written: str) -> None:
        """Remove metadata files that nothing points to."""
        for location in written:
            METADATA.forget(self.catalog_id, location)
        for location in written[:1]:
            try:
                self._reach("delete_file", location, lambda: storage.delete_quietly(self.io, written))
            except MetalakeError as failure:
                log.warning("Files were left behind, the first of them %s: %s", location, failure.message)

    def is_there(self, written: str) -> bool:
        """Whether a written file still exists; assumed for remote files, since only local ones are vacuumed."""
        return not locations.is_local(written) or os.path.isfile(locations.real_path(written))

    def remove(self, written: str) -> None:
        """Remove one metadata file. Unlike `discard`, raises ProviderUnavailable if that fails."""
        METADATA.forget(self.catalog_id, written)
        self._reach("delete_file", written, lambda: storage.delete_file(self.io, written))

    def purge(self, metadata_location: str, places: Sequence[str] | None = None, spared: Sequence[str] = ()) -> Purged:
        """Delete all of a table's files in its `places` except in the `spared` ones, its metadata file last.

        `places` defaults to the locations in its metadata. A second run resumes where the first stopped; it is a no-op
        if the metadata file is missing from a reachable storage. Raises ProviderUnavailable.
        """
        METADATA.forget(self.catalog_id, metadata_location)
        try:
            metadata = metadata_json.parse_metadata(self._read(metadata_location, waits=False))
        except NotFound:
            if not locations.is_local(metadata_location):
                self._reach(
                    remote.READ_FILE, metadata_location, lambda: storage.require_reachable(self.io, metadata_location)
                )
            return Purged()
        own = table_locations.effective_locations(metadata) if places is None else places
        owns = table_locations.owned_by(own, self.allowed, self.file_roots, spared)
        return purge(self.io, metadata, metadata_location, owns, ask=partial(self._reach, waits=False))
