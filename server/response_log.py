"""Request ids and request metrics, for Django and the fast path alike."""

from __future__ import annotations

import re
import time
from functools import cache
from os import urandom

from prometheus_client import Counter, Histogram

REQUESTS = Counter("metalake_requests", "Requests answered", ["wire", "method", "status"])
SECONDS = Histogram("metalake_request_seconds", "Time to answer", ["wire"])

BODILESS = (204, 304)  # statuses without Content-Length (RFC 9110, 8.6)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/=+;,@-]{1,64}")
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def id_of_request(given: str) -> str:
    """The client's request id, if it is safe to log, or a new one."""
    return given if given and _REQUEST_ID.fullmatch(given) else urandom(16).hex()


def count_answer(wire: str, method: str | None, status: int, started: float) -> None:
    """Count a response; `started` is a value of time.perf_counter()."""
    answered, took = _meters(wire, method if method in _METHODS else "other", status)
    answered.inc()
    took.observe(time.perf_counter() - started)


@cache
def _meters(wire: str, method: str | None, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(wire, method, status), SECONDS.labels(wire)
