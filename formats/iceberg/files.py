"""Reads and writes a table's metadata files: each write creates a new file, and none is ever overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from formats.iceberg.locations import is_local, normalise
from formats.iceberg.metadata_json import GZIP_MAGIC, MAX_METADATA_BYTES, content_of, properties_of, unzip
from formats.iceberg.storage import create, delete_file, make_durable, read_bytes, read_small
from metalake.errors import AlreadyExists

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


def read_metadata(io: FileIO, location: str, *, max_bytes: int = MAX_METADATA_BYTES) -> bytes:
    """The JSON of a metadata file, unzipped if its content is gzip, whatever its name. Check the location first.

    Raises NotFound if there is no such file, TooLarge over `max_bytes` (as stored or unzipped) or if it unzips to more
    than 20 times its size, Invalid for broken gzip, ProviderUnavailable if the storage did not answer.
    """
    normalise(location)
    content = read_bytes(io, location, max_bytes)
    return unzip(content, location, max_bytes) if content.startswith(GZIP_MAGIC) else content


def read_small_metadata(location: str, most: int) -> bytes | None:
    """The JSON of a local metadata file of at most `most` bytes; None for any other file, and for gzip."""
    content = read_small(location, most)
    return None if content is None or content.startswith(GZIP_MAGIC) else content


def write_metadata(io: FileIO, metadata: Mapping[str, Any], *, version: int) -> tuple[str, bytes]:
    """Write a new metadata file and return its location and its JSON. Check the metadata's locations first.

    The file's location keeps the spelling of the table's own. Never overwrites; a partial file is removed.
    Raises TooLarge, Invalid, or ProviderUnavailable; after the last the file may exist, but nothing points to it.
    """
    content, stored, ending = content_of(metadata)
    location = _place(metadata, version, ending)
    create(io, location, stored)
    return location, content


def new_location(metadata: Mapping[str, Any], *, version: int) -> str:
    """A unique location for `write_metadata_at`. Raises TooLarge or Invalid."""
    return _place(metadata, version, content_of(metadata)[2])


def write_metadata_at(io: FileIO, location: str, metadata: Mapping[str, Any]) -> None:
    """Write a metadata file at a location from `new_location`; idempotent.

    A partial file, which a killed process leaves on local disk, is replaced.
    """
    content = content_of(metadata)[1]
    try:
        create(io, location, content)
    except AlreadyExists:
        if not is_local(location):
            return  # remote storages only show complete files
        if read_bytes(io, location, MAX_METADATA_BYTES) != content:
            delete_file(io, location)
            create(io, location, content)
        make_durable(location)


def _place(metadata: Mapping[str, Any], version: int, ending: str) -> str:
    folder = properties_of(metadata).get("write.metadata.path") or f"{metadata['location'].removesuffix('/')}/metadata"
    normalise(folder)
    return f"{folder.removesuffix('/')}/{version:05d}-{uuid4()}{ending}"
