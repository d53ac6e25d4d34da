"""Load table on the Iceberg wire: authorization on against off, and against a bare Django view of the same bytes.

The three servers run side by side and are asked in turn, round by round; ratios are medians over the rounds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import claim, finish, median, percentile
from benchmarks.http import Load, basic
from tests.ports import free_port
from tests.servers import ADMIN_PASSWORD, MetalakeServer, prepare

ROUNDS, SECONDS = 7, 2.0


def main(arguments: list[str]) -> None:
    import pyarrow as pa

    from pipelines.rest import Client

    rounds = int(arguments[0]) if arguments else ROUNDS
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        on, off = (start(stack, folder / name, METALAKE_AUTHORIZATION=name) for name in ("on", "off"))
        for server in (on, off):
            lake = Client(server.url, "admin", ADMIN_PASSWORD).iceberg("demo", "lake")
            lake.create_namespace(("a", "b", "c"))
            columns = pa.schema([(f"column_{n}", pa.string()) for n in range(30)])
            table = lake.create_table(("a", "b", "c", "t"), schema=columns)
            for _ in range(3):
                table.append(columns.empty_table())
        path = "/iceberg/demo/v1/lake/namespaces/a%1Fb%1Fc/tables/t"
        loads = {
            "on": Load(on.url + path, basic("admin", ADMIN_PASSWORD)),
            "off": Load(off.url + path, basic("admin", ADMIN_PASSWORD)),
            "bare": Load(bare(stack, folder, fetch(on.url + path)) + path, basic("admin", ADMIN_PASSWORD)),
        }
        measure(loads, rounds)


def start(stack: ExitStack, home: Path, **environment: str) -> MetalakeServer:
    server = prepare(home, METALAKE_LOG_LEVEL="ERROR", **environment)
    server.start()
    stack.callback(server.stop)
    return server


def fetch(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": basic("admin", ADMIN_PASSWORD)})
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


def bare(stack: ExitStack, folder: Path, content: bytes) -> str:
    (folder / "bytes").write_bytes(content)
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.bare", str(port), str(folder / "bytes")])
    stack.callback(process.wait)
    stack.callback(process.terminate)
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/").close()
            return f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the bare server did not start")


def measure(loads: dict[str, Load], rounds: int) -> None:
    for load in loads.values():
        load.run(1.0)
    rates: dict[str, list[float]] = {name: [] for name in loads}
    latencies: dict[str, list[float]] = {name: [] for name in loads}
    for number in range(rounds):
        # Each goes first in turn, so that drift of the machine favours none.
        for name in [*loads][number % 3 :] + [*loads][: number % 3]:
            rates[name].append(loads[name].run(SECONDS))
            latencies[name] += loads[name].latencies
    for name in loads:
        p50, p99 = percentile(latencies[name], 0.5), percentile(latencies[name], 0.99)
        print(f"  {name:5} {median(rates[name]):7.0f} requests/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    claim("authorization on : off", ratio(rates["on"], rates["off"]), 0.9, at_least=True, unit="x")
    claim("Metalake : bare Django view", ratio(rates["on"], rates["bare"]), 0.5, at_least=True, unit="x")
    finish()


def ratio(left: list[float], right: list[float]) -> float:
    """Round by round, then the median."""
    return median([a / b for a, b in zip(left, right, strict=True)])


if __name__ == "__main__":
    main(sys.argv[1:])
