"""The metadata files of a managed table or view: which belong to its history, and which this server wrote for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import orjson

from authz.models import AuditEntry
from catalogs.models import Tabular
from formats.iceberg import files, locations, metadata_json, table_locations
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.errors import Invalid, NotFound, TooLarge
from metalake.kinds import Kind
from metalake.lineage import Located
from providers.metadata_files import MetadataFiles

DELETES_OLD = "write.metadata.delete-after-commit.enabled"
Json = dict[str, Any]
PARSERS: dict[Kind, Callable[[bytes], Json]] = {
    Kind.TABLE: metadata_json.parse_metadata,
    Kind.VIEW: parse_view_metadata,
}
CHANGES = {Kind.TABLE: ("table.committed",), Kind.VIEW: ("view.replaced", "view.altered")}
"""The events of the audit that name a new metadata file."""


def pointer_models() -> dict[Kind, type[Tabular]]:
    """The models of the objects whose rows point to a metadata file."""
    return {Kind(model.row_kind or ""): model for model in Tabular.__subclasses__()}


class TableFiles:
    """The pointer, metadata and audit of one table or view. Raises MetalakeError if its metadata cannot be read."""

    def __init__(self, located: Located, own_files: MetadataFiles) -> None:
        self.kind, self.files = located.kind, own_files
        self.pointer = located.metadata_location or ""
        self.metadata = metadata_at(own_files, self.pointer, self.kind)
        self.audit = AuditEntry.objects.filter(object_id=located.id)

    def names(self, path: str) -> bool:
        """Whether the pointer, the log or an audited commit names a file, so that it is part of the table's past."""
        name = os.path.basename(path)
        is_first = name.startswith("00000-")  # the audit does not name the first file
        if is_first or name == os.path.basename(self.pointer) or name in logged_names(self.metadata):
            return True
        is_wanted = str((self.metadata.get("properties") or {}).get(DELETES_OLD, "")).lower() != "true"
        return is_wanted and name in self._committed

    def is_written_here(self, path: str) -> bool:
        """Whether this server wrote a file for the object; for a registered one, only files after a commit here."""
        try:
            locations.normalise(path)
        except Invalid:
            return False  # the server never writes to such a place
        try:
            metadata = orjson.loads(files.read_metadata(self.files.io, path))
        except (NotFound, TooLarge):
            return False
        except (Invalid, orjson.JSONDecodeError):
            return self._was_made_here  # an incomplete file; registered tables bring complete ones only
        if not isinstance(metadata, dict) or uuid_in(metadata, self.kind) != uuid_in(self.metadata, self.kind):
            return False
        follows = [entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()][-1:]
        return self._was_made_here or any(os.path.basename(str(file)) in self._committed for file in follows)

    @cached_property
    def _was_made_here(self) -> bool:
        return self.audit.filter(event=f"{self.kind}.created").exists()

    @cached_property
    def _committed(self) -> set[str]:
        named = self.audit.filter(event__in=CHANGES[self.kind]).values_list("details__metadata_location", flat=True)
        return {os.path.basename(location) for location in named.iterator() if location}


def uuid_in(metadata: Json, kind: Kind) -> str:
    """The uuid of a table or view by its metadata."""
    return str(metadata.get(f"{kind}-uuid")).lower()


def metadata_at(own_files: MetadataFiles, location: str, kind: Kind) -> Json:
    """The metadata in a file, read from the storage and not from memory."""
    return PARSERS[kind](files.read_metadata(own_files.io, location))


def logged_names(metadata: Json) -> set[str]:
    return {os.path.basename(file) for file in table_locations.logged_files(metadata)}
