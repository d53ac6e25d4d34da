"""The files that a table still has in a place: to be asked before the place is given up."""

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

    Reads the manifests of all snapshots, in places that the table `owns` only. Raises Invalid for a manifest that lies
    elsewhere or cannot be read, ProviderUnavailable if the storage does not answer.
    """
    lies_there, seen = _lies_in(place), set[str]()

    def read(location: str, paths: Callable[[bytes], Iterator[str]]) -> Iterator[str]:
        """The paths in a manifest or a list of manifests; none if it was read before."""
        if location in seen:
            return
        seen.add(location)
        if not owns(location):
            raise Invalid(f"What {location!r:.200} names is not known: it lies in no place of the table.", kind="table")
        with suppress(NotFound):  # a manifest that is gone leads no reader to its files
            yield from paths(open_manifest(location))

    for snapshot in metadata.get("snapshots") or ():
        manifest_list = snapshot.get("manifest-list") or ""
        named = [manifest_list] if manifest_list else []
        yield from filter(lies_there, named)
        manifests = list(read(manifest_list, manifest_paths)) if named else snapshot.get("manifests") or ()
        for manifest in manifests:
            yield from filter(lies_there, [manifest])
            yield from filter(lies_there, read(manifest, live_paths))
    for field in ("statistics", "partition-statistics"):
        paths = (entry.get("statistics-path") or "" for entry in metadata.get(field) or ())
        yield from filter(lies_there, paths)


def _lies_in(place: str) -> Callable[[str], bool]:
    real = real_path(place)

    def lies_there(file: str) -> bool:
        try:
            return is_under(real_path(file), real)
        except Invalid:
            return False

    return lies_there
