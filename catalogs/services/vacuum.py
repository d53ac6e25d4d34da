"""Find and remove orphans that killed processes leave on local disks: metadata files and empty folders.

A file is removed only if all of this is true: it is in a place of a managed table or view, reached without links; its
name and content show that this server wrote it for that object; no pointer, log or commit references it; it is a day
old. All is checked again with the object's row locked, and a commit checks under the same lock that its file still
exists (`managed.pointers.move_pointer`).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from django.db import connection, transaction

from catalogs.lookup import by_id
from catalogs.models import Catalog, LocationClaim, ReservedPlace
from catalogs.services import claims
from catalogs.services.provider_of import files_in, provider_of, provider_with_locations
from catalogs.services.table_files import TableFiles, logged_names, metadata_at, pointer_models
from catalogs.stores import keeps_tables_here
from formats.iceberg import locations, metadata_json
from metalake.errors import Invalid, MetalakeError
from metalake.events import event_of, record
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import below
from providers.metadata_files import MetadataFiles

DAY = 86_400.0
MADE_FOR_A_TABLE = frozenset({"data", "metadata"})


@dataclass(frozen=True)
class Orphan:
    """An orphaned metadata file; `size` in bytes, `age` in seconds."""

    path: str
    size: int
    age: float
    kind: Kind
    object_id: int
    name: str
    place: str


@dataclass(frozen=True)
class EmptyFolder:
    """An empty folder of a table that was dropped or never created; `age` in seconds, of its newest entry."""

    path: str
    age: float
    catalog_id: int
    catalog: str


@dataclass(frozen=True)
class Unsearched:
    """What was not fully searched, and why."""

    what: str
    why: str


Finding = Orphan | EmptyFolder | Unsearched


def now() -> float:
    """The earlier of the database's and this machine's clock, so that no file seems older than it is."""
    here = time.time()
    if connection.vendor != "postgresql":
        return here
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        return min(here, float(cursor.fetchone()[0]))


class _Operator:
    name = "manage.py"


OPERATOR = _Operator()


class Vacuum:
    """A search of the managed tables' places on local disks; findings are at least `age` seconds old."""

    def __init__(self, age: float = DAY) -> None:
        self.age = max(age, DAY)

    def find(self) -> Iterator[Finding]:
        for row in Catalog.objects.order_by("pk"):
            try:
                provider = provider_of(row)
            except MetalakeError as failure:
                yield Unsearched(f"catalog {row.name}", failure.message)
                continue
            if keeps_tables_here(row):
                yield from self._in_tables(row, provider.files)
                yield from self._beside_tables(row, provider.files)

    def remove(self, finding: Orphan | EmptyFolder) -> bool:
        """Check a finding again and remove it; False if anything has changed.

        Raises OSError, MetalakeError if the table cannot be read, OperationalError on a lock timeout.
        """
        return self._remove_file(finding) if isinstance(finding, Orphan) else self._remove_folder(finding)

    # Files

    def _in_tables(self, row: Catalog, own_files: MetadataFiles) -> Iterator[Finding]:
        remote = 0
        for pk, _, _ in list(_pointers_in(row)):
            located = by_id(pk)
            if located is None:
                continue
            places = LocationClaim.objects.filter(securable_id=pk).values_list("location", flat=True)
            local = [place for place in places if locations.is_local(place)]
            remote += not local
            try:
                yield from self._in_table(located, own_files, local)
            except MetalakeError as failure:
                yield Unsearched(f"{located.kind} {_name(located)}", failure.message)
        if remote:
            why = "they lie in a storage, which no commit asks again whether its file is there."
            yield Unsearched(f"{remote} tables and views of catalog {row.name}", why)

    def _in_table(self, located: Located, own_files: MetadataFiles, places: Iterable[str]) -> Iterator[Finding]:
        table: TableFiles | None = None
        for place in places:
            if why := self._why_excluded(place, own_files):
                yield Unsearched(f"place {place} of {located.kind} {_name(located)}", why)
                continue
            for path, status in _written_here(_path(place)):
                whose = (located.kind, located.id, _name(located), place)
                orphan = Orphan(path, status.st_size, now() - status.st_mtime, *whose)
                if orphan.age < self.age:
                    continue
                table = table or TableFiles(located, own_files)
                if (
                    not table.names(path)
                    and table.is_written_here(path)
                    and os.path.basename(path) not in self._named_anywhere
                ):
                    yield orphan

    def _why_excluded(self, place: str, own_files: MetadataFiles) -> str:
        """Why nothing may be removed in a place; "" if it may."""
        try:
            locations.check_allowed(place, own_files.allowed, file_roots=own_files.file_roots)
        except Invalid as refusal:
            return refusal.message
        if not any(_lies_straight(place, folder) for folder in own_files.allowed):
            return "a link leads there."
        if any(locations.overlap(place, other) for other in self._outside):
            return "an outside catalog has it, too."
        return ""

    @cached_property
    def _outside(self) -> list[str]:
        """The locations of catalogs with outside tables."""
        places: list[str] = []
        for row in Catalog.objects.all():
            with suppress(MetalakeError):
                provider = provider_with_locations(row.pk, row.provider, row.properties)
                if not keeps_tables_here(row):
                    places += provider.locations()
        return places

    @cached_property
    def _named_anywhere(self) -> set[str]:
        """Names of files in any pointer or log; unreadable logs are skipped, as they matter only to their own tables,
        which are not searched then.
        """
        named: set[str] = set()
        for row in Catalog.objects.all():
            for _, kind, pointer in list(_pointers_in(row)):
                named.add(os.path.basename(pointer))
                if locations.is_local(pointer):
                    with suppress(MetalakeError):
                        named |= logged_names(metadata_at(files_in(row), pointer, kind))
        return named

    def _remove_file(self, orphan: Orphan) -> bool:
        """Delete the file in a transaction that locks its table or view; False if it is no longer an orphan."""
        with transaction.atomic():
            rows = pointer_models()[orphan.kind]._default_manager.filter(pk=orphan.object_id)
            locked = list(rows.select_for_update().values_list("metadata_location"))
            claimed = LocationClaim.objects.filter(securable_id=orphan.object_id, location=orphan.place)
            if not locked or not claimed.exists():
                return False
            located = by_id(orphan.object_id)
            assert located is not None
            catalog = Catalog.objects.get(pk=located.catalog.id)
            if not keeps_tables_here(catalog):
                return False
            own_files = files_in(catalog)
            if self._why_excluded(orphan.place, own_files):
                return False
            table = TableFiles(located, own_files)
            if table.names(orphan.path) or not table.is_written_here(orphan.path):
                return False
            locations.require_deletable(orphan.path)
            if not self._unlink(orphan.path):
                return False
            target = (orphan.kind, located.id, located.full_name, located.metalake.id)
            record(event_of(OPERATOR, f"{orphan.kind}.orphan_removed", *target, file=orphan.path))
            return True

    def _unlink(self, path: str) -> bool:
        """Delete a file relative to its folder's descriptor, so that a link swapped into its path is not followed."""
        folder, name = os.path.split(path)
        if os.path.realpath(folder) != folder:
            return False
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or now() - status.st_mtime < self.age:
                return False
            os.unlink(name, dir_fd=handle)
        except FileNotFoundError:
            return False
        finally:
            os.close(handle)
        return True

    # Folders

    def _beside_tables(self, row: Catalog, own_files: MetadataFiles) -> Iterator[Finding]:
        in_use = self._folders_in_use()
        for root in own_files.allowed:
            if not locations.is_local(root) or self._why_excluded(root, own_files):
                continue
            for path, age in _empty(os.path.realpath(_path(root)), in_use):
                if age >= self.age:
                    yield EmptyFolder(path, age, row.pk, row.name)

    def _folders_in_use(self) -> set[str]:
        """Folders that are claimed, reserved or of outside catalogs; not searched for empty ones."""
        named = [
            *LocationClaim.objects.values_list("location", flat=True),
            *ReservedPlace.objects.filter(is_named=True).values_list("location", flat=True),
            *self._outside,
        ]
        in_use = set()
        for place in filter(locations.is_local, named):
            with suppress(Invalid):
                in_use.add(locations.real_path(place))
        return in_use

    def _remove_folder(self, empty: EmptyFolder) -> bool:
        place = f"file://{empty.path}"
        with transaction.atomic():
            claims.lock_claims(empty.catalog_id)
            in_use = self._folders_in_use()
            if any(claims.overlapping([place], empty.catalog_id)) or any(
                _holds(empty.path, folder) for folder in in_use
            ):
                return False
            if [path for path, age in _empty(empty.path, in_use) if age >= self.age] != [empty.path]:
                return False
            try:
                for name in os.listdir(empty.path):
                    os.rmdir(os.path.join(empty.path, name))
                os.rmdir(empty.path)
            except OSError:
                return False  # it is not empty any more
        return True


