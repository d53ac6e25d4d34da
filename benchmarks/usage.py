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
    return told(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def resident(pid: int) -> float:
    """Bytes, where shared pages count in full."""
    return told(Path(f"/proc/{pid}/status"), "VmRSS")


def told(said: Path, name: str) -> float:
    """Bytes that a file of /proc tells by this name."""
    lines = said.read_text().splitlines()
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0.0)
