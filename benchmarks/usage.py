"""Memory and processor time of a server, over all its processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tests.servers import MetalakeServer


def processes(server: MetalakeServer) -> list[psutil.Process]:
    """The processes of a server; the first one is the parent of the others."""
    assert server.process is not None
    leader = psutil.Process(server.process.pid)
    return [leader, *leader.children(recursive=True)]


def processor_seconds(server: MetalakeServer) -> float:
    """Processor time so far, in user and system mode."""
    times = [process.cpu_times() for process in processes(server)]
    return float(sum(time.user + time.system for time in times))


def memory(server: MetalakeServer) -> float:
    """Bytes; a page that several processes share counts in equal parts (PSS, proc_pid_smaps(5))."""
    return sum(_proportional(process.pid) for process in processes(server))


def _proportional(pid: int) -> float:
    return figure(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def resident(pid: int) -> float:
    """Bytes; shared pages count in full."""
    return figure(Path(f"/proc/{pid}/status"), "VmRSS")


def figure(file: Path, name: str) -> float:
    """The bytes under a name in a file of /proc; 0 if the name is missing."""
    lines = file.read_text().splitlines()
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0.0)
