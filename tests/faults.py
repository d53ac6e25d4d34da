"""What goes wrong with the requests to a system under test, each by its number.

    lost           applied, the answer is lost          dropped       not applied, no answer
    late           no answer, applied at `heal`         busy          refused for now, not applied
    slow           answered not before `heal`, applied  denied        refused for good, not applied
    slow, dropped  the same, applied only then          down          an error of the system's own, not applied
    killed         the process ends as it asks          killed after  the process ends before it is answered

Systems may know more of their own. After the process has ended nothing it asks arrives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60  # seconds for what waits for `heal`, which every test calls


class Faults:
    """Counts requests while it listens, and says what happens to each."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._healed = threading.Event()
        self._slow = threading.local()  # the healing that a thread's request waits for
        self._late: list[Callable[[], object]] = []
        self._waiting = 0
        self._away: tuple[int, str] | None = None
        self.heal()

    def listen(self) -> None:
        """Count from nought."""
        self.requests: list[str] = []
        self._listens = True

    def stop_listening(self) -> list[str]:
        """The requests that came meanwhile; those that come now are nobody's."""
        self._listens = False
        return self.requests

    def fail(self, number: int, fault: str) -> None:
        self._of[number] = fault

    def fail_from(self, number: int, fault: str = "down") -> None:
        """Every request from this number on."""
        self._away = (number, fault)

    @property
    def is_used_up(self) -> bool:
        """Whether all faults came to pass."""
        return not self._of

    def heal(self) -> None:
        """No more faults; what was late has arrived when this returns."""
        self._of: dict[int, str] = {}
        self._away = None
        self.process_ended = False
        self.requests, self._listens = [], False
        healed, self._healed = self._healed, threading.Event()
        healed.set()
        with self._lock:
            assert self._lock.wait_for(lambda: not self._waiting, PATIENCE), "a request never ended"
        for arrive in self._late:
            with suppress(Exception):  # nobody hears it
                arrive()
        self._late.clear()

    def next(self, name: str) -> str:
        """What happens to the request that has come; empty where nothing does."""
        with self._lock:
            if not self._listens:
                return ""
            self._slow.healed = self._healed  # by now, since the test may heal before the request comes to wait
            number = len(self.requests)
            self.requests.append(name)
            if self.process_ended:
                return "dropped"
            fault = self._of.pop(number, "")
            if not fault and self._away and number >= self._away[0]:
                fault = self._away[1]
            if fault.startswith("slow"):
                self._waiting += 1  # from now on, since it may be healed before it is applied
            if not fault.startswith("killed"):
                return fault
            self.process_ended = True
            return "lost" if fault == "killed after" else "dropped"

    def arrive_late(self, arrive: Callable[[], object]) -> None:
        """To be done at `heal`."""
        self._late.append(arrive)

    def slow(self, apply: Callable[[], T], *, arrives: bool) -> T:
        """What `apply` answers, not before `heal`, which waits for it; what does not arrive is applied only then."""
        try:
            answers = [apply()] if arrives else []
            assert self._slow.healed.wait(PATIENCE), "nobody healed it"
            return answers[0] if arrives else apply()
        finally:
            with self._lock:
                self._waiting -= 1
                self._lock.notify_all()
