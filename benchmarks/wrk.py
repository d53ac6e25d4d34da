"""wrk as the client: requests per second and latencies of the same GET over keep-alive connections."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import NamedTuple

MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


class Found(NamedTuple):
    rate: float  # requests per second
    p50: float  # milliseconds
    p99: float
    answered: int
    refused: int  # answered with another status than 2xx or 3xx
    broken: int  # connections that could not be made or broke, and requests that took longer than two seconds


def require_wrk() -> None:
    """Exits with a sentence where it is missing."""
    if not shutil.which("wrk"):
        sys.exit("This program asks with wrk, which is not installed (Debian, Ubuntu: apt install wrk).")


def ask(url: str, authorization: str, connections: int, seconds: int) -> Found:
    """One turn, with one thread of wrk, whatever becomes of the requests."""
    command = ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}s"]
    done = subprocess.run(
        [*command, "-H", f"Authorization: {authorization}", url], capture_output=True, text=True, check=True
    )
    return read(done.stdout)


def load(url: str, authorization: str, connections: int, seconds: int) -> Found:
    """The same; raises AssertionError where one of the requests was not answered with what it asks for."""
    found = ask(url, authorization, connections, seconds)
    assert found.answered and not found.refused + found.broken, (url, found)
    return found


def read(said: str) -> Found:
    """Of what wrk writes; a latency that it does not know is 0."""

    def number(pattern: str) -> float:
        match = re.search(pattern, said)
        return float(match[1]) if match else 0.0

    def latency(share: int) -> float:
        match = re.search(rf"^ +{share}% +([0-9.]+)(us|ms|s|m)$", said, re.MULTILINE)
        return float(match[1]) * MILLISECONDS[match[2]] if match else 0.0

    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    return Found(
        number(r"Requests/sec: +([0-9.]+)"),
        latency(50),
        latency(99),
        int(number(r"(\d+) requests in ")),
        int(number(r"Non-2xx or 3xx responses: (\d+)")),
        sum(int(count) for count in errors.groups()) if errors else 0,
    )
