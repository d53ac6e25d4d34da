"""Exclusive roles: the one server of a data folder, and the one process of a server that works behind the requests.

Each is a kernel lock on a file (fcntl(2), "Advisory record locking"): a fork does not inherit it, and it ends with
its process, so nothing has to be cleaned up. The file's text names the process that has the lock, for people to read.
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
    """An exclusive role that one process at a time has, until it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._lock = threading.Lock()

    def is_mine(self) -> bool:
        """Whether this process has the turn; it takes it if it is free. Does not wait."""
        with self._lock:
            if self._file is None:
                self._file = self._take()
            return self._file is not None

    def _take(self) -> int | None:
        """The locked file, which must stay open to keep the turn; None if another process has the turn."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            log.error("%s cannot be opened, so this process takes no turn: %s", self.path, failure.strerror)
            return None
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError as failure:
            os.close(file)
            if failure.errno not in LOCKED_BY_OTHERS:
                log.error("%s cannot be locked, so this process takes no turn: %s", self.path, failure.strerror)
            return None
        return file

    def whose(self) -> str:
        """The id of the process that took it last; "" if it is not known."""
        if self._file is not None:
            return str(os.getpid())  # opening and closing the file here would end the turn
        try:
            text = self.path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return text if text.isdecimal() else ""


def places_of_server() -> list[Path]:
    """The files that a server locks: one in its data folder, and one beside a SQLite store."""
    own = [settings.METALAKE_HOME / SERVER]
    store = os.fspath(settings.DATABASES["default"]["NAME"])
    if settings.ON_SQLITE and ":memory:" not in store:
        own.append(Path(f"{store}.server"))
    return own


def begin_to_serve() -> Sequence[Turn]:
    """The turns of a server, for as long as this process lives. Raises CommandError if another server has one."""
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
    """The turn of the process that works for all processes of a server; when it ends another one takes over."""
    return Turn(settings.METALAKE_HOME / LEADER)


class Bell:
    """A wake-up that any process of a server sends to the one that waits; to be made before they fork."""

    def __init__(self) -> None:
        self._ear, self._rope = os.pipe()
        for end in (self._ear, self._rope):
            os.set_blocking(end, False)

    def ring(self) -> None:
        try:
            os.write(self._rope, b"!")
        except BlockingIOError:
            pass  # wake-ups enough are in the pipe

    def wait(self, seconds: float) -> bool:
        """Whether it was rung since the last wait, or is rung within so many seconds."""
        waits = select.poll()
        waits.register(self._ear, select.POLLIN)
        if not waits.poll(max(0, round(seconds * 1000))):
            return False
        try:
            while os.read(self._ear, 65_536):
                pass
        except BlockingIOError:
            pass
        return True
