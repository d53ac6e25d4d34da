"""The files that a table still has in a folder: to be checked before the folder is released."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from formats.iceberg.locations import is_under, real_path
from formats.iceberg.manifests import live_paths, manifest_paths
from metalake.errors import Invalid, NotFound


def live_files(
    open_manifest: Callable[[str], bytes], metadata: Mapping[str, Any], owns: Callable[[str], bool], place: str
) -> Iterator[str]:
    """The files in a place that readers of the table's snapshots open; older metadata files are left out.

    Reads the manifests of all snapshots, but only in places that the table `owns`. Raises Invalid for a manifest that
    is elsewhere or cannot be read, ProviderUnavailable if the storage does not answer.
    """
    is_in_place, seen = _is_in(place), set[str]()

    def read(location: str, paths: Callable[[bytes], Iterator[str]]) -> Iterator[str]:
        """The paths in a manifest or a list of manifests; none if it was read before."""
        if location in seen:
            return
        seen.add(location)
        if not owns(location):
            raise Invalid(f"The manifest {location!r:.200} is not read: it is not in the table's places.", kind="table")
        with suppress(NotFound):  # readers cannot follow a missing manifest either
            yield from paths(open_manifest(location))

    for snapshot in metadata.get("snapshots") or ():
        manifest_list = snapshot.get("manifest-list") or ""
        named = [manifest_list] if manifest_list else []
        yield from filter(is_in_place, named)
        manifests = list(read(manifest_list, manifest_paths)) if named else snapshot.get("manifests") or ()
        for manifest in manifests:
            yield from filter(is_in_place, [manifest])
            yield from filter(is_in_place, read(manifest, live_paths))
    for field in ("statistics", "partition-statistics"):
        paths = (entry.get("statistics-path") or "" for entry in metadata.get(field) or ())
        yield from filter(is_in_place, paths)


def _is_in(place: str) -> Callable[[str], bool]:
    real = real_path(place)

    def is_in_place(file: str) -> bool:
        try:
            return is_under(real_path(file), real)
        except Invalid:
            return False

    return is_in_place
