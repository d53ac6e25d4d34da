"""A fair queue of writers to a SQLite store: first among the threads of a process, then among processes.

SQLite itself is not fair: a waiting writer sleeps up to 0.1 s between polls, and a later one may overtake it, so that
threads or whole processes starved for seconds. SQLite's own lock still excludes writers; the queue only decides who
tries next. Source: sqlite3_busy_timeout, and the delays of its busy handler.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import deque

STINT = 0.02  # seconds for which one process's threads may write before yielding to another process
LOOK = 0.003  # seconds between polls by the thread that waits for other processes


class WriteQueue:
    """A FIFO lock for writing to a store: the thread that has waited longest gets it."""

    def __init__(self, store: str) -> None:
        self._processes = Processes(f"{store}-turns")
        self._lock = threading.Lock()
        self._waiting = deque[threading.Lock]()
        self._is_busy = False  # a thread of this process holds it
        self._is_ours = False  # this process holds it among the processes
        self._ends = 0.0  # when another process may take it

    def take(self, seconds: float) -> bool:
        """Take the lock; False if it was not free within `seconds`."""
        until = time.monotonic() + seconds
        if not self._take_here(seconds):
            return False
        if self._is_ours:  # the previous thread left it to this process
            return True
        if not self._processes.take(until):
            self.give()
            return False
        self._is_ours, self._ends = True, time.monotonic() + STINT
        return True

    def give(self) -> None:
        with self._lock:
            waiting = self._waiting.popleft() if self._waiting else None
            if self._is_ours and (waiting is None or time.monotonic() > self._ends):
                self._is_ours = False
                self._processes.give()
            if waiting is None:
                self._is_busy = False
            else:
                waiting.release()

    def _take_here(self, seconds: float) -> bool:
        with self._lock:
            if not self._is_busy:
                self._is_busy = True
                return True
            own = threading.Lock()
            own.acquire()
            self._waiting.append(own)
        if own.acquire(timeout=seconds):
            return True
        with self._lock:
            came = own not in self._waiting  # it got the lock after all
            if not came:
                self._waiting.remove(own)
            return came


class Processes:
    """The lock among processes: a file next to the store, with a lock for the turn and one for the next in line.

    The next in line waits for the turn, all others to be next; so a process that just wrote queues behind them.
    The kernel frees the locks of a killed process.
    """

    TURN, NEXT = 0, 1  # bytes of the file

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None  # open while this process has the turn or waits for it

    def take(self, until: float) -> bool:
        """Take the turn; False if not free by `until` (time.monotonic()). Always True if the file cannot be locked."""
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._lock(self.NEXT, until) and self._lock(self.TURN, until):
                self._free(self.NEXT)
                return True
        except OSError:  # SQLite itself reports what is wrong with the folder
            self.give()
            return True
        self.give()
        return False

    def give(self) -> None:
        """Close the file, which frees its locks (fcntl(2))."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _lock(self, byte: int, until: float) -> bool:
        while True:
            try:
                fcntl.lockf(self._opened, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, depending on the system (fcntl(2))
                if time.monotonic() >= until:
                    return False
                time.sleep(LOOK)
            else:
                return True

    def _free(self, byte: int) -> None:
        fcntl.lockf(self._opened, fcntl.LOCK_UN, 1, byte)

    @property
    def _opened(self) -> int:
        assert self._file is not None
        return self._file


class WriteQueues(dict[str, WriteQueue]):
    """A process's write queues by store."""

    def __missing__(self, store: str) -> WriteQueue:
        return self.setdefault(store, WriteQueue(store))  # another thread may have been faster


WRITE_QUEUES = WriteQueues()
os.register_at_fork(after_in_child=WRITE_QUEUES.clear)  # a child lacks the threads that hold the parent's locks
