"""Limits the memory that this process uses for responses of outside systems.

A response weighs its bytes plus PART for each of its parts (a table, a column, a JSON object): a part of one byte takes
hundreds in memory. A response heavier than LIGHT takes one of PLACES slots, one per system at a time, until its call
ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from metalake.errors import ProviderBusy

LIGHT = 2**20
PART = 100
PLACES = 2
PATIENCE = 5.0  # seconds that a call waits for a slot

_changed = threading.Condition()
_places: dict[int, str] = {}  # thread with a slot -> the system that it calls
_thread = threading.local()  # `returns`: whether it is in a block that releases its slot


class ResponseTooLarge(Exception):
    """A response heavier than METALAKE_MAX_ANSWER; its text completes a sentence whose subject is the response."""

    def __init__(self) -> None:
        super().__init__(f"weighs more than the {settings.METALAKE_MAX_ANSWER} bytes that METALAKE_MAX_ANSWER allows")


class ResponseBudget:
    """Weighs one response of a system while it is read."""

    def __init__(self, system: str) -> None:
        self.system, self.weight, self.most = system, 0, settings.METALAKE_MAX_ANSWER

    def add(self, weight: int) -> None:
        """Raises ResponseTooLarge, and ProviderBusy if other heavy responses are being read."""
        was_light, self.weight = self.weight <= LIGHT, self.weight + weight
        if self.weight > self.most:
            raise ResponseTooLarge
        if was_light and self.weight > LIGHT:
            _take_place(self.system)

    def add_part(self) -> None:
        self.add(PART)


@contextmanager
def places_returned() -> Iterator[None]:
    """Release this thread's slot after the block; of nested blocks, after the outermost."""
    if getattr(_thread, "returns", False):
        yield
        return
    _thread.returns = True
    try:
        yield
    finally:
        _thread.returns = False
        with _changed:
            _places.pop(threading.get_ident(), None)
            _changed.notify_all()


def _take_place(system: str) -> None:
    thread = threading.get_ident()
    if not getattr(_thread, "returns", False):
        raise RuntimeError(f"The answer of {system} is read outside of places_returned().")
    with _changed:
        if thread in _places:
            return
        if not _changed.wait_for(lambda: len(_places) < PLACES and system not in _places.values(), PATIENCE):
            busy = ProviderBusy("Other long answers of outside systems are being read; try again.", kind="catalog")
            busy.retry_after = 1
            raise busy
        _places[thread] = system
