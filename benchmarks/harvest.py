"""A harvest with 8 tasks at once against the server's own refresh, over a metastore stand-in that answers in 5 ms.

    python -m benchmarks.harvest [--short] [--call] [databases]

100,000 tables in 100 databases, or 5,000 in 20, or 1,000 in each of another number; each of the two reads a stand-in of
its own through a server that has just started, first with nothing known and then with nothing changed. What the memory
of the server grows by is the anonymous part of it: pages of the store's file that SQLite maps are the kernel's, which
takes them back when it needs them, and are printed beside it. A stand-in takes 5 ms for each
table that it describes, several at once; with --call it takes 5 ms for an answer, however many tables are in it. Of the
5,000 the start of Spark's workers takes a good part of the harvest, so the goal is one of the 100,000.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from benchmarks import usage
from benchmarks.harness import claim, finish, own_store, serve
from metalake_client.rest import Client
from tests.servers import MetalakeServer

DATABASES, TABLES = 100, 1_000
SHORT = (20, 250)
SECONDS = 0.005
TASKS = 8
FASTER = 3.0


@dataclass(frozen=True)
class Turn:
    """One walk over all: seconds of the run and until all had ended, and the server's memory and its growth in MB."""

    seconds: float
    in_all: float
    at_start: float
    memory: float
    mapped: float


def main(arguments: list[str]) -> None:
    own_store()
    numbers = [int(each) for each in arguments if each.isdigit()]
    databases, tables = SHORT if "--short" in arguments else ((*numbers, DATABASES)[0], TABLES)
    waits = (SECONDS, 0.0) if "--call" in arguments else (0.0, SECONDS)
    from benchmarks.outside import outside_catalog
    from benchmarks.population import first_catalog

    owner = first_catalog()
    with ExitStack() as stack:
        for catalog in ("refreshed", "harvested"):
            uri = stand_in(stack, databases, tables, *waits)
            outside_catalog(owner, catalog, "hive", **{"metastore.uris": uri})
        print(f"  {databases * tables:,} tables; 5 ms for {'an answer' if waits[0] else 'each table of an answer'}")
        for what in ("the first time", "unchanged"):
            one, other = turn("refreshed", refresh), turn("harvested", harvest)
            for name, each in (("refresh", one), ("harvest", other)):
                print(f"  {what}: {name} {each.seconds:.1f} s, in all {each.in_all:.1f} s", end="; the server grew ")
                print(f"from {each.at_start:.0f} by {each.memory:.0f} MB, files by {each.mapped:.0f}", flush=True)
            faster, how = one.seconds / other.seconds, f"refresh : harvest, {what}"
            if "--short" in arguments:
                print(f"       {how}: {faster:.2g}x")
            else:
                claim(how, faster, FASTER, at_least=True, unit="x")
            claim(f"what the server's memory grew by, {what}", other.memory, one.memory, unit=" MB")
    finish()


def stand_in(stack: ExitStack, databases: int, tables: int, seconds: float, of_table: float) -> str:
    command = [sys.executable, "-m", "tests.metastore_stand_in"]
    command += [str(each) for each in (databases, tables, seconds, of_table)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def turn(catalog: str, walk: Callable[[str, str], None]) -> Turn:
    """One walk through a server that has just started; its memory is looked at all the time."""
    from authz.callers.identity import issue_token
    from authz.models import User
    from catalogs.models import RefreshRun

    with ExitStack() as stack:
        server = serve(stack)
        token = issue_token(User.objects.get(username="admin"), "bench")
        before, most, ended = memory(server), [0.0, 0.0], Event()

        def look() -> None:
            while not ended.wait(0.2):
                grown = [now - then for now, then in zip(memory(server), before, strict=True)]
                most[:] = map(max, most, grown)

        watcher, began = Thread(target=look), time.perf_counter()
        watcher.start()
        try:
            walk(server.url, token)
        finally:
            in_all = time.perf_counter() - began
            ended.set()
            watcher.join()
    run = RefreshRun.objects.filter(in_catalog__name=catalog).latest("started_at")
    assert run.state == RefreshRun.State.DONE and run.ended_at is not None, run.error
    return Turn((run.ended_at - run.started_at).total_seconds(), in_all, before[0], *most)


def memory(server: MetalakeServer) -> tuple[float, float]:
    """MB of its own, and of files that it maps; a page that several processes share counts in equal parts."""
    files = [Path(f"/proc/{process.pid}/smaps_rollup") for process in usage.processes(server)]
    own, mapped = (sum(usage.figure(file, name) for file in files) / 1e6 for name in ("Pss_Anon", "Pss_File"))
    return own, mapped


def refresh(url: str, token: str) -> None:
    """The server walks."""
    from benchmarks.population import METALAKE

    client = Client(url, token=token)
    refreshes = ("metalakes", METALAKE, "catalogs", "refreshed", "refreshes")
    run = client.call("POST", *refreshes)["refresh"]["id"]
    while client.call("GET", *refreshes, run)["refresh"]["state"] == "running":
        time.sleep(1)


def harvest(url: str, token: str) -> None:
    """The job walks."""
    from benchmarks.population import METALAKE

    who = {"METALAKE_URL": url, "METALAKE_METALAKE": METALAKE, "METALAKE_TOKEN": token}
    command = [sys.executable, "-m", "pipelines.harvest", "--catalog=harvested", f"--tasks={TASKS}"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=os.environ | who)


if __name__ == "__main__":
    main(sys.argv[1:])
