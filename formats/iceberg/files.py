"""A table's metadata files: where a catalog's storage is opened, and where they are read, checked and written.

A FileIO is built from the catalog's own settings alone: a table's properties never choose a class, an endpoint
or a key. Files of this machine are read and written by the system's own calls; pyiceberg and pyarrow, which take a
process 90 MB and a second, are imported with the first file of a storage.
"""

from __future__ import annotations

import errno
import gzip
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from io import SEEK_END, BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from formats.iceberg import disk
from formats.iceberg.guard import loads_class
from formats.iceberg.locations import is_local, named_path, normalise, real_path, require_deletable
from metalake.errors import (
    AlreadyExists,
    Invalid,
    MetalakeError,
    NotFound,
    ProviderUnavailable,
    StoreUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
    from pyiceberg.io.pyarrow import PyArrowFileIO

log = logging.getLogger(__name__)

# 64 MiB is some 100,000 snapshots; reading more would cost a request seconds and a gigabyte of memory.
MAX_METADATA_BYTES = 64 * 1024 * 1024
MAX_GZIP_RATIO = 20
GZIP_RATIO_FLOOR = 16 * 1024 * 1024  # below this a file may unfold as it likes
GZIP_MAGIC = b"\x1f\x8b"

IO_SETTINGS = ("s3.", "gcs.", "adls.", "hdfs.", "oss.", "client.")
REMOTE_DEFAULTS = {"s3.connect-timeout": "3", "s3.request-timeout": "10"}
LONGEST = {"s3.connect-timeout": 10.0, "s3.request-timeout": 30.0}  # a thread that a storage holds comes back

# Where a bucket may be a part of the host's name; elsewhere that would be a host that was not checked.
BUCKET_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".aliyuncs.com")

# A disk, or the share of it that an account may take, is full; a file is over what the process may write.
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

# A path that cannot exist is a missing file, not a storage in trouble.
NO_SUCH_PATH = {errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}

# AWS's answers that will be the same next time.
REFUSALS = frozenset(
    {"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID", "NO_SUCH_BUCKET", "SIGNATURE_DOES_NOT_MATCH"}
)

# Those that end with new keys, so that what they keep from being removed is removed then.
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})

