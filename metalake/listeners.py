"""Hooks called before and after every operation of both APIs, whether it succeeds or fails.

To follow changes, use events (metalake.events), which are durable. Listeners also get reads, rejected requests and
operations about to start, but nothing is stored for them (docs/operations.md, "Listeners").
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from metalake.blocking import BeginAgain
from metalake.request_context import request_id

log = logging.getLogger(__name__)


class Outcome(StrEnum):
    OK = "ok"
    REFUSED = "refused"  # the response is 4xx
    FAILED = "failed"  # the response is 5xx
    AGAIN = "again"  # a read that would block: no response yet, it is retried in another thread or process


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A listener's argument for one operation; never a body, a query, a secret or SQL.

    `operation` is a row of the operation table (docs/authorization.md), or a special value of Declaration.operation.
    `names` are those in the path, by kind, without the metalake; objects named only in the body are not included.
    `actor` and `names` are empty if the request was rejected before authentication. The last four are set afterwards.
    """

    operation: str
    wire: str  # native or iceberg
    actor: str
    metalake: str
    names: Mapping[str, str]
    request_id: str
    at: datetime  # when it started
    outcome: Outcome | None = None  # None before the operation
    status: int | None = None  # of the response; None if there is none
    seconds: float = 0.0
    error: str = ""  # the class of the error


Listener = Callable[[Notice], object]
"""Called in the request's thread, concurrently: it must be fast, thread-safe and must not use our database."""

listeners: tuple[Listener, ...] = ()
"""The listeners of this process; usually none, so that the check is cheap."""


def listen(listener: Listener) -> None:
    """Register a listener, once; call it from AppConfig.ready."""
    global listeners
    if listener not in listeners:
        listeners = (*listeners, listener)


def listen_to_names(names: Iterable[str]) -> None:
    """Register the listeners in METALAKE_LISTENERS. Raises ImproperlyConfigured."""
    for name in names:
        try:
            listener = import_string(name)
        except ImportError as error:
            raise ImproperlyConfigured(f"METALAKE_LISTENERS: {name} cannot be imported: {error}") from error
        if not callable(listener):
            raise ImproperlyConfigured(f"METALAKE_LISTENERS: {name} cannot be called.")
        listen(listener)


@dataclass
class Announcer:
    """Notifies the listeners of the begin and end of one operation."""

    wire: str
    operation: str
    error: BaseException | None = None  # set by the code that renders an error
    began: Notice | None = None
    started: float = field(default_factory=time.perf_counter)

    def begins(self, actor: str = "", names: Mapping[str, str] | None = None) -> None:
        """Call this as soon as the caller is known."""
        others = dict(names or {})
        self.began = Notice(
            operation=self.operation,
            wire=self.wire,
            actor=actor,
            metalake=others.pop("metalake", ""),
            names=MappingProxyType(others),
            request_id=request_id.get(),
            at=datetime.now(UTC),
        )
        _tell(self.began)

    def ends(self, outcome: Outcome, status: int | None) -> None:
        """Every end has a begin, even if the request was rejected before authentication."""
        if self.began is None:
            self.begins()
            assert self.began is not None
        seconds = time.perf_counter() - self.started
        error = type(self.error).__name__ if self.error else ""
        _tell(replace(self.began, outcome=outcome, status=status, seconds=seconds, error=error))

    def answers(self, status: int) -> None:
        """Call this with the status of the response."""
        self.ends(Outcome.OK if status < 400 else Outcome.REFUSED if status < 500 else Outcome.FAILED, status)


@contextmanager
def announcing(wire: str, operation: str) -> Iterator[Announcer]:
    """The announcer of an operation; an exception raised inside also ends it."""
    announcer = Announcer(wire, operation)
    try:
        yield announcer
    except BeginAgain:
        if announcer.began:
            announcer.ends(Outcome.AGAIN, None)
        raise
    except Exception as error:
        announcer.error = error
        announcer.answers(500)
        raise


def _tell(notice: Notice) -> None:
    for listener in listeners:
        try:
            listener(notice)
        except (Exception, BeginAgain):
            log.exception("the listener %s failed", getattr(listener, "__qualname__", listener))