def _pointers_in(catalog: Catalog) -> Iterator[tuple[int, Kind, str]]:
    """The id, kind and metadata file of each managed table and view of a catalog."""
    for kind, model in pointer_models().items():
        rows = model._default_manager.filter(below(catalog.lineage)).order_by("pk")
        for pk, pointer in rows.values_list("pk", "metadata_location"):
            yield pk, kind, pointer


def _name(located: Located) -> str:
    return f"{located.metalake.name}: {dotted(located.full_name)}"


def _path(place: str) -> str:
    """The path of a local place, links not resolved."""
    return locations.normalise(place).removeprefix("file://")


def _lies_straight(place: str, folder: str) -> bool:
    """Whether a place is in a folder, with no symbolic link in between."""
    if not locations.is_local(folder) or not locations.is_under(place, folder):
        return False
    steps = locations.steps_below(place, folder)
    return os.path.realpath(_path(place)) == os.path.join(os.path.realpath(_path(folder)), *steps)


def _written_here(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder that are named like this server's; links are neither followed nor returned."""
    for above, _, names in os.walk(os.path.realpath(folder)):
        for name in filter(metadata_json.WRITTEN.fullmatch, names):
            path = os.path.join(above, name)
            with suppress(FileNotFoundError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    yield path, status


def _empty(root: str, in_use: Collection[str]) -> Iterator[tuple[str, float]]:
    """The folders in a root, or the root itself, that contain only empty `data` and `metadata` folders, with ages."""
    for above, folders, names in os.walk(root):
        if above in in_use:
            folders.clear()
            continue
        parts = [os.path.join(above, name) for name in folders]
        if names or not parts or not MADE_FOR_A_TABLE.issuperset(folders):
            continue
        with suppress(OSError):
            if not any(path in in_use or os.path.islink(path) or os.listdir(path) for path in parts):
                yield above, now() - max(os.lstat(path).st_mtime for path in (above, *parts))


def _holds(folder: str, other: str) -> bool:
    return folder == other or other.startswith(f"{folder}/") or folder.startswith(f"{other}/")
