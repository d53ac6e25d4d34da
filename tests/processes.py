"""Programs that run beside the tests, each in a process group of its own."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.shared import kill_group


def start(
    what: str,
    command: Sequence[str | Path],
    log: Path,
    is_ready: Callable[[], bool] = lambda: True,
    timeout: float = 60,
    **how: Any,
) -> subprocess.Popen[bytes]:
    """Start a program, and wait until it is ready. What it says is added to the log; `how` is as for Popen.

    Raises AssertionError with the end of the log when it ends or is not ready in time; nothing is left of it then.
    """
    with log.open("ab") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, **how
        )
    deadline = time.monotonic() + timeout
    try:
        while not is_ready():
            ended = process.poll()
            if ended is not None or time.monotonic() > deadline:
                why = f"ended with {ended}" if ended is not None else f"was not ready within {timeout:.0f} s"
                raise AssertionError(f"{what} {why}:\n{tail(log)}")
            time.sleep(0.05)
    except BaseException:
        kill(process)
        raise
    return process


def kill(process: subprocess.Popen[Any]) -> None:
    """SIGKILL to its process group, as a crash of its machine would; it has ended afterwards."""
    kill_group(process.pid)
    process.wait()


def answers(url: str) -> bool:
    """Whether a GET of it is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
