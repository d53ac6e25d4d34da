"""Django's SQLite backend, with a write queue among threads and processes (metalake/sqlite/write_queue.py)."""

from __future__ import annotations

import sqlite3

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from metalake.sqlite.write_queue import WRITE_QUEUES, WriteQueue


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions, which all write, hold the write queue's lock from begin to end."""

    _turn: WriteQueue | None = None
    _patience: float | None = None

    def wait_at_most(self, seconds: float) -> None:
        """Limit how long later transactions wait for other writers: in the queue, and then in SQLite."""
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
        """Raises OperationalError, as SQLite would, if the wait for other writers times out."""
        if self.is_in_memory_db():
            return
        turn, seconds = WRITE_QUEUES[str(self.settings_dict["NAME"])], self._patience
        if seconds is None:
            seconds = float(self.settings_dict["OPTIONS"].get("timeout", 5))
        if not turn.take(seconds):
            locked = sqlite3.OperationalError("database is locked")
            locked.sqlite_errorcode = sqlite3.SQLITE_BUSY  # read by metalake/database_errors.py
            raise OperationalError(*locked.args) from locked
        self._turn = turn

    def _give_turn_if_ended(self) -> None:
        if self.connection is None or not self.connection.in_transaction:
            self._give_turn()

    def _give_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.give()
