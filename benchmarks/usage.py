"""What a server takes of the machine, all its processes together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tests.servers import MetalakeServer


def processes(server: MetalakeServer) -> list[psutil.Process]:
    """The first is the one that keeps the others."""
    assert server.process is not None
    leader = psutil.Process(server.process.pid)
    return [leader, *leader.children(recursive=True)]


def processor_seconds(server: MetalakeServer) -> float:
    """Spent so far, in user and system mode."""
    times = [process.cpu_times() for process in processes(server)]
    return float(sum(time.user + time.system for time in times))


def memory(server: MetalakeServer) -> float:
    """Bytes, where each page that several processes share counts in parts (PSS, proc_pid_smaps(5))."""
    return sum(_proportional(process.pid) for process in processes(server))


def _proportional(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return float(line.split()[1]) * 1024
    return 0.0
