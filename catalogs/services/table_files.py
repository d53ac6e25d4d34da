"""The metadata files of one managed table: which of them belong to its history, and which this server wrote for it."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import orjson

from authz.models import AuditEntry
from formats.iceberg import files, locations, metadata_json, table_locations
from metalake.errors import Invalid, NotFound, TooLarge
from metalake.lineage import Located
from providers.metadata_files import MetadataFiles

DELETES_OLD = "write.metadata.delete-after-commit.enabled"
Json = dict[str, Any]


class TableFiles:
    """One table's pointer, metadata and audit. Raises MetalakeError if its metadata cannot be read."""

    def __init__(self, located: Located, own_files: MetadataFiles) -> None:
        self.id, self.files = located.id, own_files
        self.pointer = located.metadata_location or ""
        self.metadata = metadata_at(own_files, self.pointer)
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
        """Whether this server wrote a file for the table; for a registered table, only files after a commit here."""
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
        if not isinstance(metadata, dict) or _uuid(metadata) != _uuid(self.metadata):
            return False
        follows = [entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()][-1:]
        return self._was_made_here or any(os.path.basename(str(file)) in self._committed for file in follows)

    @cached_property
    def _was_made_here(self) -> bool:
        return self.audit.filter(event="table.created").exists()

    @cached_property
    def _committed(self) -> set[str]:
        named = self.audit.filter(event="table.committed").values_list("details__metadata_location", flat=True)
        return {os.path.basename(location) for location in named.iterator() if location}


def _uuid(metadata: Json) -> str:
    return str(metadata.get("table-uuid")).lower()


def metadata_at(own_files: MetadataFiles, location: str) -> Json:
    return metadata_json.parse_metadata(files.read_metadata(own_files.io, location))


def logged_names(metadata: Json) -> set[str]:
    return {os.path.basename(file) for file in table_locations.logged_files(metadata)}
