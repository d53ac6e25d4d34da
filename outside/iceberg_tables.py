"""Iceberg tables whose pointer is in an outside system: their metadata and files, read through their entry there."""

from __future__ import annotations

from typing import Any

from catalogs.services.claims import require_unclaimed
from catalogs.table_stores import TableRecord
from formats.iceberg.translate import from_iceberg
from metalake.errors import MetalakeError, Unsupported
from metalake.kinds import Kind
from outside.tables import ExternalTable
from outside.write_helpers import require_own
from providers.metadata_files import MetadataFiles


def record_of(table: ExternalTable) -> TableRecord:
    """The table with its metadata. Raises NotFound for another format, Invalid if its location is not allowed."""
    location = table.provider.pointers.location(table.definition)
    if location is None:
        raise table.located.missing()
    own_files = files_of(table)
    own_files.allowed_place(location)
    return TableRecord(table.located, location, own_files.read(location), table.taken_at, entry=table)


def metadata_of(table: ExternalTable) -> dict[str, Any] | None:
    """An Iceberg table's metadata; None for another format, or if it cannot be read."""
    if table.provider.pointers.location(table.definition) is None:
        return None
    try:
        return record_of(table).metadata
    except MetalakeError:
        return None


def native_parts(table: ExternalTable, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """A table as JSON of the native API, without name and audit information.

    An Iceberg table's columns and layout come from its metadata or, failing that, from the outside entry, which has
    only some of them.
    """
    parts = table.shown()
    if metadata is None:
        return parts
    try:
        described = from_iceberg(metadata)
    except MetalakeError:
        return parts
    return described | {"comment": parts["comment"], "properties": described["properties"] | parts["properties"]}


def files_of(table: ExternalTable) -> MetadataFiles:
    """The table's metadata files, in the catalog's locations or the one in its outside entry. Raises Invalid."""
    place = table.shown()["properties"].get("location")  # as the entry says
    own_files = table.provider.pointers.files(*([place] if place else []))
    require_unclaimed(table.provider, place)
    return own_files


def require_own_pointer(table: ExternalTable) -> None:
    """Raise Unsupported for a resource link or a table of a linked schema: commits go to the link's target."""
    require_own(table.located.above())
    target = table.provider.target_of(table.definition)
    if target is not None:
        raise Unsupported(f"This is a resource link to {target}: it is changed there.", kind=Kind.TABLE)
