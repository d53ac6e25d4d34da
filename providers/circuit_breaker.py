"""The circuit breaker of one catalog's system or storage: who may call it now, how many wait, and whether it answers.

Limits of a system hold for all processes of the server together (metalake/shared_memory.py): how many calls it gets at
once (SLOTS), its Health, and the single trial call after it failed. Limits of threads hold for each process, since each
has METALAKE_THREADS of its own: one system may use half of them, a slow one a quarter, all systems three quarters.
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
SLOTS = 16  # calls to it at once
FAILURES, WINDOW = 5, 20  # failures in a row, or half of the last WINDOW calls, open the breaker
COOL_DOWN = 15.0  # seconds until one trial call is made
LONGEST = 1000  # characters of its last error

# Limits of the threads of a process
SLOW = 1.0  # seconds after which a call counts as slow
PATIENCE = 0.3  # seconds without an answer after which no call waits for a place any more
BRIEFLY = 0.05  # seconds that a call waits if its thread is one of the last free ones
AGAIN = 0.02  # seconds between checks whether another process left a place

To = Literal["system", "storage", "trial"]
_notes = shared_memory.SharedDict("lines")


@dataclass(frozen=True)
class Health:
    """What the calls to a system showed; times are of time.monotonic().

    `epoch` changes when the catalog's properties change, so that results of the former address do not count.
    """

    epoch: str = ""
    recent: str = ""  # the last calls, the newest at the end: "+" was answered, "-" was not
    failures: int = 0  # in a row
    failing_since: float = 0.0  # the first of these
    answered_at: float = 0.0
    open_until: float = 0.0
    last_error: str = ""

    @property
    def is_open(self) -> bool:
        return self.open_until > 0

    def after(self, answered: bool, error: str) -> Health:
        """The health after one more call; a refusal counts as an answer."""
        now = time.monotonic()
        if answered:  # failures before the breaker closed must not open it again
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
    """The health of each system that was called in its present epoch, by what it is and the id that it belongs to."""
    try:
        notes = _notes.everything()
    except shared_memory.Unavailable:
        return {}
    healths = {(to, int(of)): Health(**each) for (to, of), each in ((name.split(), notes[name]) for name in notes)}
    return {of: health for of, health in healths.items() if health.recent or health.answered_at}


class Line:
    """One process's line to one system: the threads that call it, and how many calls wait."""

    lock = threading.Condition()  # shared by all lines, since a call that ends makes room for calls to other systems
    under_way = 0  # calls to any system
    threads_in_use = 0  # threads of this process with such a call or with one that waits for a place

    def __init__(self, to: To, of: int, epoch: str = "") -> None:
        self.to, self.of, self.epoch = to, of, epoch
        self.pool = ThreadPoolExecutor(SLOTS, thread_name_prefix=f"{to} {of}")
        self.slots = shared_memory.Places(f"calls to {to} {of} {epoch}", SLOTS)
        self.trial = shared_memory.Places(f"trial of {to} {of} {epoch}", 1)
        self.trying: int | None = None  # the ticket of a trial call that this process makes
        self.waiting: dict[int, float] = {}  # ticket of a call -> when it began

    @property
    def health(self) -> Health:
        return health_of(self.to, self.of)

    @property
    def is_open(self) -> bool:
        return self.health.is_open

    @property
    def places(self) -> int:
        """How many calls of this process may be under way at once: the threads that a silent system can block."""
        return max(1, settings.METALAKE_THREADS // 2)

    @property
    def slow_slots(self) -> int:
        """How many of this process's threads a slow system may use."""
        return max(1, settings.METALAKE_THREADS // 4)

    @staticmethod
    def all_places() -> int:
        """How many calls to all systems together; a quarter of the threads is left for requests that need none."""
        return settings.METALAKE_THREADS - settings.METALAKE_THREADS // 4

    def enter(self, label: str, until: float = inf) -> int:
        """A ticket for one call; waits for a place as long as other calls get answers. Raises ProviderBusy."""
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
        """Check the breaker for a call that needs no place, since no request waits for it. Raises ProviderBusy."""
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
        """The system's health, if a call or at least a trial is allowed now. Raises ProviderBusy."""
        health = self.health
        if health.is_open and (time.monotonic() < health.open_until or self.trying is not None):
            raise _spared(label, health)
        return health

    def _try_if_open(self, label: str, health: Health) -> None:
        """Make this call the trial if the breaker is open: one in all processes. Raises ProviderBusy for the others."""
        if health.is_open:
            self.trying = self.trial.take()
            if self.trying is None:
                raise _spared(label, health)

    def _slow(self) -> int:
        now = time.monotonic()
        return sum(now - since > SLOW for since in self.waiting.values())

    def _patience(self, since: float, health: Health) -> float:
        """How many seconds a call may wait for a place; none if the system is slow, since a wait blocks a thread."""
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
        """Record whether a call was answered, unless the catalog's properties changed since it began."""
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
    """Forget the health of a catalog's system and storage, because its properties and so its addresses changed."""
    for to in ("system", "storage"):
        _notes[f"{to} {catalog_id}"] = asdict(Health(epoch=uuid4().hex))


def forget_all() -> None:
    """Forget the health of all systems; calls that are under way do not count either."""
    with _lines_lock:
        names = {*_notes, *(f"{to} {of}" for to, of in _lines)}
    _notes.set_all(dict.fromkeys(names, asdict(Health(epoch=uuid4().hex))))
