"""A harvest with 8 tasks at once against the refresh of one process, over a metastore stand-in that answers in 5 ms.

    python -m benchmarks.harvest [--short] [--call] [databases]

100,000 tables in 100 databases, or 5,000 in 20, or 1,000 in each of another number; each of the two reads a stand-in of
its own, in a process of its own, first with nothing known and then with nothing changed. A stand-in takes 5 ms for each
table that it describes, several at once; with --call it takes 5 ms for an answer, however many tables are in it. Of the
5,000 the start of Spark's workers takes a good part of the harvest, so the goal is one of the 100,000.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event, Thread

from benchmarks import usage
from benchmarks.harness import claim, finish, own_store, serve
from tests.servers import MetalakeServer

DATABASES, TABLES = 100, 1_000
SHORT = (20, 250)
SECONDS = 0.005
TASKS = 8
FASTER, MEMORY = 3.0, 100.0


@dataclass(frozen=True)
class Turn:
    """One walk over all: seconds of the run, of the whole process, and what the server's memory grew by in MB."""

    seconds: float
    in_all: float
    memory: float = 0.0


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
        server = serve(stack)
        print(f"  {databases * tables:,} tables; 5 ms for {'an answer' if waits[0] else 'each table of an answer'}")
        for what in ("the first time", "unchanged"):
            one, other = refresh(), harvest(server)
            print(f"  {what}: refresh {one.seconds:.1f} s (process {one.in_all:.1f} s), ", end="")
            print(f"harvest {other.seconds:.1f} s (process {other.in_all:.1f} s)", flush=True)
            faster, how = one.seconds / other.seconds, f"refresh : harvest, {what}"
            if "--short" in arguments:
                print(f"       {how}: {faster:.2g}x")
            else:
                claim(how, faster, FASTER, at_least=True, unit="x")
            claim(f"what the server's memory grew by, {what}", other.memory, MEMORY, unit=" MB")
    finish()


def stand_in(stack: ExitStack, databases: int, tables: int, seconds: float, of_table: float) -> str:
    command = [sys.executable, "-m", "tests.metastore_stand_in"]
    command += [str(each) for each in (databases, tables, seconds, of_table)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def refresh() -> Turn:
    from benchmarks.population import METALAKE

    return _turn("refreshed", [sys.executable, "manage.py", "refresh_catalog", METALAKE, "refreshed"], {})


def harvest(server: MetalakeServer) -> Turn:
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import METALAKE

    token = issue_token(User.objects.get(username="admin"), "bench")
    who = {"METALAKE_URL": server.url, "METALAKE_METALAKE": METALAKE, "METALAKE_TOKEN": token}
    command = [sys.executable, "-m", "pipelines.harvest", "--catalog=harvested", f"--tasks={TASKS}"]
    before = usage.memory(server) / 1e6
    peak, ended = before, Event()

    def look() -> None:
        nonlocal peak
        while not ended.wait(0.2):
            peak = max(peak, usage.memory(server) / 1e6)

    watcher = Thread(target=look)
    watcher.start()
    try:
        turn = _turn("harvested", command, who)
    finally:
        ended.set()
        watcher.join()
    return Turn(turn.seconds, turn.in_all, peak - before)


def _turn(catalog: str, command: list[str], environment: dict[str, str]) -> Turn:
    from catalogs.models import RefreshRun

    began = time.perf_counter()
    subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=os.environ | environment
    )
    in_all = time.perf_counter() - began
    run = RefreshRun.objects.filter(in_catalog__name=catalog).latest("started_at")
    assert run.state == RefreshRun.State.DONE and run.ended_at is not None, run.error
    return Turn((run.ended_at - run.started_at).total_seconds(), in_all)


if __name__ == "__main__":
    main(sys.argv[1:])