METADATA_FILE = re.compile(r"(?:v(\d{1,9})|(\d{1,9})-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
# As `_place` names what this server writes.
WRITTEN = re.compile(r"\d{5,9}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json")
AZURE = re.compile(r"^((?:abfs|wasb)s?)://([^/@]+)@[^/]+", re.IGNORECASE)

TEXT, NUMBER, LIST, OBJECT = str, int, list, dict
SHAPES = {TEXT: "text", NUMBER: "a whole number", LIST: "a list of objects", OBJECT: "an object"}
EVERY_VERSION = {"location": TEXT, "last-updated-ms": NUMBER, "last-column-id": NUMBER}
VERSION_1 = EVERY_VERSION | {"schema": OBJECT, "partition-spec": LIST}
VERSION_2 = EVERY_VERSION | {
    "table-uuid": TEXT,
    "last-sequence-number": NUMBER,
    "schemas": LIST,
    "current-schema-id": NUMBER,
    "partition-specs": LIST,
    "default-spec-id": NUMBER,
    "last-partition-id": NUMBER,
    "sort-orders": LIST,
    "default-sort-order-id": NUMBER,
}
TABLE_FIELDS = {1: VERSION_1, 2: VERSION_2, 3: VERSION_2 | {"next-row-id": NUMBER}}
OPTIONAL_FIELDS = {
    "properties": OBJECT,
    "snapshots": LIST,
    "refs": OBJECT,
    "metadata-log": LIST,
    "snapshot-log": LIST,
    "statistics": LIST,
    "partition-statistics": LIST,
}


def file_io(catalog_properties: Mapping[str, str]) -> FileIO:
    """The FileIO of a catalog, one for each set of storage settings. Give it catalog properties only."""
    settings = {key: value for key, value in catalog_properties.items() if key.startswith(IO_SETTINGS)}
    settings = REMOTE_DEFAULTS | {key: value for key, value in settings.items() if not loads_class(key)}
    settings |= {key: _seconds(settings[key], most) for key, most in LONGEST.items()}
    if endpoint := settings.get("s3.endpoint"):
        # Without a region the client asks AWS for the bucket's, even if the endpoint is elsewhere.
        settings.setdefault("s3.region", "us-east-1")
        if not (urlsplit(endpoint).hostname or "").endswith(BUCKET_HOSTS):
            settings["s3.force-virtual-addressing"] = "false"
    return _open_file_io(tuple(sorted(settings.items())))


def _seconds(given: str, most: float) -> str:
    try:
        return given if 0 < float(given) <= most else str(most)
    except ValueError:
        return str(most)


@lru_cache(maxsize=256)
def _open_file_io(settings: tuple[tuple[str, str], ...]) -> FileIO:
    return cast("FileIO", OnFirstUse(dict(settings)))


class OnFirstUse:
    """pyiceberg's FileIO over PyArrow, as much of it as is used here, which is made when it is."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.properties = settings

    @cached_property
    def opened(self) -> PyArrowFileIO:
        from pyiceberg.io.pyarrow import PyArrowFileIO

        return PyArrowFileIO(self.properties)

    def new_input(self, location: str) -> InputFile:
        return self.opened.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        return self.opened.new_output(location)

    def delete(self, location: str) -> None:
        self.opened.delete(location)

    def holds_files(self, location: str) -> bool:
        """Whether a file lies anywhere in a folder."""
        scheme, host, path = self.opened.parse_location(location, self.properties)
        return _holds_a_file(self.opened.fs_by_scheme(scheme, host), path)


def read_metadata(io: FileIO, location: str, *, max_bytes: int = MAX_METADATA_BYTES) -> bytes:
    """The JSON of a metadata file, unzipped by its content, whatever its name. The location must have been checked.

    Raises NotFound if there is no such file, TooLarge over `max_bytes` (as stored or unzipped) or if it unfolds more
    than 20 times, Invalid for broken gzip, ProviderUnavailable if the storage did not answer.
    """
    normalise(location)
    content = read_bytes(io, location, max_bytes)
    return _unzip(content, location, max_bytes) if content.startswith(GZIP_MAGIC) else content


def parse_metadata(content: bytes) -> dict[str, Any]:
    """Table metadata as plain data, unknown fields kept. Raises Invalid unless it has the shape of format 1, 2 or 3.

    Source: Iceberg spec, "Table Metadata Fields". Whether its ids agree with one another is not looked at.
    """
    try:
        metadata = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise Invalid("The metadata file is not JSON", kind="metadata-file") from None
    if not isinstance(metadata, dict):
        raise Invalid("The metadata file is not a JSON object", kind="metadata-file")
    version = metadata.get("format-version")
    if type(version) is not int or version not in TABLE_FIELDS:
        raise Invalid(f"The metadata's format-version must be 1, 2 or 3, not {version!r:.40}", kind="metadata-file")
    for field, wanted in TABLE_FIELDS[version].items():
        _check_field(metadata, field, wanted)
    for field, wanted in OPTIONAL_FIELDS.items():
        if metadata.get(field) is not None:
            _check_field(metadata, field, wanted)
    if not all(isinstance(value, str) for value in (metadata.get("properties") or {}).values()):
        raise Invalid("The metadata's properties must be text", kind="metadata-file")
    return metadata


def write_metadata(io: FileIO, metadata: Mapping[str, Any], *, version: int) -> tuple[str, bytes]:
    """Write a new metadata file and return its location and its JSON. The metadata's locations must have been checked.

    The location keeps the spelling of the table's own. Nothing is overwritten; a half-written file is removed.
    Raises TooLarge, Invalid, or ProviderUnavailable: then the file may exist, but nothing points to it.
    """
    content, stored, ending = _content(metadata)
    location = _place(metadata, version, ending)
    _create(io, location, stored)
    return location, content


def new_location(metadata: Mapping[str, Any], *, version: int) -> str:
    """Where `write_metadata_at` is to put a new metadata file; another place each time. Raises TooLarge or Invalid."""
    return _place(metadata, version, _content(metadata)[2])


def write_metadata_at(io: FileIO, location: str, metadata: Mapping[str, Any]) -> None:
    """What `write_metadata` does, at a place that `new_location` gave; safe to run again.

    What an earlier try left there is made whole: of this machine's files a kill leaves a part.
    """
    content = _content(metadata)[1]
    try:
        _create(io, location, content)
    except AlreadyExists:
        if not is_local(location):
            return  # a storage shows whole files alone
        if read_bytes(io, location, MAX_METADATA_BYTES) != content:
            delete_file(io, location)
            _create(io, location, content)
        keep(location)


def keep(location: str) -> None:
    """Have a file that somebody else wrote on the disk before a pointer names it; a storage has seen to its own."""
    if is_local(location):
        with _storage_errors(location):
            disk.keep(real_path(location))


def _place(metadata: Mapping[str, Any], version: int, ending: str) -> str:
    folder = _properties(metadata).get("write.metadata.path") or f"{metadata['location'].removesuffix('/')}/metadata"
    normalise(folder)
    return f"{folder.removesuffix('/')}/{version:05d}-{uuid4()}{ending}"


def _content(metadata: Mapping[str, Any]) -> tuple[bytes, bytes, str]:
    """The JSON, what is stored of it, and how the name of the file ends."""
    content = dump(metadata)
    return content, *_zip(content, _properties(metadata).get("write.metadata.compression-codec") or "none")


def _properties(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return metadata.get("properties") or {}


def next_version(previous_location: str | None) -> int:
    """The number after the previous metadata file's; 0 if there is none or its name has no number."""
    match = METADATA_FILE.fullmatch((previous_location or "").rsplit("/", 1)[-1])
    return int(match[1] or match[2]) + 1 if match else 0


def read_bytes(io: FileIO, location: str, max_bytes: int) -> bytes:
    """A file as stored. Raises NotFound, TooLarge, ProviderUnavailable, and Invalid for what is no file."""
    if is_local(location):
        _require_file(location)
    with _storage_errors(location), _opened(io, location) as stream:
        size = stream.seek(0, SEEK_END)
        if size > max_bytes:
            raise TooLarge(f"The file is over {max_bytes} bytes: {location}", kind="metadata-file")
        stream.seek(0)
        return bytes(stream.read(size))


def _opened(io: FileIO, location: str) -> BinaryIO | InputStream:
    return open(named_path(location), "rb") if is_local(location) else io.new_input(_address(location)).open()


def is_empty(io: FileIO, location: str) -> bool:
    """Whether no file lies anywhere in a folder, be it that there is none: empty folders are what a staged creation may
    have left. Raises ProviderUnavailable, Invalid, NotFound.
    """
    with _storage_errors(location):
        if is_local(location):
            return not _holds_a_file_here(named_path(location))
        assert isinstance(io, OnFirstUse)
        return not io.holds_files(_address(location))


def _holds_a_file_here(folder: str) -> bool:
    """A link counts as what it leads to."""
    try:
        lying = list(os.scandir(folder))
    except FileNotFoundError:
        return False
    if any(not one.is_dir() for one in lying):
        return True
    try:
        return any(_holds_a_file_here(one.path) for one in lying)
    except OSError:
        return True  # what cannot be looked at is not known to be empty


def _holds_a_file(storage: FileSystem, folder: str) -> bool:
    from pyarrow.fs import FileSelector, FileType

    lying = storage.get_file_info(FileSelector(folder, allow_not_found=True))
    if any(one.type != FileType.Directory for one in lying):
        return True
    try:
        return any(_holds_a_file(storage, one.path) for one in lying)
    except OSError:
        return True  # what cannot be looked at is not known to be empty


def make_folder(location: str) -> None:
    """Make a folder of this machine and those above it, which may be there. The location must have been checked.

    Raises ProviderUnavailable, and Invalid where a file lies in its way or a name is too long for the disk.
    """
    try:
        with _storage_errors(location):
            os.makedirs(real_path(location), exist_ok=True)
    except (AlreadyExists, NotFound):
        raise Invalid(
            f"Location {location!r:.200} is not usable: no folder can be made there", kind="location"
        ) from None


def _require_file(location: str) -> None:
    """A pipe or a device of this machine would hold its reader for ever."""
    path = real_path(location)
    if os.path.exists(path) and not os.path.isfile(path):
        what = "A directory" if os.path.isdir(path) else "A pipe or a device"
        raise Invalid(f"{what}, not a file: {location}", kind="metadata-file")


def delete_file(io: FileIO, location: str) -> int:
    """Delete a file and return how many went: 0 if there was none.

    Raises ProviderUnavailable, and Invalid for one of the server's own.
    """
    require_deletable(location)
    try:
        with _storage_errors(location):
            if is_local(location):
                os.unlink(named_path(location))
            else:
                io.delete(_address(location))
    except NotFound:
        return 0
    return 1


def look(io: FileIO, location: str) -> None:
    """See that a folder can be reached, writing nothing: the first file tells whether it takes files.

    Of this machine the folder, or the nearest above it that is there, must be one that this server may write to; of a
    bucket that holds nothing there yet, the bucket must be there. Raises ProviderUnavailable.
    """
    local = real_path(location)
    if local.startswith("/"):
        _look_here(location, local)
        return
    with _storage_errors(location):
        if io.new_input(_address(location)).exists():
            return
    scheme, _, rest = _address(location).partition("://")
    bucket = f"{scheme}://{rest.partition('/')[0]}"
    try:
        with _storage_errors(bucket):
            if io.new_input(bucket).exists():
                return
    except ProviderUnavailable as refusal:
        if not refusal.retryable:  # these keys may see a part of the bucket only
            return
        raise
    raise ProviderUnavailable(f"There is no {bucket} in the storage.", kind="storage", retryable=False)


def _look_here(location: str, path: str) -> None:
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not (os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)):
        raise ProviderUnavailable(f"This server may not write to {location}.", kind="storage", retryable=False)


