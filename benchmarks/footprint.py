"""How fast it starts and how much memory it takes: an empty store, a second start, and after `make demo`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import claim, finish, median
from tests.servers import ADMIN_PASSWORD, REPOSITORY, MetalakeServer, prepare

STARTS = 3
MIB = 1024 * 1024


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = prepare(Path(folder), METALAKE_LOG_LEVEL="ERROR")
        try:
            print(f"  first start, which migrates and makes the first catalog: {started(server):.2f} s")
            starts = []
            for _ in range(STARTS):
                server.kill()
                starts.append(started(server))
            claim("start once set up, until ready", median(starts), 3, unit=" s")
            print(f"  a server process that has answered nothing else: {largest(server) / MIB:.0f} MiB")
            demo(server)
            claim("a server process after the demo", largest(server) / MIB, 250, unit=" MiB")
        finally:
            server.kill()
    finish()


def started(server: MetalakeServer) -> float:
    before = time.perf_counter()
    server.start()
    return time.perf_counter() - before


def demo(server: MetalakeServer) -> None:
    """What `make demo` does. Raises AssertionError with its words where it fails."""
    environment = os.environ | {"METALAKE_URL": server.url, "METALAKE_ADMIN_PASSWORD": ADMIN_PASSWORD}
    before = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.demo"], cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"  the demo took {time.perf_counter() - before:.0f} s")


def largest(server: MetalakeServer) -> float:
    """Resident bytes of the largest process of the server."""
    assert server.process is not None
    return max(resident(pid) for pid in _group(server.process.pid))


def _group(leader: int) -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_in(entry, leader)]


def _is_in(entry: Path, leader: int) -> bool:
    try:
        return os.getpgid(int(entry.name)) == leader
    except ProcessLookupError:
        return False


def resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    return 0.0


if __name__ == "__main__":
    main(sys.argv[1:])
