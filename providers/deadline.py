"""Until when the call that a thread makes may change anything in an outside system.

Who waits for a call leaves when its time is up, looks what became of it and may undo it; it must not go on behind them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from metalake.errors import ProviderTimeout

_call = threading.local()


@contextmanager
def until(moment: float) -> Iterator[None]:
    """For this thread; the moment is one of time.monotonic()."""
    _call.until = moment
    try:
        yield
    finally:
        del _call.until


def is_set() -> bool:
    """Whether somebody waits for this thread's call, and not longer than its time."""
    return hasattr(_call, "until")


def require_time() -> None:
    """Raises ProviderTimeout where nobody waits for the call any more."""
    if time.monotonic() > getattr(_call, "until", inf):
        raise ProviderTimeout("The call went on for too long, so it was ended.", kind="catalog")
