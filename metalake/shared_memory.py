"""State shared by one server's processes outside the database: notes (a key-value store) and places (semaphores).

A server calls `share()` before it forks. Its board is a SQLite file in a private folder in memory, plus locks on single
bytes of another file. If a process is killed, the notes are as of the last committed transaction, and its places are
free, since the kernel releases its locks. Any other process has its own board. A note takes 10 us to read and 30 us to
write, a place 3 us: too much for the hot path.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Unavailable = sqlite3.Error
"""Raised if the board is unusable; callers that only count continue without it."""

PATIENCE = 0.2  # seconds to wait for a transaction, which normally takes microseconds
AGAIN = 0.02  # seconds between polls for a place released by another process
ROOM = 32 * 1024 * 1024  # free bytes that the folder of a board needs
MOST = 256  # places of one name
PREFIX = "metalake-board-"
HOMES = (Path("/dev/shm"), Path(tempfile.gettempdir()))  # noqa: S108 (a private folder in it); in memory if possible


class Board:
    """A board in a folder shared by all processes of a server, or in the memory of this process."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Set up this process's own connection and locks; SQLite requires that an inherited connection stays open."""
        self._inherited = vars(self).get("_connection")
        self._connection: sqlite3.Connection | None = None
        self._locks: int | None = None
        self._turn = threading.RLock()
        self._in_turn = False
        self.left = threading.Condition()
        self._numbers: dict[str, set[int]] = {}
        self._seat: int | None = None

    # SharedDict

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """A transaction, serialized across the server; a nested one joins the outer one."""
        with self._turn:
            connection = self._connected()
            if self._in_turn:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            self._in_turn = True
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                self._in_turn = False
                connection.rollback()  # if it is still open

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._turn:
            return self._connected().execute(sql, values).fetchall()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        with self._turn:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        file = ":memory:" if self.folder is None else self.folder / "notes"
        connection = sqlite3.connect(file, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # nothing has to survive the machine
        connection.execute("PRAGMA wal_autocheckpoint = 100")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS note (section TEXT, name TEXT, value TEXT, PRIMARY KEY (section, name)) "
            "WITHOUT ROWID"
        )
        return connection

    # Places

    def take(self, name: str, size: int) -> int | None:
        """Take the free place with the lowest number; None if all are taken."""
        with self.left:
            numbers = self._numbers.get(name, set())
            for number in range(size):
                if number not in numbers and self._lock(name, number):
                    self._numbers[name] = numbers | {number}
                    return number
            return None

    def leave(self, name: str, number: int) -> None:
        with self.left:
            numbers = self._numbers[name]
            numbers.remove(number)
            if not numbers:
                del self._numbers[name]
            if self.folder is not None:
                fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _byte(name, number))
            self.left.notify_all()

    def _lock(self, name: str, number: int) -> bool:
        if self.folder is None:
            return True
        try:
            fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name, number))
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES (lockf(3))
            return False
        return True

    def _file(self) -> int:
        """The lock file, opened once and never closed: closing any descriptor releases all locks of the process."""
        if self._locks is None:
            assert self.folder is not None
            self._locks = os.open(self.folder / "places", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._locks

    def seat(self) -> int:
        """This process's number among the running ones; the numbers of ended processes are reused."""
        with self.left:
            if self._seat is None:
                number = self.take("seats", MOST)
                assert number is not None, "more processes than a server has"
                self._seat = number
            return self._seat


def _byte(name: str, number: int) -> int:
    """The byte to lock for a place. Nothing is written: locks may be beyond the end of a file (fcntl(2))."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") * MOST + number


_board = Board()


def turn() -> Any:
    """A transaction over notes, as a context manager."""
    return _board.turn()


def seat() -> int:
    return _board._seat if _board._seat is not None else _board.seat()


def folder() -> Path | None:
    """A folder for other files that a server's processes share; None outside a server."""
    return _board.folder


class SharedDict(MutableMapping[str, Any]):
    """JSON values by name, in one section of the board."""

    def __init__(self, section: str) -> None:
        self.section = section

    def __getitem__(self, name: str) -> Any:
        rows = _board.read("SELECT value FROM note WHERE section = ? AND name = ?", self.section, name)
        if not rows:
            raise KeyError(name)
        return json.loads(rows[0][0])

    def __setitem__(self, name: str, value: Any) -> None:
        self.set_all({name: value})

    def set_all(self, values: Mapping[str, Any]) -> None:
        """Write several notes in one transaction."""
        rows = [(self.section, name, json.dumps(value)) for name, value in values.items()]
        with _board.turn() as connection:
            connection.executemany("INSERT OR REPLACE INTO note VALUES (?, ?, ?)", rows)

    def __delitem__(self, name: str) -> None:
        with _board.turn() as connection:
            if not connection.execute("DELETE FROM note WHERE section = ? AND name = ?", (self.section, name)).rowcount:
                raise KeyError(name)

    def everything(self) -> dict[str, Any]:
        rows = _board.read("SELECT name, value FROM note WHERE section = ? ORDER BY name", self.section)
        return {name: json.loads(value) for name, value in rows}

    def __iter__(self) -> Iterator[str]:
        return iter([name for (name,) in _board.read("SELECT name FROM note WHERE section = ?", self.section)])

    def __len__(self) -> int:
        return int(_board.read("SELECT COUNT(*) FROM note WHERE section = ?", self.section)[0][0])

    def clear(self) -> None:
        with _board.turn() as connection:
            connection.execute("DELETE FROM note WHERE section = ?", (self.section,))


class Places:
    """A semaphore of `size` slots, shared by all processes of the server."""

    def __init__(self, name: str, size: int) -> None:
        assert size <= MOST
        self.name, self.size = name, size

    def take(self, patience: float = 0.0) -> int | None:
        """Take a place, waiting up to `patience` seconds for one; None if none becomes free."""
        until = time.monotonic() + patience
        with _board.left:
            while (number := _board.take(self.name, self.size)) is None:
                left = until - time.monotonic()
                if left <= 0:
                    return None
                _board.left.wait(min(left, AGAIN))
            return number

    def leave(self, number: int) -> None:
        _board.leave(self.name, number)


# A server's shared board


def share() -> Path:
    """Create a server's board before it forks; the folder is removed when the server ends."""
    global _board
    home = next((each for each in HOMES if os.access(each, os.W_OK) and shutil.disk_usage(each).free > ROOM), HOMES[-1])
    _remove_abandoned(home)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home))
    fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_SH)  # shared with forks until the last one ends
    atexit.register(_remove, made, os.getpid())
    _board = Board(made)
    with _board.turn():
        pass  # creates the file
    _board.close()
    return made


def _remove(made: Path, by: int) -> None:
    if os.getpid() == by:
        shutil.rmtree(made, ignore_errors=True)


def _remove_abandoned(home: Path) -> None:
    """Remove the folders of killed servers; one younger than a minute may not be locked yet."""
    for abandoned in home.glob(f"{PREFIX}*"):
        with suppress(OSError):
            folder = os.open(abandoned, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                about = os.fstat(folder)
                if about.st_uid == os.geteuid() and about.st_mtime < time.time() - 60:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(abandoned)
            finally:
                os.close(folder)
