"""Calls to an outside system or a catalog's storage, with a deadline, a circuit breaker and a limited queue.

Reads of a system are retried; a storage's client retries by itself. docs/decisions/reaching-out.md explains the
figures; providers/circuit_breaker.py admits the calls.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from prometheus_client import Counter, Histogram

from metalake.blocking import may_block
from metalake.errors import MetalakeError, OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable
from providers import deadline as time_limit
from providers import nul_characters
from providers.circuit_breaker import Line, line_of, storage_line_of, trial_line_of
from providers.network.response_budget import places_returned
from providers.verbs import READS

T = TypeVar("T")

log = logging.getLogger(__name__)

CONNECT, READ, TOTAL = 3.0, 10.0, 30.0  # seconds
RETRIES = 2
STORAGE = "The storage"
DESCRIBING = ("definition", "plan", "changes", "expected")  # arguments that describe the object to create
READ_FILE = "read_file"  # the only verb of a storage that reads

CALLS = Counter("metalake_remote_calls", "Calls to outside systems", ["catalog", "provider", "verb", "outcome"])
SECONDS = Histogram("metalake_remote_seconds", "Seconds that a call took", ["catalog", "provider", "verb"])


class Called(Protocol):
    """The part of a provider that `run` needs."""

    @property
    def catalog_id(self) -> int: ...

    @property
    def label(self) -> str: ...

    def call(self, verb: str, arguments: dict[str, Any], /) -> Any: ...


class Tried(Protocol):
    """The part of a provider that `trial` needs."""

    @property
    def label(self) -> str: ...

    def test_connection(self) -> None: ...


@dataclass(frozen=True)
class ByWorker:
    """A provider whose calls run in a Celery worker; waiting callers count as for any other."""

    catalog_id: int
    label: str
    call: Callable[[str, dict[str, Any]], Any]


def run(provider: Called, verb: str, arguments: dict[str, Any], *, total: float = TOTAL) -> Any:
    """The verb's result as JSON, within `total` seconds; reads are tried up to three times, but not via a ByWorker.

    Raises the verb's errors, ProviderBusy, and on timeout ProviderTimeout for a read and OutcomeUnknown for a write.
    """
    may_block()
    deadline = time.monotonic() + total
    attempts = 1 + RETRIES if verb in READS and not isinstance(provider, ByWorker) else 1
    for attempt in range(1, attempts + 1):
        line = line_of(provider.catalog_id)
        try:
            ticket = line.enter(provider.label, deadline)
        except ProviderBusy:  # the system was not called; the caller should retry later
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
    """Call a catalog's storage by `act`, within `total` seconds; READ_FILE is the only verb that reads.

    Raises the errors of `act`, ProviderBusy, and on timeout ProviderTimeout for a read and ProviderUnavailable for a
    write, whose file nothing points to. Inside a call with a deadline, that deadline applies. `waits=False` is for
    calls that no request waits for: they take no slot, but respect the circuit breaker.
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
            line.check_breaker(STORAGE)
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
            message = f"{STORAGE} did not answer in time."
            silence = ProviderTimeout if verb == READ_FILE else ProviderUnavailable
            raise silence(message, kind="storage") from None


def trial(provider: Tried, act: Callable[[], Any] | None = None, seconds: float = 15.0, *, metalake_id: int = 0) -> Any:
    """Test the connection of a catalog that may not be registered yet, or run `act` instead; returns the result.

    Raises the errors of the test or of `act`, ProviderTimeout after `seconds`, and ProviderBusy while other trials of
    the metalake use up its share of the threads.
    """
    may_block()
    line = trial_line_of(metalake_id)
    ticket = line.enter("What is tried in this metalake", time.monotonic() + seconds)

    def work() -> Any:
        try:
            with time_limit.until(time.monotonic() + seconds), places_returned():
                return (act or provider.test_connection)()
        finally:
            line.leave(ticket)

    try:
        return line.pool.submit(work).result(seconds)
    except TookTooLong:
        raise ProviderTimeout(f"{provider.label} did not answer in {seconds:.0f} seconds.", kind="catalog") from None


def _pause(failure: ProviderUnavailable, attempt: int) -> float | None:
    """Seconds until the next attempt: exponential backoff with full jitter, longer if the system throttles.

    None if the system's Retry-After is longer than that; retrying is then up to the caller.
    """
    longest = (2.0 if isinstance(failure, ProviderBusy) else 0.4) * 2 ** (attempt - 1)
    retry_after = vars(failure).get("retry_after", 0)
    return None if retry_after > longest else random.uniform(retry_after, longest)  # noqa: S311


def _once(
    line: Line,
    ticket: int,
    provider: Called,
    verb: str,
    arguments: dict[str, Any],
    deadline: float,
) -> Any:
    def work() -> Any:
        try:
            with time_limit.until(deadline), places_returned():
                return provider.call(verb, _as_sent(arguments))
        except MetalakeError as failure:
            failure.message = failure.message.replace(nul_characters.NUL, "")  # the message is stored with its intent
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
    """A response that could not be parsed; it counts as answered by the system."""


@contextmanager
def _noted(line: Line, label: str, verb: str) -> Iterator[None]:
    """Record the call in the metrics, and on its line whether the system answered."""
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
        line.note(answered=throttled or not getattr(failure, "retryable", True), error=failure.message)
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
        CALLS.labels(line.of, label, verb, outcome).inc()
        SECONDS.labels(line.of, label, verb).observe(time.monotonic() - started)


def _wait(future: Future[Any], seconds: float, label: str, verb: str) -> Any:
    try:
        return future.result(max(seconds, 0))
    except TookTooLong:
        message = f"{label} did not answer in time."
        if verb in READS:
            raise ProviderTimeout(message, kind="catalog") from None
        raise OutcomeUnknown(message, kind="catalog") from None


def _as_json(answer: Any) -> Any:
    return nul_characters.as_stored(answer.as_json()) if hasattr(answer, "as_json") else answer


def _as_sent(arguments: dict[str, Any]) -> dict[str, Any]:
    described = {
        name: nul_characters.as_sent(arguments[name]) for name in DESCRIBING if arguments.get(name) is not None
    }
    return arguments | described
