"""What kills leave on this machine's disks: metadata files that no pointer ever named, folders with nothing in them.

Nothing else removes them. A file goes only where all of this holds: it lies in a place of one of our tables, reached by
no link; its name and content say that this server wrote it for that table; no pointer, log or commit names it; it is a
day old. All is looked at again with the table's row locked, and a commit that is under way looks, with the same lock,
whether its file is there (`commits`).
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
from django.db.models import QuerySet

from catalogs.lookup import by_id
from catalogs.models import Catalog, LocationClaim, ReservedPlace, Table
from catalogs.services import claims
from catalogs.services.opening import files_in, kept_provider, provider_of
from catalogs.services.table_files import TableFiles, logged_names, metadata_at
from catalogs.stores import keeps_tables_here
from formats.iceberg import locations, metadata_json
from metalake.errors import Invalid, MetalakeError
from metalake.events import event_of, record
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import below
from metalake.names import dotted
from providers.metadata_files import MetadataFiles

DAY = 86_400.0
MADE_FOR_A_TABLE = frozenset({"data", "metadata"})


@dataclass(frozen=True)
class Orphan:
    """A metadata file; `size` in bytes, `age` in seconds."""

    path: str
    size: int
    age: float
    table_id: int
    table: str
    place: str


@dataclass(frozen=True)
class EmptyFolder:
    """A folder of a table that never came to be, or is gone; `age` in seconds is that of its newest entry."""

    path: str
    age: float
    catalog_id: int
    catalog: str


@dataclass(frozen=True)
class Left:
    """What was not looked at, or not wholly, and why."""

    what: str
    why: str


Finding = Orphan | EmptyFolder | Left


def now() -> float:
    """The store's clock, or this machine's where that is behind it, so that no file is taken for older than it is."""
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
    """One look at all that our tables have on this machine's disks; `age` is how old what it finds is at least."""

    def __init__(self, age: float = DAY) -> None:
        self.age = max(age, DAY)

    def find(self) -> Iterator[Finding]:
        for row in Catalog.objects.order_by("pk"):
            try:
                provider = provider_of(row)
            except MetalakeError as failure:
                yield Left(f"catalog {row.name}", failure.message)
                continue
            if keeps_tables_here(row):
                yield from self._in_tables(row, provider.files)
                yield from self._beside_tables(row, provider.files)

    def remove(self, finding: Orphan | EmptyFolder) -> bool:
        """Whether it was removed: it is looked at once more, and stays where anything changed.

        Raises OSError, MetalakeError where the table cannot be read, OperationalError where others hold it for long.
        """
        return self._remove_file(finding) if isinstance(finding, Orphan) else self._remove_folder(finding)

    # Files

    def _in_tables(self, row: Catalog, own_files: MetadataFiles) -> Iterator[Finding]:
        remote = 0
        for pk in list(_tables_of(row).values_list("pk", flat=True)):
            located = by_id(pk)
            if located is None:
                continue
            places = LocationClaim.objects.filter(securable_id=pk).values_list("location", flat=True)
            local = [place for place in places if locations.is_local(place)]
            remote += not local
            try:
                yield from self._in_table(located, own_files, local)
            except MetalakeError as failure:
                yield Left(f"table {_name(located)}", failure.message)
        if remote:
            why = "they lie in a storage, which no commit asks again whether its file is there."
            yield Left(f"{remote} tables of catalog {row.name}", why)

    def _in_table(self, located: Located, own_files: MetadataFiles, places: Iterable[str]) -> Iterator[Finding]:
        table: TableFiles | None = None
        for place in places:
            if why := self._why_not(place, own_files):
                yield Left(f"place {place} of table {_name(located)}", why)
                continue
            for path, status in _written_here(_path(place)):
                orphan = Orphan(path, status.st_size, now() - status.st_mtime, located.id, _name(located), place)
                if orphan.age < self.age:
                    continue
                table = table or TableFiles(located, own_files)
                if not table.knows(path) and table.wrote(path) and os.path.basename(path) not in self._named_anywhere:
                    yield orphan

    def _why_not(self, place: str, own_files: MetadataFiles) -> str:
        """Why nothing is removed in a place; "" where it may be."""
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
        """The places of catalogs whose tables an outside system keeps."""
        places: list[str] = []
        for row in Catalog.objects.all():
            with suppress(MetalakeError):
                provider = kept_provider(row.pk, row.provider, row.properties)
                if not keeps_tables_here(row):
                    places += provider.locations()
        return places

    @cached_property
    def _named_anywhere(self) -> set[str]:
        """Names of files that any pointer or log names; a log that cannot be read keeps its own table's alone."""
        named: set[str] = set()
        for row in Catalog.objects.all():
            for pointer in list(_tables_of(row).values_list("metadata_location", flat=True)):
                named.add(os.path.basename(pointer))
                if locations.is_local(pointer):
                    with suppress(MetalakeError):
                        named |= logged_names(metadata_at(files_in(row), pointer))
        return named

    def _remove_file(self, orphan: Orphan) -> bool:
        with transaction.atomic():
            rows = Table.objects.select_for_update().filter(pk=orphan.table_id).values_list("metadata_location")
            claimed = LocationClaim.objects.filter(securable_id=orphan.table_id, location=orphan.place)
            if not list(rows) or not claimed.exists():
                return False
            located = by_id(orphan.table_id)
            assert located is not None
            catalog = Catalog.objects.get(pk=located.catalog.id)
            if not keeps_tables_here(catalog):
                return False
            own_files = files_in(catalog)
            if self._why_not(orphan.place, own_files):
                return False
            table = TableFiles(located, own_files)
            if table.knows(orphan.path) or not table.wrote(orphan.path):
                return False
            locations.require_deletable(orphan.path)
            if not self._unlink(orphan.path):
                return False
            told = (Kind.TABLE, located.id, located.full_name, located.metalake.id)
            record(event_of(OPERATOR, "table.orphan_removed", *told, file=orphan.path))
            return True

    def _unlink(self, path: str) -> bool:
        """By its folder's handle, so that nothing that is put in the way now leads elsewhere."""
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
        kept = self._kept()
        for root in own_files.allowed:
            if not locations.is_local(root) or self._why_not(root, own_files):
                continue
            for path, age in _empty(os.path.realpath(_path(root)), kept):
                if age >= self.age:
                    yield EmptyFolder(path, age, row.pk, row.name)

    def _kept(self) -> set[str]:
        """Folders that are somebody's: nothing in them is looked at."""
        named = [
            *LocationClaim.objects.values_list("location", flat=True),
            *ReservedPlace.objects.values_list("location", flat=True),
            *self._outside,
        ]
        kept = set()
        for place in filter(locations.is_local, named):
            with suppress(Invalid):
                kept.add(locations.real_path(place))
        return kept

    def _remove_folder(self, empty: EmptyFolder) -> bool:
        place = f"file://{empty.path}"
        with transaction.atomic():
            claims.take_turn(empty.catalog_id)
            kept = self._kept()
            if claims.overlapping([place]).exists() or any(_holds(empty.path, folder) for folder in kept):
                return False
            if [path for path, age in _empty(empty.path, kept) if age >= self.age] != [empty.path]:
                return False
            try:
                for name in os.listdir(empty.path):
                    os.rmdir(os.path.join(empty.path, name))
                os.rmdir(empty.path)
            except OSError:
                return False  # something came into it
        return True


