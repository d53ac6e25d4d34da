"""Circuit breaker and bulkhead of one catalog's system or storage: which calls it gets now, and how many wait.

Limits of a system are shared by all server processes (metalake/shared_memory.py): its concurrent calls (SLOTS), its
Health, and the single trial call of the half-open breaker. Limits of threads are per process, since each has its own
METALAKE_THREADS: one system may use half of them, a slow one a quarter, all systems three quarters.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import inf
from typing import Literal
from uuid import uuid4

from django.conf import settings

from metalake import shared_memory
from metalake.errors import ProviderBusy

log = logging.getLogger(__name__)

# Limits of a system
SLOTS = 16  # concurrent calls
FAILURES, WINDOW = 5, 20  # FAILURES in a row, or half of the last WINDOW calls, open the breaker
COOL_DOWN = 15.0  # seconds until the trial call
LONGEST = 1000  # characters stored of the last error

# Limits of the threads of a process
SLOW = 1.0  # seconds after which a call counts as slow
PATIENCE = 0.3  # seconds without an answer after which calls stop waiting for a slot
BRIEFLY = 0.05  # seconds that a call waits if its thread is one of the last free ones
AGAIN = 0.02  # seconds between polls for a slot freed by another process

To = Literal["system", "storage", "trial"]
_notes = shared_memory.SharedDict("lines")


@dataclass(frozen=True)
class Health:
    """The health of a system, from its recent calls; times are of time.monotonic().

    `epoch` changes with the catalog's properties, so that results from the former address do not count.
    """

    epoch: str = ""
    recent: str = ""  # the last calls, newest last: "+" for answered, "-" for failed
    failures: int = 0  # in a row
    failing_since: float = 0.0  # when the first of these happened
    answered_at: float = 0.0
    open_until: float = 0.0
    last_error: str = ""

    @property
    def is_open(self) -> bool:
        return self.open_until > 0

    def after(self, answered: bool, error: str) -> Health:
        """The health after one more call; an error response counts as answered."""
        now = time.monotonic()
        if answered:  # failures from before the breaker closed must not reopen it
            recent = "" if self.is_open else f"{self.recent}+"[-WINDOW:]
            return Health(self.epoch, recent, answered_at=now, last_error=self.last_error)
        recent, failures = f"{self.recent}-"[-WINDOW:], self.failures + 1
        half = len(recent) == WINDOW and recent.count("-") * 2 >= WINDOW
        opens = self.is_open or failures >= FAILURES or half
        open_until = now + COOL_DOWN if opens else 0.0
        since = self.failing_since or now
        return Health(self.epoch, recent, failures, since, self.answered_at, open_until, error[:LONGEST])


def health_of(to: To, of: int) -> Health:
    try:
        return Health(**_notes.get(f"{to} {of}", {}))
    except shared_memory.Unavailable:
        log.exception("the health of %s %s is not known", to, of)
        return Health()


def known() -> dict[tuple[str, int], Health]:
    """The health of each system called in its current epoch, by type and id."""
    try:
        notes = _notes.everything()
    except shared_memory.Unavailable:
        return {}
    healths = {(to, int(of)): Health(**each) for (to, of), each in ((name.split(), notes[name]) for name in notes)}
    return {of: health for of, health in healths.items() if health.recent or health.answered_at}


class Line:
    """One process's calls to one system: a thread pool and its queue."""

    lock = threading.Condition()  # shared by all lines: a finished call makes room for calls to other systems
    under_way = 0  # calls to any system
    threads_in_use = 0  # threads of this process in such a call or waiting for a slot

    def __init__(self, to: To, of: int, epoch: str = "") -> None:
        self.to, self.of, self.epoch = to, of, epoch
        self.pool = ThreadPoolExecutor(SLOTS, thread_name_prefix=f"{to} {of}")
        self.slots = shared_memory.Places(f"calls to {to} {of} {epoch}", SLOTS)
        self.trial = shared_memory.Places(f"trial of {to} {of} {epoch}", 1)
        self.trying: int | None = None  # the ticket of this process's trial call
        self.waiting: dict[int, float] = {}  # ticket of a call -> its start

    @property
    def health(self) -> Health:
        return health_of(self.to, self.of)

    @property
    def is_open(self) -> bool:
        return self.health.is_open

    @property
    def places(self) -> int:
        """This process's maximum of concurrent calls: the threads that an unresponsive system can block."""
        return max(1, settings.METALAKE_THREADS // 2)

    @property
    def slow_slots(self) -> int:
        """This process's maximum of threads for a slow system."""
        return max(1, settings.METALAKE_THREADS // 4)

    @staticmethod
    def all_places() -> int:
        """The maximum of calls to all systems together; a quarter of the threads remains for requests without any."""
        return settings.METALAKE_THREADS - settings.METALAKE_THREADS // 4

    def enter(self, label: str, until: float = inf) -> int:
        """A ticket for one call; waits for a slot while other calls get answers. Raises ProviderBusy."""
        with self.lock:
            Line.threads_in_use += 1
            try:
                ticket = self._wait_for_place(label, time.monotonic(), until)
            except ProviderBusy:
                Line.threads_in_use -= 1
                raise
            self.waiting[ticket] = time.monotonic()
            Line.under_way += 1
            return ticket

    def check_breaker(self, label: str) -> None:
        """Check the breaker for a call without a slot, as no request waits for it. Raises ProviderBusy."""
        with self.lock:
            self._try_if_open(label, self._require_closed(label))

    def _wait_for_place(self, label: str, since: float, until: float) -> int:
        health = self._require_closed(label)
        while (ticket := self._take()) is None:
            if Line.threads_in_use > self.all_places():
                until = min(until, since + BRIEFLY)
            patience = min(self._patience(since, health), until - time.monotonic())
            if patience <= 0:
                others = Line.under_way >= self.all_places() and not self._is_full()
                slow = "Other systems answer" if others else f"{label} answers"
                raise _busy(f"{slow} slowly and others wait for it already.", 1)
            self.lock.wait(patience if self._is_full() else min(patience, AGAIN))
            health = self._require_closed(label)
        try:
            self._try_if_open(label, health)
        except ProviderBusy:
            self.slots.leave(ticket)
            raise
        return ticket

    def _take(self) -> int | None:
        return None if self._is_full() or Line.under_way >= self.all_places() else self.slots.take()

    def _is_full(self) -> bool:
        """Whether this process's threads for the system are all in use."""
        return len(self.waiting) >= self.places or self._slow() >= self.slow_slots

    def _require_closed(self, label: str) -> Health:
        """The system's health if the breaker is closed or half-open. Raises ProviderBusy if it is open."""
        health = self.health
        if health.is_open and (time.monotonic() < health.open_until or self.trying is not None):
            raise _spared(label, health)
        return health

    def _try_if_open(self, label: str, health: Health) -> None:
        """Make this the one trial call of all processes if the breaker is half-open. Raises ProviderBusy for others."""
        if health.is_open:
            self.trying = self.trial.take()
            if self.trying is None:
                raise _spared(label, health)

    def _slow(self) -> int:
        now = time.monotonic()
        return sum(now - since > SLOW for since in self.waiting.values())

    def _patience(self, since: float, health: Health) -> float:
        """Seconds that a call may wait for a slot; 0 if the system is slow or failing, as waiting blocks a thread."""
        if health.failures or self._slow():
            return 0.0
        return max(health.answered_at, min(self.waiting.values(), default=since)) + PATIENCE - time.monotonic()

    def leave(self, ticket: int) -> None:
        with self.lock:
            del self.waiting[ticket]
            self.slots.leave(ticket)
            Line.threads_in_use -= 1
            Line.under_way -= 1
            self.lock.notify_all()

    def note(self, answered: bool, error: str = "") -> None:
        """Record whether a call was answered, unless the catalog's properties have changed since its start."""
        try:
            with shared_memory.turn():
                health = Health(**_notes.get(f"{self.to} {self.of}", {}))
                if health.epoch == self.epoch:
                    _notes[f"{self.to} {self.of}"] = asdict(health.after(answered, error))
        except shared_memory.Unavailable:
            log.exception("what %s %s answered was not noted", self.to, self.of)
        with self.lock:
            if self.trying is not None:
                self.trial.leave(self.trying)
            self.trying = None


def _spared(label: str, health: Health) -> ProviderBusy:
    message = f"{label} kept failing and is asked again soon. It said: {health.last_error}"
    return _busy(message, max(1, round(health.open_until - time.monotonic())))


def _busy(message: str, retry_after: int) -> ProviderBusy:
    busy = ProviderBusy(message, kind="catalog")
    busy.retry_after = retry_after
    return busy


_lines: dict[tuple[To, int], Line] = {}
_lines_lock = threading.Lock()


def line_of(catalog_id: int) -> Line:
    return _line("system", catalog_id)


def storage_line_of(catalog_id: int) -> Line:
    return _line("storage", catalog_id)


def trial_line_of(metalake_id: int) -> Line:
    return _line("trial", metalake_id)


def _line(to: To, of: int) -> Line:
    epoch = health_of(to, of).epoch
    with _lines_lock:
        line = _lines.get((to, of))
        if line is None or line.epoch != epoch:  # the threads of the former line end with their calls
            line = _lines[to, of] = Line(to, of, epoch)
        return line


def forget(catalog_id: int) -> None:
    """Reset the health of a catalog's system and storage after its properties, and so its addresses, changed."""
    for to in ("system", "storage"):
        _notes[f"{to} {catalog_id}"] = asdict(Health(epoch=uuid4().hex))


def forget_all() -> None:
    """Reset the health of all systems; calls in progress do not count either."""
    with _lines_lock:
        names = {*_notes, *(f"{to} {of}" for to, of in _lines)}
    _notes.set_all(dict.fromkeys(names, asdict(Health(epoch=uuid4().hex))))
