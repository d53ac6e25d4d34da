"""Calling an outside system or a catalog's storage: one deadline, few waiters for a slow one, none for a dead one.

A system's reads are tried again; a storage's client does that itself.

Figures: security plan 3.8. The state is the process's own; a dead system is found out by each.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from prometheus_client import Counter, Gauge, Histogram

from catalogs.providers import deadline as time_limit
from catalogs.providers import nul
from catalogs.providers.base import Provider
from catalogs.providers.verbs import READS
from metalake.blocking import may_block
from metalake.errors import MetalakeError, OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable

if TYPE_CHECKING:
    from catalogs.providers.external import ExternalProvider

T = TypeVar("T")

log = logging.getLogger(__name__)

CONNECT, READ, TOTAL = 3.0, 10.0, 30.0  # seconds
RETRIES = 2
SLOTS = 16  # calls to one catalog at once
SLOW = 1.0  # seconds after which a call counts as slow
PATIENCE = 0.3  # seconds without an answer after which nobody waits for a place any more
BRIEFLY = 0.05  # seconds for which somebody waits whose thread is one of the last
FAILURES, WINDOW = 5, 20  # in a row, or half of the window, open the breaker
COOL_DOWN = 15.0  # seconds until one call may try
STORAGE = "The storage"
READ_FILE = "read_file"  # of a storage; its other verbs write

CALLS = Counter("metalake_remote_calls", "Calls to outside systems", ["catalog", "provider", "verb", "outcome"])
SECONDS = Histogram("metalake_remote_seconds", "Seconds that a call took", ["catalog", "provider", "verb"])
OPEN = Gauge("metalake_remote_breaker_open", "Whether calls to a catalog are refused", ["catalog"])
STORAGE_OPEN = Gauge("metalake_storage_breaker_open", "Whether calls to a catalog's storage are refused", ["catalog"])


class Line:
    """The way to one catalog's system: its threads, how many wait in them, and whether it answers."""

    lock = threading.Condition()  # one for all: who leaves one system makes room for others
    under_way = 0  # calls to any system
    held = 0  # of this process's threads, by these calls and by those that wait for a place

    def __init__(self, catalog_id: int, opened: Gauge = OPEN) -> None:
        self.catalog_id, self.opened = catalog_id, opened
        self.pool = ThreadPoolExecutor(SLOTS, thread_name_prefix=f"remote {catalog_id}")
        self.waiting: dict[int, float] = {}
        self.recent: deque[bool] = deque(maxlen=WINDOW)
        self.failures = 0
        self.answered_at = 0.0
        self.open_until = 0.0
        self.trying = False
        self.last_error = ""

    @property
    def is_open(self) -> bool:
        return self.open_until > 0

    @property
    def places(self) -> int:
        """How many calls may be under way at once: all that a system holds of the threads when it falls silent."""
        return min(SLOTS, max(1, settings.METALAKE_THREADS // 2))

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
                self._wait_for_place(label, time.monotonic(), until)
            except ProviderBusy:
                Line.held -= 1
                raise
            self.trying = self.is_open
            ticket = next(number for number in range(SLOTS) if number not in self.waiting)
            self.waiting[ticket] = time.monotonic()
            Line.under_way += 1
            return ticket

    def pass_by(self, label: str) -> None:
        """For a call that takes no place, since no request waits for it. Raises ProviderBusy."""
        with self.lock:
            self._require_closed(label)
            self.trying = self.is_open

    def _wait_for_place(self, label: str, since: float, until: float) -> None:
        self._require_closed(label)
        while (others := Line.under_way >= self.all_places()) or self._is_full():
            if Line.held > self.all_places():
                until = min(until, since + BRIEFLY)
            patience = min(self._patience(since), until - time.monotonic())
            if patience <= 0:
                slow = "Other systems answer" if others and not self._is_full() else f"{label} answers"
                raise _busy(f"{slow} slowly and others wait for it already.", 1)
            self.lock.wait(patience)
            self._require_closed(label)

    def _is_full(self) -> bool:
        return len(self.waiting) >= self.places or self._slow() >= self.slow_slots

    def _require_closed(self, label: str) -> None:
        now = time.monotonic()
        if self.is_open and (now < self.open_until or self.trying):
            said = f"{label} kept failing and is asked again soon. It said: {self.last_error}"
            raise _busy(said, max(1, round(self.open_until - now)))

    def _slow(self) -> int:
        now = time.monotonic()
        return sum(now - since > SLOW for since in self.waiting.values())

    def _patience(self, since: float) -> float:
        """For how many seconds somebody may wait for a place: every wait for one that is silent is a thread less."""
        if self.failures or self._slow():
            return 0.0
        return max(self.answered_at, min(self.waiting.values(), default=since)) + PATIENCE - time.monotonic()

    def leave(self, ticket: int) -> None:
        with self.lock:
            del self.waiting[ticket]
            Line.held -= 1
            Line.under_way -= 1
            self.lock.notify_all()

    def note(self, answered: bool, said: str = "") -> None:
        """What a call says of the system's health: an answer that refuses is an answer."""
        with self.lock:
            self.trying = False
            self.recent.append(answered)
            if answered:
                self.answered_at = time.monotonic()
                if self.open_until:
                    self.recent.clear()  # it is back: its past failures are no reason to spare it again
                self.failures, self.open_until = 0, 0.0
            else:
                self.failures += 1
                self.last_error = said
                half = len(self.recent) == WINDOW and self.recent.count(False) * 2 >= WINDOW
                if self.open_until or self.failures >= FAILURES or half:
                    self.open_until = time.monotonic() + COOL_DOWN
            self.opened.labels(self.catalog_id).set(1 if self.open_until else 0)


def _busy(message: str, retry_after: int) -> ProviderBusy:
    busy = ProviderBusy(message, kind="catalog")
    busy.retry_after = retry_after
    return busy


_lines: dict[tuple[str, int], Line] = {}
_lines_lock = threading.Lock()


def line_of(catalog_id: int) -> Line:
    return _line("system", catalog_id)


def storage_line_of(catalog_id: int) -> Line:
    return _line("storage", catalog_id, STORAGE_OPEN)


def _line(to: str, of: int, opened: Gauge = OPEN) -> Line:
    with _lines_lock:
        return _lines.get((to, of)) or _lines.setdefault((to, of), Line(of, opened))


def forget(catalog_id: int) -> None:
    """After a catalog's properties changed: what was learnt of its former address says nothing of the new one."""
    with _lines_lock:
        for to in ("system", "storage"):
            _lines.pop((to, catalog_id), None)  # its threads end with the calls they make
    for opened in (OPEN, STORAGE_OPEN):
        opened.remove(catalog_id)


@dataclass(frozen=True)
class ByWorker:
    """Stands for a provider whose calls somebody else makes: who waits for them is counted all the same."""

    catalog_id: int
    label: str
    send: Callable[[str, dict[str, Any]], Any]

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return lambda **arguments: self.send(verb, arguments)


def run(provider: ExternalProvider | ByWorker, verb: str, arguments: dict[str, Any], *, total: float = TOTAL) -> Any:
    """The verb's answer as JSON, within `total` seconds; reads are tried up to three times, by whoever makes them.

    Raises what the verb raises, ProviderBusy, and where time is up ProviderTimeout for a read and OutcomeUnknown for a
    write.
    """
    may_block()
    deadline = time.monotonic() + total
    attempts = 1 + RETRIES if verb in READS and not isinstance(provider, ByWorker) else 1
    for attempt in range(1, attempts + 1):
        line = line_of(provider.catalog_id)
        try:
            ticket = line.enter(provider.label, deadline)
        except ProviderBusy:  # nobody is asked, so nothing is gained by waiting here
            CALLS.labels(provider.catalog_id, provider.label, verb, "spared").inc()
            raise
        try:
            return _once(line, ticket, provider, verb, arguments, deadline)
        except ProviderUnavailable as failure:
            pause = _pause(failure, attempt)
            if attempt == attempts or not failure.retryable or pause is None or time.monotonic() + pause >= deadline:
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def reach(catalog_id: int, verb: str, act: Callable[[], T], *, waits: bool = True, total: float = TOTAL) -> T:
    """What `act` asks of a catalog's storage, within `total` seconds; READ_FILE alone is a read.

    Raises what `act` raises, ProviderBusy, and where time is up ProviderTimeout for a read and ProviderUnavailable for
    a write, which nothing points to then. Within a call that has a deadline it is a part of that one. With `waits`
    false no request waits for it: it takes no place, and is spared all the same.
    """
    if time_limit.is_set():
        return act()
    may_block()
    line = storage_line_of(catalog_id)
    deadline = time.monotonic() + total
    ticket = None
    try:
        if waits:
            ticket = line.enter(STORAGE, deadline)
        else:
            line.pass_by(STORAGE)
    except ProviderBusy:
        CALLS.labels(catalog_id, "storage", verb, "spared").inc()
        raise

    def work() -> T:
        try:
            with time_limit.until(deadline):
                return act()
        finally:
            if ticket is not None:
                line.leave(ticket)

    with _noted(line, "storage", verb):
        try:
            return line.pool.submit(work).result(max(deadline - time.monotonic(), 0))
        except TookTooLong:
            said = f"{STORAGE} did not answer in time."
            silence = ProviderTimeout if verb == READ_FILE else ProviderUnavailable
            raise silence(said, kind="storage") from None


def trial(
    provider: Provider, act: Callable[[], Any] | None = None, seconds: float = 15.0, *, metalake_id: int = 0
) -> Any:
    """Try the connection of a catalog that may not be registered yet, or what `act` does; returns what that does.

    Raises what is wrong with it, and ProviderBusy while what others of its metalake try holds its share of the threads.
    """
    may_block()
    line = _line("trial", metalake_id)
    ticket = line.enter("What is tried in this metalake", time.monotonic() + seconds)

    def work() -> Any:
        try:
            with time_limit.until(time.monotonic() + seconds):
                return (act or provider.test_connection)()
        finally:
            line.leave(ticket)

    try:
        return line.pool.submit(work).result(seconds)
    except TookTooLong:
        raise ProviderTimeout(f"{provider.label} did not answer in {seconds:.0f} seconds.", kind="catalog") from None


def _pause(failure: ProviderUnavailable, attempt: int) -> float | None:
    """Full jitter, so that callers who failed together do not come back together; longer where it throttles.

    None where it says itself that it wants more than that: then the caller is told to come back.
    """
    longest = (2.0 if isinstance(failure, ProviderBusy) else 0.4) * 2 ** (attempt - 1)
    told = vars(failure).get("retry_after", 0)
    return None if told > longest else random.uniform(told, longest)  # noqa: S311


def _once(
    line: Line,
    ticket: int,
    provider: ExternalProvider | ByWorker,
    verb: str,
    arguments: dict[str, Any],
    deadline: float,
) -> Any:
    def work() -> Any:
        try:
            with time_limit.until(deadline):
                return getattr(provider, verb)(**_as_sent(arguments))
        except MetalakeError as failure:
            failure.message = failure.message.replace(nul.NUL, "")  # it is kept with the write that it ended
            raise
        finally:
            line.leave(ticket)

    with _noted(line, provider.label, verb):
        try:
            return _as_json(_wait(line.pool.submit(work), deadline - time.monotonic(), provider.label, verb))
        except (MetalakeError, TookTooLong):
            raise
        except Exception as bug:
            if verb in READS:
                raise
            log.exception("%s %s failed", provider.label, verb)
            raise _Misunderstood(f"The answer of {provider.label} was not understood.", kind="catalog") from bug


class _Misunderstood(OutcomeUnknown):
    """There was an answer: no reason to spare the system."""


@contextmanager
def _noted(line: Line, label: str, verb: str) -> Iterator[None]:
    """What becomes of a call is counted, and its line learns whether there was an answer."""
    started, outcome = time.monotonic(), "answered"
    try:
        yield
        line.note(answered=True)
    except _Misunderstood:
        outcome = "bug"
        line.note(answered=True)
        raise
    except (ProviderUnavailable, OutcomeUnknown) as failure:
        outcome = type(failure).__name__
        throttled = isinstance(failure, ProviderBusy)
        line.note(answered=throttled or not getattr(failure, "retryable", True), said=failure.message)
        raise
    except MetalakeError as refusal:
        outcome = type(refusal).__name__
        line.note(answered=True)
        raise
    except Exception:
        outcome = "bug"
        line.note(answered=True)
        raise
    finally:
        CALLS.labels(line.catalog_id, label, verb, outcome).inc()
        SECONDS.labels(line.catalog_id, label, verb).observe(time.monotonic() - started)


def _wait(future: Future[Any], seconds: float, label: str, verb: str) -> Any:
    try:
        return future.result(max(seconds, 0))
    except TookTooLong:
        message = f"{label} did not answer in time."
        if verb in READS:
            raise ProviderTimeout(message, kind="catalog") from None
        raise OutcomeUnknown(message, kind="catalog") from None


def _as_json(answer: Any) -> Any:
    return nul.as_kept(answer.as_json()) if hasattr(answer, "as_json") else answer


def _as_sent(arguments: dict[str, Any]) -> dict[str, Any]:
    definition = arguments.get("definition")
    return arguments if definition is None else arguments | {"definition": nul.as_sent(definition)}