def delete_quietly(io: FileIO, locations: Iterable[str]) -> None:
    """Delete what we can and log the rest: only files we wrote, or that `locations.owned_by` says are the table's."""
    for location in locations:
        try:
            delete_file(io, location)
        except MetalakeError as error:
            log.warning("A file was left behind: %s", error.message)


def _check_field(metadata: Mapping[str, Any], field: str, wanted: type) -> None:
    value = metadata.get(field)
    is_right = isinstance(value, wanted) and not isinstance(value, bool)
    if is_right and wanted is LIST:
        is_right = all(isinstance(item, dict) for item in metadata[field])
    if not is_right:
        raise Invalid(f"The metadata's {field} must be {SHAPES[wanted]}", kind="metadata-file")


def dump(metadata: Mapping[str, Any]) -> bytes:
    try:
        content = orjson.dumps(metadata)
    except orjson.JSONEncodeError:
        raise Invalid(
            "The metadata cannot be written as JSON: it is nested too deeply, or a number is over 64 bits",
            kind="metadata-file",
        ) from None
    if len(content) > MAX_METADATA_BYTES:
        raise TooLarge(f"The metadata is over {MAX_METADATA_BYTES} bytes; expire snapshots", kind="metadata-file")
    return content


def _zip(content: bytes, codec: str) -> tuple[bytes, str]:
    if codec.lower() not in ("none", "gzip"):
        raise Invalid(f"write.metadata.compression-codec must be none or gzip, not {codec!r:.40}", kind="property")
    zipped = gzip.compress(content, compresslevel=6, mtime=0) if codec.lower() == "gzip" else b""
    # What unfolds too well could not be read back.
    if zipped and len(content) <= _unzip_limit(zipped):
        return zipped, ".gz.metadata.json"
    return content, ".metadata.json"


