"""wrk as the client: requests per second and latencies of the same GET over keep-alive connections."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


class Turn(NamedTuple):
    rate: float  # requests per second
    p50: float  # milliseconds
    p99: float
    answered: int
    refused: int  # answered with another status than 2xx or 3xx
    broken: int  # connections that failed or broke, and requests that took longer than two seconds


def require_wrk() -> None:
    """Exit with a message if wrk is missing."""
    if not shutil.which("wrk"):
        sys.exit("This program asks with wrk, which is not installed (Debian, Ubuntu: apt install wrk).")


def ask(url: str, authorization: str, connections: int, seconds: int) -> Turn:
    """Run wrk for one turn, with one thread; failed requests are only counted."""
    command = ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}s"]
    done = subprocess.run(
        [*command, "-H", f"Authorization: {authorization}", url], capture_output=True, text=True, check=True
    )
    return read(done.stdout)


def drive(url: str, headers: dict[str, str], script: str, connections: int, seconds: float) -> Turn:
    """Run wrk for one turn with a script of Lua that makes the requests; failed requests are only counted."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", file.name]
        for name, value in headers.items():
            command += ["-H", f"{name}: {value}"]
        done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
    return read(done.stdout)


def load(url: str, authorization: str, connections: int, seconds: int) -> Turn:
    """The same; raises AssertionError unless all requests were answered with success."""
    turn = ask(url, authorization, connections, seconds)
    assert turn.answered and not turn.refused + turn.broken, (url, turn)
    return turn


def read(output: str) -> Turn:
    """The figures in wrk's output; a missing one is 0."""

    def number(pattern: str) -> float:
        match = re.search(pattern, output)
        return float(match[1]) if match else 0.0

    def latency(share: int) -> float:
        match = re.search(rf"^ +{share}% +([0-9.]+)(us|ms|s|m)$", output, re.MULTILINE)
        return float(match[1]) * MILLISECONDS[match[2]] if match else 0.0

    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    return Turn(
        number(r"Requests/sec: +([0-9.]+)"),
        latency(50),
        latency(99),
        int(number(r"(\d+) requests in ")),
        int(number(r"Non-2xx or 3xx responses: (\d+)")),
        sum(int(count) for count in errors.groups()) if errors else 0,
    )
