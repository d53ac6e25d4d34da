"""Writes local files durably: once a function here returns, its file survives a power cut."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from contextlib import suppress

# Errors of file systems on which directories need no fsync, or do not allow it (fsync(2)).
NO_FSYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}
FOLDERS_REMEMBERED = 4_096
_synced: set[str] = set()  # folders whose entry, and those of all ancestors, this process has synced


def write_new(path: str, content: bytes) -> None:
    """Write a new file, and create missing folders above it, durably.

    Never overwrites; removes a file that could not be written completely. Raises OSError, FileExistsError.
    """
    handle, made = _open_new(path)
    try:
        try:
            _write_all(handle, content)
            os.fsync(handle)  # on most file systems, this also syncs folders that were just created
        finally:
            os.close(handle)
        sync_entries(path, made)
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


def make_durable(path: str) -> None:
    """Sync an existing file and its folder entries: its writer may have died before doing so."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_entries(path)


def sync_entries(path: str, made: Collection[str] = ()) -> None:
    """Sync the directory entry of a file, and the entries of all folders above it.

    Those above are synced once per process, and again for folders just `made`, since another process may have created
    one without syncing it.
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
    _synced.update(synced)  # only once all ancestors are


def _open_new(path: str) -> tuple[int, list[str]]:
    """Open a new file for writing; also returns the folders created for it, whose entries are not synced yet.

    Retries, since `manage.py vacuum` may remove an empty folder that was just created.
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
    """Create the folder and its missing ancestors, and add them to `made`."""
    if os.path.isdir(folder):
        return
    _make_folders(os.path.dirname(folder), made)
    _synced.discard(folder)  # before others see it: an earlier folder of this name was removed
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
        if failure.errno not in NO_FSYNC:
            raise
