"""The thread pools for requests: one for reads of our own database, one for everything that may block.

A read starts in the first pool. If it would block (metalake/blocking.py) it is retried in the other, so that nothing
slow delays reads of our own database.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext

from metalake.blocking import short_reads

log = logging.getLogger(__name__)

Job = Callable[[], object]

STUCK = 120.0  # seconds on one job after which a thread counts as stuck


class Pool:
    """Long-lived threads, and a queue of at most `most` jobs.

    The thread that became idle last works first: its stack, connection and CPU caches are still warm. Round-robin would
    cost a fifth more.
    """

    def __init__(self, name: str, threads: int, most: int, *, reads: bool = False, niceness: int = 0) -> None:
        """`niceness` is added to that of its threads, so that the event loop has priority over them."""
        self.name, self.threads, self.most, self.reads, self.niceness = name, threads, most, reads, niceness
        self.line: deque[Job] = deque()
        self.idle: list[_IdleThread] = []
        self.lock = threading.Lock()
        self.since: dict[int, float] = {}  # by thread: when its job began

    def start(self) -> None:
        for number in range(self.threads):
            threading.Thread(target=self._work, args=(number,), name=f"{self.name} {number}", daemon=True).start()

    def take(self, job: Job) -> bool:
        """Give the job to a thread or queue it; False if the queue is full."""
        with self.lock:
            if self.idle:
                self.idle.pop().wake(job)
                return True
            if len(self.line) >= self.most:
                return False
            self.line.append(job)
            return True

    @property
    def is_idle(self) -> bool:
        return not (self.since or self.line)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread has been on one job for too long."""
        began = list(self.since.values())
        return len(began) == self.threads and max(began) < time.monotonic() - STUCK

    def _work(self, number: int) -> None:
        rest = _IdleThread()
        if sys.platform == "linux":  # where each thread has its own (nice(2))
            os.nice(self.niceness)
        with short_reads() if self.reads else nullcontext():
            while True:
                job = self._next(rest)
                self.since[number] = time.monotonic()
                try:
                    job()
                except BaseException:
                    log.exception("a job of the pool failed; its thread continues")
                finally:
                    del self.since[number]

    def _next(self, rest: _IdleThread) -> Job:
        with self.lock:
            if self.line:
                return self.line.popleft()
            self.idle.append(rest)
        return rest.until_woken()


class _IdleThread:
    """An idle thread, waiting for its next job."""

    def __init__(self) -> None:
        self.asleep = threading.Lock()
        self.asleep.acquire()
        self.job: Job | None = None

    def wake(self, job: Job) -> None:
        self.job = job
        self.asleep.release()

    def until_woken(self) -> Job:
        self.asleep.acquire()
        job, self.job = self.job, None
        assert job is not None
        return job
