"""What only one may do: serve from a data folder, and of a server's processes, lead its work behind the requests.

Both are locks of the kernel's on a file (fcntl(2), "Advisory record locking"): a fork does not inherit one, and it ends
with its process, however that ends, so nobody has to clean up. A file's text says who has it, for people to read.
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

TAKEN = {errno.EACCES, errno.EAGAIN}  # as lockf(3) says it
SERVER, LEADER = "server.lock", "leader.lock"


class Turn:
    """A turn at something, which one process at a time has, until it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._lock = threading.Lock()

    def is_mine(self) -> bool:
        """Whether this process has it, also where it takes it only now. Waits for nobody."""
        with self._lock:
            if self._file is None:
                self._file = self._take()
            return self._file is not None

    def _take(self) -> int | None:
        """The file, which stays open: closing it would end the turn."""
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
            if failure.errno not in TAKEN:
                log.error("%s cannot be locked, so this process takes no turn: %s", self.path, failure.strerror)
            return None
        return file

    def whose(self) -> str:
        """The id of the process that took it last; "" where that is not known."""
        if self._file is not None:
            return str(os.getpid())  # to open and close the file would end the turn, too
        try:
            said = self.path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return said if said.isdecimal() else ""


def places_of_server() -> list[Path]:
    """The files that a server locks: in its data folder, and beside a SQLite store wherever that lies."""
    own = [settings.METALAKE_HOME / SERVER]
    store = os.fspath(settings.DATABASES["default"]["NAME"])
    if settings.ON_SQLITE and ":memory:" not in store:
        own.append(Path(f"{store}.server"))
    return own


def begin_to_serve() -> Sequence[Turn]:
    """What this process has for as long as it lives. Raises CommandError where another server has it."""
    turns = [Turn(place) for place in places_of_server()]
    for turn in turns:
        if not turn.is_mine():
            pid = turn.whose()
            told, stop = (f" (process {pid})", f"stop it (kill {pid})") if pid else ("", "stop it")
            raise CommandError(
                f"A server runs on {turn.path.parent} already{told}, and there can be no second one: {stop}, or give "
                f"this one a METALAKE_HOME of its own. Several servers on one store need PostgreSQL: "
                f"METALAKE_DATABASE_URL=postgres://user:password@host/database (docs/operations.md, Several nodes)."
            )
    return turns


def leadership() -> Turn:
    """The turn at what one process of a server does for all of them; another takes it when that one is gone."""
    return Turn(settings.METALAKE_HOME / LEADER)


class Bell:
    """Rung by any process of a server, heard by the one that waits for it; made before they fork."""

    def __init__(self) -> None:
        self._ear, self._rope = os.pipe()
        for end in (self._ear, self._rope):
            os.set_blocking(end, False)

    def ring(self) -> None:
        try:
            os.write(self._rope, b"!")
        except BlockingIOError:
            pass  # it has been rung often enough

    def wait(self, seconds: float) -> bool:
        """Whether it was rung since the last time, or is within so many seconds."""
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
