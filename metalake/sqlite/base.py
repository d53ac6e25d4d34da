"""The writers of a process take turns, since those that wait in SQLite sleep up to 0.1 s between two looks.

Whoever comes while they sleep is served before them: of ten writers one waited for seconds, while others went on. Other
processes still wait in SQLite itself. Source: sqlite3_busy_timeout, and the delays of its default busy handler.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import defaultdict, deque

from django.db import OperationalError
from django.db.backends.sqlite3 import base


class Turn:
    """A lock that goes to whoever waits longest for it, not to whoever comes when it is let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = deque[threading.Lock]()
        self._is_busy = False

    def take(self, seconds: float) -> bool:
        """Whether it came within that time."""
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
            came = own not in self._waiting  # in this moment
            if not came:
                self._waiting.remove(own)
            return came

    def give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_busy = False


_turns: defaultdict[str, Turn] = defaultdict(Turn)  # of each store
os.register_at_fork(after_in_child=_turns.clear)  # what the parent's threads were doing, no thread of a child ends


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions, which all write, have the turn of their process from begin to end."""

    _turn: Turn | None = None
    _patience: float | None = None

    def wait_at_most(self, seconds: float) -> None:
        """How long transactions wait for other writers from now on: of this process, and then of others."""
        self._patience = seconds
        with self.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    def _start_transaction_under_autocommit(self) -> None:
        self._take_turn()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs lack it
        except BaseException:
            self._give_turn()
            raise

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]  # the stubs lack it
        finally:
            self._give_turn_if_ended()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # the stubs lack it
        finally:
            self._give_turn_if_ended()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # the stubs lack it
        finally:
            self._give_turn()

    def _take_turn(self) -> None:
        """Raises OperationalError, in SQLite's words, if others write for longer than this connection waits."""
        if self.is_in_memory_db():
            return
        turn, seconds = _turns[str(self.settings_dict["NAME"])], self._patience
        if seconds is None:
            seconds = float(self.settings_dict["OPTIONS"].get("timeout", 5))
        if not turn.take(seconds):
            locked = sqlite3.OperationalError("database is locked")
            locked.sqlite_errorcode = sqlite3.SQLITE_BUSY  # by which the cause is known (metalake/causes.py)
            raise OperationalError(*locked.args) from locked
        self._turn = turn

    def _give_turn_if_ended(self) -> None:
        if self.connection is None or not self.connection.in_transaction:
            self._give_turn()

    def _give_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.give()