def _unzip(content: bytes, location: str, max_bytes: int) -> bytes:
    limit = min(max_bytes, _unzip_limit(content))
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as stream:
            unzipped = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error):
        raise Invalid(f"Not a readable gzip file: {location}", kind="metadata-file") from None
    if len(unzipped) > limit:
        raise TooLarge(f"The file unzips to over {limit} bytes: {location}", kind="metadata-file")
    return unzipped


def _unzip_limit(zipped: bytes) -> int:
    return max(GZIP_RATIO_FLOOR, MAX_GZIP_RATIO * len(zipped))


def _create(io: FileIO, location: str, content: bytes) -> None:
    if is_local(location):
        with _storage_errors(location):
            disk.write_new(real_path(location), content)
        return
    with _storage_errors(location):
        stream = io.new_output(_address(location)).create(overwrite=False)
    try:
        with _storage_errors(location), stream:
            stream.write(content)
    except MetalakeError:
        delete_quietly(io, [location])
        raise


def _address(location: str) -> str:
    """The location as the storage client wants it: Azure's knows the account from its settings."""
    return AZURE.sub(r"\1://\2", location)


@contextmanager
def _storage_errors(location: str) -> Iterator[None]:
    """Turn whatever a storage client raises into our errors, without its text: it may quote requests and keys."""
    try:
        yield
    except MetalakeError:
        raise
    except FileNotFoundError:
        raise _no_such_file(location) from None
    except FileExistsError:
        raise AlreadyExists(f"File already exists: {location}", kind="metadata-file") from None
    except PermissionError:
        message = f"The storage refused access to {location}"
        raise ProviderUnavailable(message, kind="storage", retryable=False) from None
    except Exception as error:
        if getattr(error, "errno", None) in NO_SUCH_PATH:
            raise _no_such_file(location) from None
        if getattr(error, "errno", None) in NO_SPACE:
            message = f"The storage takes no more at the moment, not {location}; nothing was changed."
            raise StoreUnavailable(message, kind="storage") from error  # for the log, which says the error's name
        if isinstance(error, IsADirectoryError) or "is a directory" in str(error):
            raise Invalid(f"A directory, not a file: {location}", kind="metadata-file") from None
        reason = _reason(error)
        message = f"The storage did not answer for {location}: {reason}"
        if reason in EXPIRED:
            advice = "its credentials have expired; give the catalog new ones."
            message = f"The storage refused access to {location}: {advice}"
        raise ProviderUnavailable(message, kind="storage", retryable=reason not in REFUSALS) from None


def _reason(error: Exception) -> str:
    """The one word of it that quotes nobody; PyArrow has no name of its own for every code of S3."""
    for shape in (r"ExceptionName: (\w{1,60})", r"AWS Error (?!UNKNOWN\b)([A-Z_]{1,60})", r"(HTTP status \d{3})"):
        if named := re.search(shape, str(error)):
            return named[1]
    return type(error).__name__


def _no_such_file(location: str) -> NotFound:
    return NotFound(f"Failed to open input stream for file: {location}", kind="metadata-file")
