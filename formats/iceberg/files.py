"""A table's metadata files, read and written: each is new, and none is ever overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from formats.iceberg.locations import is_local, normalise
from formats.iceberg.metadata_json import GZIP_MAGIC, MAX_METADATA_BYTES, content_of, properties_of, unzip
from formats.iceberg.storage import create, delete_file, keep, read_bytes
from metalake.errors import AlreadyExists

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


def read_metadata(io: FileIO, location: str, *, max_bytes: int = MAX_METADATA_BYTES) -> bytes:
    """The JSON of a metadata file, unzipped by its content, whatever its name. The location must have been checked.

    Raises NotFound if there is no such file, TooLarge over `max_bytes` (as stored or unzipped) or if it unfolds more
    than 20 times, Invalid for broken gzip, ProviderUnavailable if the storage did not answer.
    """
    normalise(location)
    content = read_bytes(io, location, max_bytes)
    return unzip(content, location, max_bytes) if content.startswith(GZIP_MAGIC) else content


def write_metadata(io: FileIO, metadata: Mapping[str, Any], *, version: int) -> tuple[str, bytes]:
    """Write a new metadata file and return its location and its JSON. The metadata's locations must have been checked.

    The location keeps the spelling of the table's own. Nothing is overwritten; a half-written file is removed.
    Raises TooLarge, Invalid, or ProviderUnavailable: then the file may exist, but nothing points to it.
    """
    content, stored, ending = content_of(metadata)
    location = _place(metadata, version, ending)
    create(io, location, stored)
    return location, content


def new_location(metadata: Mapping[str, Any], *, version: int) -> str:
    """Where `write_metadata_at` is to put a new metadata file; another place each time. Raises TooLarge or Invalid."""
    return _place(metadata, version, content_of(metadata)[2])


def write_metadata_at(io: FileIO, location: str, metadata: Mapping[str, Any]) -> None:
    """What `write_metadata` does, at a place that `new_location` gave; safe to run again.

    What an earlier try left there is made whole: of this machine's files a kill leaves a part.
    """
    content = content_of(metadata)[1]
    try:
        create(io, location, content)
    except AlreadyExists:
        if not is_local(location):
            return  # a storage shows whole files alone
        if read_bytes(io, location, MAX_METADATA_BYTES) != content:
            delete_file(io, location)
            create(io, location, content)
        keep(location)


def _place(metadata: Mapping[str, Any], version: int, ending: str) -> str:
    folder = properties_of(metadata).get("write.metadata.path") or f"{metadata['location'].removesuffix('/')}/metadata"
    normalise(folder)
    return f"{folder.removesuffix('/')}/{version:05d}-{uuid4()}{ending}"
