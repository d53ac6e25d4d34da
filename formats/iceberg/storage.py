"""Open, read, create and delete files in a catalog's storage or on the local disk, with failures as our own errors.

A FileIO is built only from the catalog's settings: table properties never choose a class, an endpoint or a key. Local
files are accessed by system calls; the client of remote storages is injected (providers/network/storage.py), and
imported with the first file there.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from io import SEEK_END
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from formats.iceberg import durable_files
from formats.iceberg.forbidden_properties import loads_class
from formats.iceberg.locations import SAME_STORAGE, is_local, is_under, named_path, real_path, require_deletable
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
    from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

log = logging.getLogger(__name__)


IO_SETTINGS = ("s3.", "gcs.", "adls.", "hdfs.", "oss.", "client.")
REMOTE_DEFAULTS = {"s3.connect-timeout": "3", "s3.request-timeout": "10"}
LONGEST = {"s3.connect-timeout": 10.0, "s3.request-timeout": 30.0}  # seconds, so that no thread blocks forever
# The disk or the account's quota is full, or the file is larger than the process may write.
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# A path that cannot exist is a missing file, not a storage failure.
NO_SUCH_PATH = {errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
# AWS errors that are not worth a retry.
REFUSALS = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "InvalidClientTokenId", "NoSuchBucket", "SignatureDoesNotMatch"}
)
# Errors that go away once the catalog gets new keys; retryable, so that a purge resumes then.
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
AZURE = re.compile(r"^((?:abfs|wasb)s?)://([^/@]+)@[^/]+", re.IGNORECASE)


class Refused(Exception):
    """An error response of a storage; only its code is repeated."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code if re.fullmatch(r"[\w ]{1,60}", code) else "unknown"


# From the settings, the URI scheme and whether to use the server's own credentials: the subset of a FileIO used here,
# plus `holds_files`, which tells whether a folder has a file at any depth.
Opener = Callable[[Mapping[str, str], str, bool], Any]


def this_machine_alone(settings: Mapping[str, str], scheme: str, is_own: bool) -> FileIO:
    """The Opener for local files only: always raises Invalid."""
    raise Invalid(f"No client for {scheme}:// locations was given.", kind="storage")


def file_io(
    catalog_properties: Mapping[str, str], opener: Opener = this_machine_alone, own_places: Iterable[str] = ()
) -> FileIO:
    """The FileIO of a catalog, shared by catalogs with the same storage settings. Pass catalog properties only.

    In `own_places` (locations, or a whole scheme as `s3://*`), missing keys fall back to the server's own credentials.
    """
    settings = {key: value for key, value in catalog_properties.items() if key.startswith(IO_SETTINGS)}
    settings = REMOTE_DEFAULTS | {key: value for key, value in settings.items() if not loads_class(key)}
    settings |= {key: _seconds(settings[key], most) for key, most in LONGEST.items()}
    return _shared(tuple(sorted(settings.items())), opener, tuple(own_places))


def _seconds(given: str, most: float) -> str:
    try:
        return given if 0 < float(given) <= most else str(most)
    except ValueError:
        return str(most)


@lru_cache(maxsize=256)
def _shared(settings: tuple[tuple[str, str], ...], opener: Opener, own_places: tuple[str, ...]) -> FileIO:
    return cast("FileIO", LazyFileIO(dict(settings), opener, own_places))


class LazyFileIO:
    """The FileIO of a catalog's remote storages; the client of each is created on first use."""

    def __init__(self, settings: dict[str, str], opener: Opener, own_places: tuple[str, ...]) -> None:
        self.properties = settings
        self.own_places = own_places
        self._open = lru_cache(maxsize=16)(lambda scheme, is_own: opener(settings, scheme, is_own))

    def files_of(self, location: str) -> Any:
        """The client for a location. Raises Invalid, ProviderUnavailable."""
        scheme = location.partition("://")[0].lower()
        return self._open(scheme, any(_is_in(location, scheme, place) for place in self.own_places))

    def new_input(self, location: str) -> InputFile:
        return cast("InputFile", self.files_of(location).new_input(location))

    def new_output(self, location: str) -> OutputFile:
        return cast("OutputFile", self.files_of(location).new_output(location))

    def delete(self, location: str) -> None:
        self.files_of(location).delete(location)

    def holds_files(self, location: str) -> bool:
        return bool(self.files_of(location).holds_files(location))


def _is_in(location: str, scheme: str, place: str) -> bool:
    try:
        return place == f"{SAME_STORAGE.get(scheme, scheme)}://*" or is_under(location, place)
    except Invalid:
        return False


def make_durable(location: str) -> None:
    """Fsync a local file written by another process before a pointer refers to it; remote storages need none."""
    if is_local(location):
        with _storage_errors(location):
            durable_files.make_durable(real_path(location))


def read_bytes(io: FileIO, location: str, max_bytes: int) -> bytes:
    """A file's content. Raises NotFound, TooLarge, ProviderUnavailable, and Invalid for a folder, pipe or device."""
    if is_local(location):
        _require_file(location)
    with _storage_errors(location), _opened(io, location) as stream:
        size = stream.seek(0, SEEK_END)
        if size > max_bytes:
            raise TooLarge(f"The file is over {max_bytes} bytes: {location}", kind="metadata-file")
        stream.seek(0)
        return bytes(stream.read(size))


