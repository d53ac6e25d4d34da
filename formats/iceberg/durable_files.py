"""Write local files durably: when a function here returns, a power cut cannot take its file away."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from contextlib import suppress

# Errors of a file system where folders need no fsync, or allow none (fsync(2)).
NOT_ASKED = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}
FOLDERS_REMEMBERED = 4_096
_synced: set[str] = set()  # folders whose own entry, and those of all above, this process has synced


def write_new(path: str, content: bytes) -> None:
    """Write a new file with this content, and make the folders above it, durably.

    It overwrites nothing, and removes a file that could not be written whole. Raises OSError, FileExistsError.
    """
    handle, made = _open_new(path)
    try:
        try:
            _write_all(handle, content)
            os.fsync(handle)  # on most file systems, this brings the folders that were just made to the disk, too
        finally:
            os.close(handle)
        sync_entries(path, made)
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


def sync_entries(path: str, made: Collection[str] = ()) -> None:
    """Sync the folder entry of a file to the disk, and the entries of all folders above it.

    Those of folders above are synced once for each folder, and for those that were `made` just now: whoever made one
    may not have synced it.
    """
    folder = os.path.dirname(path)
    _sync_folder(folder)
    synced = []
    while (above := os.path.dirname(folder)) != folder and (folder in made or folder not in _synced):
        _sync_folder(above)
        synced.append(folder)
        folder = above
    if len(_synced) > FOLDERS_REMEMBERED:
        _synced.clear()
    _synced.update(synced)  # only now, when all above them are


def _open_new(path: str) -> tuple[int, list[str]]:
    """Open a new file for writing; with the folders that were made for it, whose entries are not synced yet.

    Tries again, since `manage.py vacuum` may remove an empty folder just made.
    """
    made: list[str] = []
    for is_last in (False, False, True):
        try:
            _make_folders(os.path.dirname(path), made)
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), made
        except FileNotFoundError:
            if is_last:
                raise
    raise AssertionError


def _make_folders(folder: str, made: list[str]) -> None:
    """Make the folder and the missing ones above it, and add them to `made`."""
    if os.path.isdir(folder):
        return
    _make_folders(os.path.dirname(folder), made)
    _synced.discard(folder)  # before others see it: one of this name was removed
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    made.append(folder)


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


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
