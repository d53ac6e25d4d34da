"""Listeners of every operation of both wires: called before it and after it, whether it succeeds or fails.

What changed is better learnt from events (metalake.events), which are durable. Listeners also learn of reads, of what
was refused and of what is about to happen, and nothing is written down for them (docs/operations.md, "Listeners").
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
    REFUSED = "refused"  # the answer is 4xx
    FAILED = "failed"  # the answer is 5xx
    AGAIN = "again"  # a read that has to wait: nothing was answered, and it begins again in another thread or process


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What listeners learn of one operation; never a body, a query, a secret or SQL.

    `operation` is a row of the operation table (docs/authorization.md), or what Declaration.operation has in its place.
    `names` are those of the path, by kind, but for the metalake's; objects that only the body names are not among them.
    `actor` and `names` are empty where a request was refused before it was known who calls. The last four are set
    afterwards.
    """

    operation: str
    wire: str  # native or iceberg
    actor: str
    metalake: str
    names: Mapping[str, str]
    request_id: str
    at: datetime  # when it began
    outcome: Outcome | None = None  # None before the operation
    status: int | None = None  # of the answer; None if there is none
    seconds: float = 0.0
    error: str = ""  # the class of the error


Listener = Callable[[Notice], object]
"""Called in the thread that answers, by several threads at once: it must be quick, and leave our database alone."""

listeners: tuple[Listener, ...] = ()
"""Those of this process; empty unless an operator or an app wants some, which is all that most requests look at."""


def listen(listener: Listener) -> None:
    """Register a listener, once; to be called at start, from AppConfig.ready."""
    global listeners
    if listener not in listeners:
        listeners = (*listeners, listener)


def listen_to_names(names: Iterable[str]) -> None:
    """Register the listeners that METALAKE_LISTENERS names. Raises ImproperlyConfigured."""
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
    """Tells the listeners when one operation begins and how it ends."""

    wire: str
    operation: str
    error: BaseException | None = None  # to be set by who answers with an error
    began: Notice | None = None
    started: float = field(default_factory=time.perf_counter)

    def begins(self, actor: str = "", names: Mapping[str, str] | None = None) -> None:
        """To be called as soon as the caller is known."""
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
        """Each end has its beginning, also for a caller who was refused before it was known who calls."""
        if self.began is None:
            self.begins()
            assert self.began is not None
        seconds = time.perf_counter() - self.started
        error = type(self.error).__name__ if self.error else ""
        _tell(replace(self.began, outcome=outcome, status=status, seconds=seconds, error=error))

    def answers(self, status: int) -> None:
        """To be called with the status of the answer."""
        self.ends(Outcome.OK if status < 400 else Outcome.REFUSED if status < 500 else Outcome.FAILED, status)


@contextmanager
def announcing(wire: str, operation: str) -> Iterator[Announcer]:
    """The announcer of an operation; what is raised here ends it, too."""
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
