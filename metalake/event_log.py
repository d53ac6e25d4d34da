"""The event log: a file of JSON lines, named by METALAKE_EVENT_LOG, from which operators ship events elsewhere."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from typing import Any

import orjson
from django.conf import settings


def append(event: dict[str, Any]) -> None:
    """Append an event as one line, atomically, and fsync it.

    Raises OSError, as on a full disk: the event stays in the outbox.
    """
    if not settings.METALAKE_EVENT_LOG:
        return
    handle = os.open(settings.METALAKE_EVENT_LOG, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        _write(handle, orjson.dumps(event) + b"\n")
    finally:
        os.close(handle)


def _write(handle: int, line: bytes) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.write(handle, line)  # a pipe accepts a line of this length whole, or blocks
        return
    fcntl.flock(handle, fcntl.LOCK_EX)  # one writer at a time, so that a process truncates only its own line
    end = os.fstat(handle).st_size
    if end and os.pread(handle, 1, end - 1) != b"\n":
        line = b"\n" + line  # a partial line, left by a killed process or a full disk, stays a separate line
    try:
        if os.write(handle, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), settings.METALAKE_EVENT_LOG)
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, end)
        raise
