"""Iceberg tables whose pointer is in an outside system: their metadata and files, by their entry there."""

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
    """The table with its metadata. Raises NotFound for another format, Invalid if its place is not allowed."""
    location = table.provider.pointers.location(table.definition)
    if location is None:
        raise table.located.missing()
    own_files = files_of(table)
    own_files.allowed_place(location)
    return TableRecord(table.located, location, own_files.read(location), table.taken_at, entry=table)


def metadata_of(table: ExternalTable) -> dict[str, Any] | None:
    """The metadata of an Iceberg table; None for another format, or if it cannot be read."""
    if table.provider.pointers.location(table.definition) is None:
        return None
    try:
        return record_of(table).metadata
    except MetalakeError:
        return None


def native_parts(table: ExternalTable, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """The native wire's JSON of a table, without its name and audit information.

    Columns and layout of an Iceberg table come from its metadata or, without it, from the outside entry, which repeats
    only a part of them.
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
    """The table's metadata files; its location in the outside entry is allowed, beside the catalog's places."""
    place = table.shown()["properties"].get("location")  # as the entry says
    own_files = table.provider.pointers.files(*([place] if place else []))
    require_unclaimed(table.provider, place)
    return own_files


def require_own_pointer(table: ExternalTable) -> None:
    """Raise Unsupported for a link, or a table of a linked schema, whose commits are made where it leads."""
    require_own(table.located.above())
    target = table.provider.target_of(table.definition)
    if target is not None:
        raise Unsupported(f"This is a resource link to {target}: it is changed there.", kind=Kind.TABLE)
