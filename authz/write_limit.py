"""Limits concurrent writes in a server's threads, so that writers waiting for one row leave threads for reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from prometheus_client import Counter

from metalake.errors import OutcomeUnknown, StoreUnavailable

PATIENCE = 1.0  # seconds without a finished write after which threads stop waiting
SPARED = Counter("metalake_writes_spared", "Writes that were told to come back, since others had all places")


class Writers:
    """Half of the threads may write; others wait for a slot as long as writes keep finishing."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.inside = 0
        self.moved_at = 0.0  # when a write last finished, or the first one began
        self.is_stuck = False  # the last finished write failed because the database did not respond

    @contextmanager
    def place(self) -> Iterator[None]:
        """Raises StoreUnavailable if no slot becomes free in time."""
        self._enter()
        stuck = False
        try:
            yield
        except (StoreUnavailable, OutcomeUnknown):
            stuck = True
            raise
        finally:
            self._leave(stuck)

    def _enter(self) -> None:
        with self.lock:
            while self.inside >= max(1, settings.METALAKE_THREADS // 2):
                patience = 0.0 if self.is_stuck else self.moved_at + PATIENCE - time.monotonic()
                if patience <= 0:
                    raise _spared()
                self.lock.wait(patience)
            if not self.inside:
                self.moved_at = time.monotonic()
            self.inside += 1

    def _leave(self, stuck: bool) -> None:
        with self.lock:
            self.inside -= 1
            self.is_stuck = stuck
            if not stuck:
                self.moved_at = time.monotonic()
            self.lock.notify_all()


def _spared() -> StoreUnavailable:
    SPARED.inc()
    spared = StoreUnavailable("Others wait to write already, and the database is slow; nothing was changed. Try again.")
    spared.retry_after = 1
    return spared


WRITERS = Writers()
