"""Waiting in tests: for what is to come true, never for a time that is hoped to be long enough."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether it came to hold within the time, which is long enough for a machine that is busy."""
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held
