"""Files of this machine that are on the disk, not only promised to it, when they are said to be written."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import lru_cache

# A file system that keeps no order of its folders' entries has nothing to be asked (fsync(2): EINVAL).
NOT_ASKED = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}
FOLDERS_REMEMBERED = 4_096


def write_new(path: str, content: bytes) -> None:
    """Make a file of this content, and the folders that it lies in; a power cut later takes away nothing of it.

    Nothing is overwritten, and nothing is left of what could not be written whole. Raises OSError, FileExistsError.
    """
    handle = _open_new(path)
    try:
        try:
            _write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        keep_entries(path)
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


def keep(path: str) -> None:
    """As `write_new`, of a file that is there already: by whom it was written may have died before this."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    keep_entries(path)


def keep_entries(path: str) -> None:
    """Have the entry of a file on the disk, and those of the folders that lead to it."""
    folder = os.path.dirname(path)
    _sync_folder(folder)
    _lead_to(folder)


def make_folders(folder: str) -> None:
    """The folder and those above it that are missing, their entries on the disk."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folders(above)
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    _sync_folder(above)


def _open_new(path: str) -> int:
    """A folder that is empty may be removed again in the moment after it was made (`manage.py vacuum`)."""
    for is_last in (False, False, True):
        try:
            make_folders(os.path.dirname(path))
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            if is_last:
                raise
    raise AssertionError


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


@lru_cache(FOLDERS_REMEMBERED)
def _lead_to(folder: str) -> None:
    """Once for each folder: an engine, or another process a moment ago, may have made it and not seen to its entry."""
    above = os.path.dirname(folder)
    if above != folder:
        _sync_folder(above)
        _lead_to(above)


def _sync_folder(folder: str) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as failure:
        if failure.errno not in NOT_ASKED:
            raise
