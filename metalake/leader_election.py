"""Leader election: one server per data folder, and one process per server for background work.

Both are kernel locks on a file (fcntl(2), "Advisory record locking"): not inherited by a fork, and released when the
process ends, so there is nothing to clean up. The file contains the holder's process id, for humans.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import select
import threading
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

log = logging.getLogger(__name__)

LOCKED_BY_OTHERS = {errno.EACCES, errno.EAGAIN}  # source: lockf(3)
SERVER, LEADER = "server.lock", "leader.lock"


class Turn:
    """A lock that one process holds until it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._lock = threading.Lock()

    def is_mine(self) -> bool:
        """Whether this process holds the lock, taking it if it is free. Does not wait."""
        with self._lock:
            if self._file is None:
                self._file = self._take()
            return self._file is not None

    def _take(self) -> int | None:
        """The locked file, which must stay open to keep the lock; None if another process holds it."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            log.error("%s cannot be opened, so this process cannot lead: %s", self.path, failure.strerror)
            return None
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError as failure:
            os.close(file)
            if failure.errno not in LOCKED_BY_OTHERS:
                log.error("%s cannot be locked, so this process cannot lead: %s", self.path, failure.strerror)
            return None
        return file

    def whose(self) -> str:
        """The id of the last process that acquired it; "" if unknown."""
        if self._file is not None:
            return str(os.getpid())  # opening and closing the file here would release the lock
        try:
            text = self.path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return text if text.isdecimal() else ""


def places_of_server() -> list[Path]:
    """The files that a server locks: one in its data folder, and one next to a SQLite database."""
    own = [settings.METALAKE_HOME / SERVER]
    store = os.fspath(settings.DATABASES["default"]["NAME"])
    if settings.ON_SQLITE and ":memory:" not in store:
        own.append(Path(f"{store}.server"))
    return own


def begin_to_serve() -> Sequence[Turn]:
    """Acquire a server's locks until this process ends. Raises CommandError if another server holds one."""
    turns = [Turn(place) for place in places_of_server()]
    for turn in turns:
        if not turn.is_mine():
            pid = turn.whose()
            process, stop = (f" (process {pid})", f"stop it (kill {pid})") if pid else ("", "stop it")
            raise CommandError(
                f"A server runs on {turn.path.parent} already{process}, and there can be no second one: {stop}, or "
                f"give this one a METALAKE_HOME of its own. Several servers on one store need PostgreSQL: "
                f"METALAKE_DATABASE_URL=postgres://user:password@host/database (docs/operations.md, Several nodes)."
            )
    return turns


def leadership() -> Turn:
    """The leader lock of a server's background work; when the leader ends, another process takes over."""
    return Turn(settings.METALAKE_HOME / LEADER)


class WakeupPipe:
    """Wakes the leading process from any process of a server, through a pipe; create it before the fork."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)

    def ring(self) -> None:
        try:
            os.write(self._write_end, b"!")
        except BlockingIOError:
            pass  # the pipe is full of wake-ups already

    def wait(self, seconds: float) -> bool:
        """Whether a wake-up arrived since the last wait, or arrives within `seconds`."""
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        if not poll.poll(max(0, round(seconds * 1000))):
            return False
        try:
            while os.read(self._read_end, 65_536):
                pass
        except BlockingIOError:
            pass
        return True
