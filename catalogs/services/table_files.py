"""The metadata files of a managed table or view: which are in its history, and which this server wrote."""

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
"""The audit events with a new metadata file."""


def pointer_models() -> dict[Kind, type[Tabular]]:
    """The models whose rows point to a metadata file."""
    return {Kind(model.row_kind or ""): model for model in Tabular.__subclasses__()}


class TableFiles:
    """The pointer, metadata and audit of a table or view. Raises MetalakeError if its metadata cannot be read."""

    def __init__(self, located: Located, own_files: MetadataFiles) -> None:
        self.kind, self.files = located.kind, own_files
        self.pointer = located.metadata_location or ""
        self.metadata = metadata_at(own_files, self.pointer, self.kind)
        self.audit = AuditEntry.objects.filter(object_id=located.id)

    def names(self, path: str) -> bool:
        """Whether the pointer, the metadata log or an audited commit references a file."""
        name = os.path.basename(path)
        is_first = name.startswith("00000-")  # which the audit lacks
        if is_first or name == os.path.basename(self.pointer) or name in logged_names(self.metadata):
            return True
        is_wanted = str((self.metadata.get("properties") or {}).get(DELETES_OLD, "")).lower() != "true"
        return is_wanted and name in self._committed

    def is_written_here(self, path: str) -> bool:
        """Whether this server wrote a file for the object; of a registered one, only files since a commit here."""
        try:
            locations.normalise(path)
        except Invalid:
            return False  # the server never writes there
        try:
            metadata = orjson.loads(files.read_metadata(self.files.io, path))
        except (NotFound, TooLarge):
            return False
        except (Invalid, orjson.JSONDecodeError):
            return self._was_made_here  # incomplete; registered tables bring complete files only
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
    """The uuid of a table or view in its metadata."""
    return str(metadata.get(f"{kind}-uuid")).lower()


def metadata_at(own_files: MetadataFiles, location: str, kind: Kind) -> Json:
    """The metadata in a file, read from storage, not from the cache."""
    return PARSERS[kind](files.read_metadata(own_files.io, location))


def logged_names(metadata: Json) -> set[str]:
    return {os.path.basename(file) for file in table_locations.logged_files(metadata)}