def read_small(location: str, most: int) -> bytes | None:
    """A local file's content; None unless it is a readable regular file of at most `most` bytes."""
    try:
        file = os.open(named_path(location), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return None
        content = os.read(file, about.st_size)
    except OSError:
        return None
    finally:
        os.close(file)
    return content if len(content) == about.st_size else None


def _opened(io: FileIO, location: str) -> BinaryIO | InputStream:
    return open(named_path(location), "rb") if is_local(location) else io.new_input(_address(location)).open()


def is_empty(io: FileIO, location: str) -> bool:
    """Whether a folder is missing or has no file at any depth; staged creates may leave empty folders.

    Raises ProviderUnavailable, Invalid, NotFound.
    """
    with _storage_errors(location):
        if is_local(location):
            return not _holds_a_file_here(named_path(location))
        assert isinstance(io, LazyFileIO)
        return not io.holds_files(_address(location))


def _holds_a_file_here(folder: str) -> bool:
    """Whether a local folder has a file at any depth; symbolic links are followed."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return False
    if any(not entry.is_dir() for entry in entries):
        return True
    try:
        return any(_holds_a_file_here(entry.path) for entry in entries)
    except OSError:
        return True  # an unreadable folder is not known to be empty


def make_folder(location: str) -> None:
    """Create a local folder and its parents if missing. The caller must have checked the location.

    Raises ProviderUnavailable, and Invalid if a file is in the way or a name is too long for the file system.
    """
    try:
        with _storage_errors(location):
            os.makedirs(real_path(location), exist_ok=True)
    except (AlreadyExists, NotFound):
        raise Invalid(
            f"Location {location!r:.200} is not usable: no folder can be made there", kind="location"
        ) from None


def _require_file(location: str) -> None:
    """Raise Invalid for a directory, and for a pipe or device, which would block its reader forever."""
    path = real_path(location)
    if os.path.exists(path) and not os.path.isfile(path):
        what = "A directory" if os.path.isdir(path) else "A pipe or a device"
        raise Invalid(f"{what}, not a file: {location}", kind="metadata-file")


def delete_file(io: FileIO, location: str) -> int:
    """Delete a file; 1 if it was deleted, 0 if there was none.

    Raises ProviderUnavailable, and Invalid for a file in the server's own data directories.
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


def require_reachable(io: FileIO, location: str) -> None:
    """Check that a folder can be reached, without writing to it. Raises ProviderUnavailable.

    A local folder, or its nearest existing parent, must be writable for this server. In a remote storage the folder or
    at least its bucket must exist; whether it is writable shows with the first write.
    """
    local = real_path(location)
    if local.startswith("/"):
        _require_writable_folder(location, local)
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
        if not refusal.retryable:  # keys restricted to a prefix are refused here, and may still work
            return
        raise
    raise ProviderUnavailable(f"There is no {bucket} in the storage.", kind="storage", retryable=False)


def _require_writable_folder(location: str, path: str) -> None:
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not (os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)):
        raise ProviderUnavailable(f"This server may not write to {location}.", kind="storage", retryable=False)


def delete_quietly(io: FileIO, locations: Iterable[str]) -> None:
    """Delete files; failures are only logged. For files that we wrote or that `table_locations.owned_by` accepts."""
    for location in locations:
        try:
            delete_file(io, location)
        except MetalakeError as error:
            log.warning("A file was left behind: %s", error.message)


def create(io: FileIO, location: str, content: bytes) -> None:
    """Write a new file; a partial one is removed. Raises AlreadyExists, ProviderUnavailable, StoreUnavailable."""
    if is_local(location):
        with _storage_errors(location):
            durable_files.write_new(real_path(location), content)
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
    """The location in the storage client's form: the Azure client takes the account from its settings."""
    return AZURE.sub(r"\1://\2", location)


@contextmanager
def _storage_errors(location: str) -> Iterator[None]:
    """Map a storage client's exceptions to our errors, without their text, which may contain requests and keys."""
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
            raise StoreUnavailable(message, kind="storage") from error  # chained, so that the log names it
        if isinstance(error, IsADirectoryError) or "is a directory" in str(error):
            raise Invalid(f"A directory, not a file: {location}", kind="metadata-file") from None
        reason = _reason(error)
        message = f"The storage did not answer for {location}: {reason}"
        if reason in EXPIRED:
            advice = "its credentials have expired; give the catalog new ones."
            message = f"The storage refused access to {location}: {advice}"
        raise ProviderUnavailable(message, kind="storage", retryable=reason not in REFUSALS) from None


def _reason(error: Exception) -> str:
    """The error's code or class name, which reveals nothing of the request."""
    return error.code if isinstance(error, Refused) else type(error).__name__


def _no_such_file(location: str) -> NotFound:
    return NotFound(f"Failed to open input stream for file: {location}", kind="metadata-file")
