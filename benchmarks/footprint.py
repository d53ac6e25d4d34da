"""How fast a server starts, and the memory of all its processes: after `make demo`, and after 50,000 requests.

Memory is the sum of the processes' proportional shares (PSS, proc_pid_smaps(5)), so that shared pages count once.
`python -m benchmarks.footprint [requests]`
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from benchmarks.harness import claim, finish, join_store, median
from benchmarks.mixture import Mixture
from benchmarks.usage import memory, processes
from pipelines.rest import Client
from tests.servers import ADMIN_PASSWORD, REPOSITORY, MetalakeServer, prepare

STARTS, FIRST = 3, 20
REQUESTS = 50_000
FIRST_LOADED = "/iceberg/demo/v1/lake/namespaces/first/tables/t"
WIDE = 10_000  # tables of one schema
MB = 1_000_000


def main(arguments: list[str]) -> None:
    if arguments == ["fill"]:
        fill()
        return
    requests = int(arguments[0]) if arguments else REQUESTS
    with tempfile.TemporaryDirectory() as folder:
        server = prepare(Path(folder), METALAKE_LOG_LEVEL="ERROR", METALAKE_WORKERS="0")
        try:
            print(f"  first start, which migrates and makes the first catalog: {started(server):.2f} s")
            token = make_table(server)
            starts, firsts = [], []
            for _ in range(STARTS):
                server.kill()
                starts.append(started(server))
                firsts.append(first_requests(server, token))
            claim("start once set up, until ready", median(starts), 3, unit=" s")
            claim("the first request, which loads a table", median([times[0] for times in firsts]), 300, unit=" ms")
            slowest = median([max(times) for times in firsts])
            claim(f"the slowest of the first {FIRST}, each on a connection of its own", slowest, 300, unit=" ms")
            print(f"  {len(processes(server))} processes that have answered nothing else: {memory(server) / MB:.0f} MB")
            demo(server)
            claim("all processes after the demo", memory(server) / MB, 250, unit=" MB")
            run(server, "-m", "benchmarks.footprint", "fill")
            before = time.perf_counter()
            answers = Mixture(server.url, ADMIN_PASSWORD).run(requests)
            took = time.perf_counter() - before
            statuses = ", ".join(f"{count:,} times {status}" for status, count in sorted(answers.items()))
            mistakes = sum(count for status, count in answers.items() if status >= 500 and status != 503)
            print(f"  {requests:,} requests in {took:.0f} s were answered {statuses}")
            claim("answers of 500 and above other than 503", mistakes, 0)
            claim(f"all processes after {requests:,} mixed requests", memory(server) / MB, 350, unit=" MB")
        finally:
            server.kill()
    finish()


def started(server: MetalakeServer) -> float:
    before = time.perf_counter()
    server.start()
    return time.perf_counter() - before


def make_table(server: MetalakeServer) -> str:
    """Make the table that is loaded first; returns a token of a user who may load it."""
    token = Client(server.url, "admin", ADMIN_PASSWORD).call("POST", "tokens", body={"name": "bench"})
    secret = str(token["token"]["secret"])
    lake = Client(server.url, token=secret).iceberg("demo", "lake")
    lake.create_namespace("first")
    lake.create_table(("first", "t"), schema=pa.schema([("id", pa.int64())]))
    return secret


def first_requests(server: MetalakeServer, token: str) -> list[float]:
    """Milliseconds of loading a table repeatedly, so that each process answers its first request."""
    times = []
    for _ in range(FIRST):
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        before = time.perf_counter()
        connection.request("GET", FIRST_LOADED, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        times.append((time.perf_counter() - before) * 1000)
        assert answer.status == 200, answer.status
        connection.close()
    return times


def demo(server: MetalakeServer) -> None:
    """Do what `make demo` does."""
    before = time.perf_counter()
    run(server, "-m", "pipelines.demo", METALAKE_URL=server.url, METALAKE_ADMIN_PASSWORD=ADMIN_PASSWORD)
    print(f"  the demo took {time.perf_counter() - before:.0f} s")


def run(server: MetalakeServer, *program: str, **environment: str) -> None:
    """Run a Python program beside the server. Raises AssertionError with its output if it fails."""
    given = os.environ | server.environment | {"DJANGO_SETTINGS_MODULE": "metalake.settings"} | environment
    done = subprocess.run([sys.executable, *program], cwd=REPOSITORY, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def fill() -> None:
    """A schema of many tables in the store that the environment names."""
    join_store()
    from authz.callers.identity import actor_of
    from authz.models import User
    from benchmarks.population import children
    from catalogs.services import schemas
    from metalake.kinds import Kind
    from metalake.lineage import Address
    from metalake.models import Securable

    admin = User.objects.get(username="admin")
    made = schemas.create_schema(actor_of(admin), Address(metalake="demo", catalog="lake", schema="wide"), None, {}).row
    parent = Securable.objects.get(pk=made.pk)
    children(parent, (f"table_{n:05}" for n in range(WIDE)), Kind.TABLE, admin)


if __name__ == "__main__":
    main(sys.argv[1:])
