"""What the processes of one server have in common beside the database: notes, and places that so many may hold.

A server calls `share()` before it forks. Its board is a SQLite file in a private folder in memory, and locks of single
bytes of a file beside it. A process that is killed leaves every note as it was after the last whole turn, and what it
held is free, since the kernel gives its locks back. Any other process has a board of its own. A note takes 10 us to
read and 30 us to write, a place 3 us: nothing for what most requests do.
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
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Unavailable = sqlite3.Error
"""The board was not to be had; who only counts goes on without."""

PATIENCE = 0.2  # seconds for a turn; one takes microseconds, so its holder stands still
AGAIN = 0.02  # seconds until a place that another process may have left is looked for again
ROOM = 32 * 1024 * 1024  # bytes that are free where a board is made
MOST = 256  # places of one name
PREFIX = "metalake-board-"
HOMES = (Path("/dev/shm"), Path(tempfile.gettempdir()))  # noqa: S108 (a folder of our own in it); memory where there is


class Board:
    """In a folder that all its processes know, or of this process alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """A process has its own connection and locks; those that it was born with stay open, as SQLite asks."""
        self._inherited = vars(self).get("_connection")
        self._connection: sqlite3.Connection | None = None
        self._locks: int | None = None
        self._turn = threading.RLock()
        self._in_turn = False
        self.left = threading.Condition()
        self._held: dict[str, set[int]] = {}
        self._seat: int | None = None

    # Notes

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and one after the other in the whole server; a turn within a turn is a part of it."""
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
                connection.rollback()  # where it is still open

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
        connection.execute("PRAGMA synchronous = OFF")  # it ends with the machine
        connection.execute("PRAGMA wal_autocheckpoint = 100")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS note (section TEXT, name TEXT, value TEXT, PRIMARY KEY (section, name)) "
            "WITHOUT ROWID"
        )
        return connection

    # Places

    def take(self, name: str, size: int) -> int | None:
        """The lowest place that is free."""
        with self.left:
            held = self._held.get(name, set())
            for number in range(size):
                if number not in held and self._lock(name, number):
                    self._held[name] = held | {number}
                    return number
            return None

    def leave(self, name: str, number: int) -> None:
        with self.left:
            held = self._held[name]
            held.remove(number)
            if not held:
                del self._held[name]
            if self.folder is not None:
                fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _byte(name, number))
            self.left.notify_all()

    def _lock(self, name: str, number: int) -> bool:
        if self.folder is None:
            return True
        try:
            fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name, number))
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as lockf(3) says it
            return False
        return True

    def _file(self) -> int:
        """Opened once and never closed: closing any descriptor of it gives all of the process's locks back."""
        if self._locks is None:
            assert self.folder is not None
            self._locks = os.open(self.folder / "places", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._locks

    def seat(self) -> int:
        """This process's number: none that runs has the same, and one that comes takes that of one that went."""
        with self.left:
            if self._seat is None:
                taken = self.take("seats", MOST)
                assert taken is not None, "more processes than a server has"
                self._seat = taken
            return self._seat


def _byte(name: str, number: int) -> int:
    """No byte is ever written: locks may lie beyond the end of a file (fcntl(2))."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") * MOST + number


_board = Board()


def turn() -> Any:
    """`with turn():` what is read and written in it is one."""
    return _board.turn()


def seat() -> int:
    return _board._seat if _board._seat is not None else _board.seat()


def folder() -> Path | None:
    """Where a server's processes may keep other files of theirs; None in a process of its own."""
    return _board.folder


class Notes(MutableMapping[str, Any]):
    """What JSON can say, by name."""

    def __init__(self, section: str) -> None:
        self.section = section

    def __getitem__(self, name: str) -> Any:
        found = _board.read("SELECT value FROM note WHERE section = ? AND name = ?", self.section, name)
        if not found:
            raise KeyError(name)
        return json.loads(found[0][0])

    def __setitem__(self, name: str, value: Any) -> None:
        with _board.turn() as connection:
            connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?, ?)", (self.section, name, json.dumps(value)))

    def __delitem__(self, name: str) -> None:
        with _board.turn() as connection:
            if not connection.execute("DELETE FROM note WHERE section = ? AND name = ?", (self.section, name)).rowcount:
                raise KeyError(name)

    def everything(self) -> dict[str, Any]:
        found = _board.read("SELECT name, value FROM note WHERE section = ? ORDER BY name", self.section)
        return {name: json.loads(value) for name, value in found}

    def __iter__(self) -> Iterator[str]:
        return iter([name for (name,) in _board.read("SELECT name FROM note WHERE section = ?", self.section)])

    def __len__(self) -> int:
        return int(_board.read("SELECT COUNT(*) FROM note WHERE section = ?", self.section)[0][0])

    def clear(self) -> None:
        with _board.turn() as connection:
            connection.execute("DELETE FROM note WHERE section = ?", (self.section,))


class Places:
    """So many may be held at once, by all processes of the server together."""

    def __init__(self, name: str, size: int) -> None:
        assert size <= MOST
        self.name, self.size = name, size

    def take(self, patience: float = 0.0) -> int | None:
        """One that is free, or gets free within so many seconds; None where none does."""
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


# A server's own


def share() -> Path:
    """Before a server forks: one board for all of its processes, in a folder that goes with it."""
    global _board
    home = next((each for each in HOMES if os.access(each, os.W_OK) and shutil.disk_usage(each).free > ROOM), HOMES[-1])
    _remove_abandoned(home)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home))
    fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_SH)  # held by whoever was forked, too, until the last has ended
    atexit.register(_remove, made, os.getpid())
    _board = Board(made)
    with _board.turn():
        pass  # it is made
    _board.close()
    return made


def _remove(made: Path, by: int) -> None:
    if os.getpid() == by:
        shutil.rmtree(made, ignore_errors=True)


def _remove_abandoned(home: Path) -> None:
    """What servers left that were killed as a whole; one that is just being made is not locked yet."""
    for found in home.glob(f"{PREFIX}*"):
        with suppress(OSError):
            folder = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                about = os.fstat(folder)
                if about.st_uid == os.geteuid() and about.st_mtime < time.time() - 60:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(found)
            finally:
                os.close(folder)