def _tables_of(catalog: Catalog) -> QuerySet[Table]:
    return Table.objects.filter(below(catalog.lineage)).order_by("pk")


def _name(located: Located) -> str:
    return f"{located.metalake.name}: {dotted(located.full_name)}"


def _path(place: str) -> str:
    """A local place as a path, no links followed."""
    return locations.normalise(place).removeprefix("file://")


def _lies_straight(place: str, folder: str) -> bool:
    """Whether a place lies in a folder, and no link of this machine is on the way from there."""
    if not locations.is_local(folder) or not locations.is_under(place, folder):
        return False
    steps = locations.steps_below(place, folder)
    return os.path.realpath(_path(place)) == os.path.join(os.path.realpath(_path(folder)), *steps)


def _written_here(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder that are called as ours are; links are neither followed nor taken for files."""
    for above, _, names in os.walk(os.path.realpath(folder)):
        for name in filter(metadata_json.WRITTEN.fullmatch, names):
            path = os.path.join(above, name)
            with suppress(FileNotFoundError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    yield path, status


def _empty(root: str, kept: Collection[str]) -> Iterator[tuple[str, float]]:
    """The folders in a root, or it itself, that hold `data` and `metadata` with nothing in them, and their ages."""
    for above, folders, names in os.walk(root):
        if above in kept:
            folders.clear()
            continue
        parts = [os.path.join(above, name) for name in folders]
        if names or not parts or not MADE_FOR_A_TABLE.issuperset(folders):
            continue
        with suppress(OSError):
            if not any(path in kept or os.path.islink(path) or os.listdir(path) for path in parts):
                yield above, now() - max(os.lstat(path).st_mtime for path in (above, *parts))


def _holds(folder: str, other: str) -> bool:
    return folder == other or other.startswith(f"{folder}/") or folder.startswith(f"{other}/")
