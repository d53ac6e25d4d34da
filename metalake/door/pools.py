"""The threads that answer: a few that read our own store, and others for everything that may block.

A read begins among the first. Where it finds that it must wait (metalake/blocking.py) it begins again among the
others, so that nothing slow ever stands before a read of our own store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from queue import SimpleQueue

from metalake.blocking import short_reads

log = logging.getLogger(__name__)

Job = Callable[[], object]

STUCK = 120.0  # seconds on one job after which a thread counts as lost


class Pool:
    """Long-lived threads, and a line before them that is at most so long."""

    def __init__(self, name: str, threads: int, most: int, *, reads: bool = False) -> None:
        self.name, self.threads, self.most, self.reads = name, threads, most, reads
        self.line: SimpleQueue[Job] = SimpleQueue()
        self.since: dict[int, float] = {}  # by thread: when its job began

    def start(self) -> None:
        for number in range(self.threads):
            threading.Thread(target=self._work, args=(number,), name=f"{self.name} {number}", daemon=True).start()

    def take(self, job: Job) -> bool:
        """False where the line is full: nothing is done then. For one thread to call, the event loop's."""
        if self.line.qsize() >= self.most:
            return False
        self.line.put(job)
        return True

    @property
    def is_idle(self) -> bool:
        return not self.since and self.line.empty()

    @property
    def is_stuck(self) -> bool:
        """Whether every thread has been on one job for too long."""
        began = list(self.since.values())
        return len(began) == self.threads and max(began) < time.monotonic() - STUCK

    def _work(self, number: int) -> None:
        with short_reads() if self.reads else nullcontext():
            while True:
                job = self.line.get()
                self.since[number] = time.monotonic()
                try:
                    job()
                except BaseException:
                    log.exception("a thread that answers went on after a failure")
                finally:
                    del self.since[number]
