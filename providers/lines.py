"""The way to one catalog's system or storage: who may ask it now, how many wait for it, and whether it answers.

What is about the system holds for all processes of the server together (metalake/board.py): how many calls are made to
it at once (SLOTS), whether it answers (its Health), and that one call in all may try one that was spared. What is about
threads holds for each process, since it has METALAKE_THREADS of its own: how many of them one system may hold (half), a
slow one (a quarter), and all systems together (three quarters).
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

from metalake import board
from metalake.errors import ProviderBusy

log = logging.getLogger(__name__)

# Of a system
SLOTS = 16  # calls to it at once
FAILURES, WINDOW = 5, 20  # in a row, or half of the window, open the breaker
COOL_DOWN = 15.0  # seconds until one call may try
LONGEST = 1000  # characters of what it said last

# Of the threads of a process
SLOW = 1.0  # seconds after which a call counts as slow
PATIENCE = 0.3  # seconds without an answer after which nobody waits for a place any more
BRIEFLY = 0.05  # seconds for which somebody waits whose thread is one of the last
AGAIN = 0.02  # seconds until who waits looks whether another process left a place

To = Literal["system", "storage", "trial"]
_kept = board.Notes("lines")


@dataclass(frozen=True)
class Health:
    """What is known of a system since `epoch`, when its catalog was told to go there; times are of time.monotonic."""

    epoch: str = ""
    recent: str = ""  # of the last calls, the newest at the end: "+" was answered, "-" was not
    failures: int = 0  # in a row
    answered_at: float = 0.0
    open_until: float = 0.0
    last_error: str = ""

    @property
    def is_open(self) -> bool:
        return self.open_until > 0

    def after(self, answered: bool, said: str) -> Health:
        """An answer that refuses is an answer."""
        now = time.monotonic()
        if answered:  # once it is back, its past failures are no reason to spare it again
            recent = "" if self.is_open else f"{self.recent}+"[-WINDOW:]
            return Health(self.epoch, recent, 0, now, 0.0, self.last_error)
        recent, failures = f"{self.recent}-"[-WINDOW:], self.failures + 1
        half = len(recent) == WINDOW and recent.count("-") * 2 >= WINDOW
        opens = self.is_open or failures >= FAILURES or half
        return Health(self.epoch, recent, failures, self.answered_at, now + COOL_DOWN if opens else 0.0, said[:LONGEST])


def health_of(to: To, of: int) -> Health:
    try:
        return Health(**_kept.get(f"{to} {of}", {}))
    except board.Unavailable:
        log.exception("the health of %s %s is not known", to, of)
        return Health()


def known() -> dict[tuple[str, int], Health]:
    """Of each system that answered or failed since its catalog was told to go there."""
    try:
        kept = _kept.everything()
    except board.Unavailable:
        return {}
    found = {(to, int(of)): Health(**each) for (to, of), each in ((name.split(), kept[name]) for name in kept)}
    return {of: health for of, health in found.items() if health.recent or health.answered_at}


class Line:
    """A process's way to one system: its threads, and how many wait in them."""

    lock = threading.Condition()  # one for all: who leaves one system makes room for others
    under_way = 0  # calls to any system
    held = 0  # of this process's threads, by these calls and by those that wait for a place

    def __init__(self, to: To, of: int, epoch: str = "") -> None:
        self.to, self.of, self.epoch = to, of, epoch
        self.pool = ThreadPoolExecutor(SLOTS, thread_name_prefix=f"{to} {of}")
        self.slots = board.Places(f"calls to {to} {of} {epoch}", SLOTS)
        self.trial = board.Places(f"trial of {to} {of} {epoch}", 1)
        self.trying: int | None = None  # the place of a trial that this process makes
        self.waiting: dict[int, float] = {}  # since when, by the place of a call

    @property
    def health(self) -> Health:
        return health_of(self.to, self.of)

    @property
    def is_open(self) -> bool:
        return self.health.is_open

    @property
    def places(self) -> int:
        """How many calls may be under way at once: all that a system holds of the threads when it falls silent."""
        return max(1, settings.METALAKE_THREADS // 2)

    @property
    def slow_slots(self) -> int:
        """How many of this process's threads a slow system may hold."""
        return max(1, settings.METALAKE_THREADS // 4)

    @staticmethod
    def all_places() -> int:
        """How many calls to all systems together: a quarter of the threads is for what needs none of them."""
        return settings.METALAKE_THREADS - settings.METALAKE_THREADS // 4

    def enter(self, label: str, until: float = inf) -> int:
        """A ticket for one call, waiting for a place while others keep getting answers. Raises ProviderBusy."""
        with self.lock:
            Line.held += 1
            try:
                ticket = self._wait_for_place(label, time.monotonic(), until)
            except ProviderBusy:
                Line.held -= 1
                raise
            self.waiting[ticket] = time.monotonic()
            Line.under_way += 1
            return ticket

    def pass_by(self, label: str) -> None:
        """For a call that takes no place, since no request waits for it. Raises ProviderBusy."""
        with self.lock:
            self._try_if_open(label, self._require_closed(label))

    def _wait_for_place(self, label: str, since: float, until: float) -> int:
        health = self._require_closed(label)
        while (ticket := self._take()) is None:
            if Line.held > self.all_places():
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
        """As far as this process's threads go."""
        return len(self.waiting) >= self.places or self._slow() >= self.slow_slots

    def _require_closed(self, label: str) -> Health:
        """What is known of it, where it may be asked, if only for a trial."""
        health = self.health
        if health.is_open and (time.monotonic() < health.open_until or self.trying is not None):
            raise _spared(label, health)
        return health

    def _try_if_open(self, label: str, health: Health) -> None:
        """One call in all processes tries one that was spared; where it dies with its process another may."""
        if health.is_open:
            self.trying = self.trial.take()
            if self.trying is None:
                raise _spared(label, health)

    def _slow(self) -> int:
        now = time.monotonic()
        return sum(now - since > SLOW for since in self.waiting.values())

    def _patience(self, since: float, health: Health) -> float:
        """For how many seconds somebody may wait for a place: every wait for one that is silent is a thread less."""
        if health.failures or self._slow():
            return 0.0
        return max(health.answered_at, min(self.waiting.values(), default=since)) + PATIENCE - time.monotonic()

    def leave(self, ticket: int) -> None:
        with self.lock:
            del self.waiting[ticket]
            self.slots.leave(ticket)
            Line.held -= 1
            Line.under_way -= 1
            self.lock.notify_all()

    def note(self, answered: bool, said: str = "") -> None:
        """What a call says of the system's health; nothing, where its catalog was told to go elsewhere meanwhile."""
        try:
            with board.turn():
                health = Health(**_kept.get(f"{self.to} {self.of}", {}))
                if health.epoch == self.epoch:
                    _kept[f"{self.to} {self.of}"] = asdict(health.after(answered, said))
        except board.Unavailable:
            log.exception("what %s %s answered was not noted", self.to, self.of)
        with self.lock:
            if self.trying is not None:
                self.trial.leave(self.trying)
            self.trying = None


def _spared(label: str, health: Health) -> ProviderBusy:
    said = f"{label} kept failing and is asked again soon. It said: {health.last_error}"
    return _busy(said, max(1, round(health.open_until - time.monotonic())))


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
        if line is None or line.epoch != epoch:  # the threads of the one before end with the calls they make
            line = _lines[to, of] = Line(to, of, epoch)
        return line


def forget(catalog_id: int) -> None:
    """After a catalog's properties changed: what was learnt of its former address says nothing of the new one."""
    for to in ("system", "storage"):
        _kept[f"{to} {catalog_id}"] = asdict(Health(epoch=uuid4().hex))


def forget_all() -> None:
    """What was learnt of any system, and of calls that are still made."""
    with _lines_lock:
        names = {*_kept, *(f"{to} {of}" for to, of in _lines)}
    for name in names:
        _kept[name] = asdict(Health(epoch=uuid4().hex))
