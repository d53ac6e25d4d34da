"""The deadline of a thread's call to an outside system, after which it must change nothing there.

After a timeout the caller reads back what the call did and may undo it, so the call must not write any more.
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
    """Set this thread's deadline, a value of time.monotonic(), for the block."""
    _call.until = moment
    try:
        yield
    finally:
        del _call.until


def is_set() -> bool:
    """Whether this thread's call has a deadline."""
    return hasattr(_call, "until")


def require_time() -> None:
    """Raise ProviderTimeout if this thread's deadline has passed."""
    if time.monotonic() > getattr(_call, "until", inf):
        raise ProviderTimeout("The call went on for too long, so it was ended.", kind="catalog")
