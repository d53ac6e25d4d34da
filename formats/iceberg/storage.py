"""Files of a catalog's storage, or of this machine: opened, read, made and deleted, with failures that are ours.

A FileIO is built from the catalog's own settings alone: a table's properties never choose a class, an endpoint
or a key. Files of this machine are read and written by the system's own calls; pyiceberg and pyarrow, which take a
process 90 MB and a second, are imported with the first file of a storage.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from io import SEEK_END
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import urlsplit

from formats.iceberg import disk
from formats.iceberg.guard import loads_class
from formats.iceberg.locations import is_local, named_path, real_path, require_deletable
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
AZURE = re.compile(r"^((?:abfs|wasb)s?)://([^/@]+)@[^/]+", re.IGNORECASE)


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


def keep(location: str) -> None:
    """Have a file that somebody else wrote on the disk before a pointer names it; a storage has seen to its own."""
    if is_local(location):
        with _storage_errors(location):
            disk.keep(real_path(location))


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


def create(io: FileIO, location: str, content: bytes) -> None:
    """Write a new file; a half-written one is removed. Raises AlreadyExists, ProviderUnavailable, StoreUnavailable."""
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
