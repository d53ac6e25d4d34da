"""Processes of runs whose supervisor is dead, which are known by a variable of their environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path


def marked(mark: str) -> Iterator[tuple[int, int]]:
    """The processes of this account that have the mark, each with the id of its run."""
    begins = f"{mark}=".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or is somebody else's
            continue
        value = next((each[len(begins) :] for each in variables if each.startswith(begins)), b"")
        if value.isdigit():
            yield int(folder.name), int(value)


def end_marked(mark: str, runs: Collection[int]) -> int:
    """Kill the processes of these runs; how many there were."""
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
