"""Which connections a process has."""

from __future__ import annotations

import os
from pathlib import Path


def clients_of(pid: int) -> frozenset[int]:
    """The other ends' ports of the TCP connections that a process holds (proc_pid_fd(5), proc_net_tcp(5))."""
    held = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            held.add(os.readlink(entry))
        except FileNotFoundError:
            continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return frozenset(int(row[2].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in held)
