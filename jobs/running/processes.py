"""Orphaned processes of runs whose supervisor died, recognised by an environment variable."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path


def marked(mark: str) -> Iterator[tuple[int, int]]:
    """The processes of this Unix account with the variable `mark`, as (process id, run id)."""
    begins = f"{mark}=".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or belongs to another account
            continue
        value = next((each[len(begins) :] for each in variables if each.startswith(begins)), b"")
        if value.isdigit():
            yield int(folder.name), int(value)


def end_marked(mark: str, runs: Collection[int]) -> int:
    """Kill the processes of these runs; returns how many."""
    count = 0
    while some := [pid for pid, run in marked(mark) if run in runs and pid != os.getpid()]:
        for pid in some:
            try:
                os.kill(pid, signal.SIGKILL)
                count += 1
            except ProcessLookupError:
                pass
        if count > 10_000:
            break
    return count
