"""Write local files durably: when a function here returns, a power cut cannot take its file away."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import lru_cache

# Errors of a file system where folders need no fsync, or allow none (fsync(2)).
NOT_ASKED = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}
FOLDERS_REMEMBERED = 4_096


def write_new(path: str, content: bytes) -> None:
    """Write a new file with this content, and make the folders above it, durably.

    It overwrites nothing, and removes a file that could not be written whole. Raises OSError, FileExistsError.
    """
    handle = _open_new(path)
    try:
        try:
            _write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_entries(path)
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


def make_durable(path: str) -> None:
    """Sync an existing file and its folder entries to the disk: its writer may have died before it did so."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_entries(path)


def sync_entries(path: str) -> None:
    """Sync the folder entry of a file to the disk, and the entries of all folders above it."""
    folder = os.path.dirname(path)
    _sync_folder(folder)
    _sync_path_to(folder)


def make_folders(folder: str) -> None:
    """Make the folder and the missing ones above it, and sync their entries to the disk."""
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
    """Open a new file for writing. Tries again, since `manage.py vacuum` may remove an empty folder just made."""
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
def _sync_path_to(folder: str) -> None:
    """Sync the entries of all folders above this one, once for each folder: whoever made it may not have synced it."""
    above = os.path.dirname(folder)
    if above != folder:
        _sync_folder(above)
        _sync_path_to(above)


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
