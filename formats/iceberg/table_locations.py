"""The locations and files that table metadata refers to, and which of them belong to the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from formats.iceberg.locations import check_allowed, is_allowed, is_under, real_path
from metalake.errors import Invalid

# Properties that redirect where a table's files are written (Iceberg's write properties, two of them deprecated).
PATH_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
FILE_FIELDS = (
    ("statistics", "statistics-path"),
    ("partition-statistics", "statistics-path"),
    ("metadata-log", "metadata-file"),
)


def effective_locations(metadata: Mapping[str, Any]) -> list[str]:
    """Every location that engines or this server write a table's or view's files to; the first is its `location`.

    Raises Invalid if the metadata has no location or a path property is not text.
    """
    properties = metadata.get("properties") or {}
    paths = [value for key, value in properties.items() if key.strip().lower() in PATH_PROPERTIES]
    places = [metadata.get("location"), *paths]
    if not all(isinstance(location, str) and location for location in places):
        raise Invalid("The metadata must name its location, and each of its write paths, as text", kind="location")
    return [str(location) for location in dict.fromkeys(places)]


def added_locations(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The effective locations of the new metadata that are not inside those of the old."""
    had = effective_locations(before)
    return [place for place in effective_locations(after) if not any(is_under(place, other) for other in had)]


def logged_files(metadata: Mapping[str, Any]) -> list[str]:
    """The previous metadata files in the metadata log; malformed entries, as of a registered table, are skipped."""
    named = (entry.get("metadata-file") for entry in metadata.get("metadata-log") or ())
    return [file for file in named if isinstance(file, str)]


def check_metadata_locations(metadata: Mapping[str, Any], allowed: Sequence[str], file_roots: Sequence[str]) -> None:
    """Raise Invalid unless every effective location is allowed; called by every create, commit and register.

    All are checked, not just those that a request changes: checking only the changed ones was CVE-2026-42812.
    """
    for location in effective_locations(metadata):
        check_allowed(location, allowed, file_roots=file_roots)


def owned_by(
    places: Sequence[str], allowed: Sequence[str], file_roots: Sequence[str], spared: Sequence[str] = ()
) -> Callable[[str], bool]:
    """A predicate for the files that belong to the table; only those may be deleted.

    They are inside one of its `places` that the catalog still allows, and in none of the `spared` ones. An allowed
    location alone is not enough: users write the metadata and can refer to any file.
    """
    prefixes = [real_path(place) for place in places if is_allowed(place, allowed, file_roots)]
    others = [real_path(place) for place in spared]

    def owns(file: str) -> bool:
        try:
            real = real_path(file)
            is_spared = any(is_under(real, other) for other in others)
            return not is_spared and any(is_under(real, prefix) for prefix in prefixes)
        except Invalid:
            return False

    return owns


def referenced_files(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The files that the metadata itself refers to: manifest lists, manifests (v1), statistics, old metadata files."""
    for snapshot in metadata.get("snapshots") or ():
        yield from (path for path in (snapshot.get("manifest-list"), *(snapshot.get("manifests") or ())) if path)
    for field, key in FILE_FIELDS:
        yield from (entry[key] for entry in metadata.get(field) or () if entry.get(key))
