"""Refreshing an outside catalog: the writes for an unchanged one of 10,000 tables, and the memory for 100,000.

`python -m benchmarks.refresh [tables]` takes that many instead of 100,000, and a tenth of it for the unchanged one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.harness import claim, finish, join_store, on_both_databases
from benchmarks.outside import PROVIDERS

TABLES = 100_000
WRITES = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+\"?(\w+)")
KIB = 1024


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["walk"]:
        join_store()
        walk(arguments[1])
        return
    on_both_databases("benchmarks.refresh", arguments, METALAKE_PROVIDERS=PROVIDERS)
    tables = int(arguments[0]) if arguments else TABLES
    from benchmarks.outside import outside_catalog
    from benchmarks.population import first_catalog

    owner = first_catalog()
    outside_catalog(owner, "small", "generated", tables=str(tables // 10))
    outside_catalog(owner, "large", "generated", tables=str(tables))
    unchanged("small", tables // 10)
    for time_ in ("first", "second"):
        in_process_of_its_own("large", tables, time_)
    finish()


def unchanged(catalog: str, tables: int) -> None:
    """Refresh twice in this process, counting the statements that write."""
    first, _ = refreshed(catalog)
    assert first["catalogs_mirror"] and first["metalake_securable"], "writes are not noticed"
    second, seconds = refreshed(catalog)
    own = second.pop("catalogs_refreshrun")
    print(f"  {tables:,} unchanged tables in {seconds:.1f} s, {own} writes to the row of the run itself")
    claim("writes to other rows", second.total(), 0)


def refreshed(catalog: str) -> tuple[Counter[str], float]:
    """Refresh; returns the number of writing statements by table, and seconds."""
    from catalogs.models import Catalog, RefreshRun
    from outside import refresh

    started = time.perf_counter()
    with writes() as counts:
        run = refresh.begin(Catalog.objects.get(name=catalog).pk, here=True)
        ended = refresh.carry_on(run.pk)
    assert ended and ended.state == RefreshRun.State.DONE, ended and ended.error
    return counts, time.perf_counter() - started


@contextmanager
def writes() -> Iterator[Counter[str]]:
    from django.db import connection

    counts: Counter[str] = Counter()

    def note(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: dict[str, Any]) -> Any:
        if match := WRITES.match(sql):
            counts[match[1]] += 1
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield counts


def in_process_of_its_own(catalog: str, tables: int, time_: str) -> None:
    from catalogs.models import RefreshRun
    from outside import refresh

    command = [sys.executable, "-m", "benchmarks.refresh", "walk", catalog]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    peak = json.loads(done.stdout.splitlines()[-1])
    run = RefreshRun.objects.filter(in_catalog__name=catalog).latest("started_at")
    assert run.state == RefreshRun.State.DONE and run.seen >= tables, f"{run.state}, {run.seen} seen: {run.error}"
    assert run.created == (run.seen if time_ == "first" else 0), f"{run.created} created of {run.seen}"
    print(f"  {tables:,} tables the {time_} time: {refresh.speed(run)[0]:,.0f} objects/s", flush=True)
    what = f"peak resident memory, {tables:,} tables the {time_} time ({peak['own'] / KIB:.0f} MiB of it its own)"
    claim(what, peak["resident"] / KIB, 300, unit=" MiB")


def walk(catalog: str) -> None:
    """Do what `manage.py refresh_catalog` does, and print the memory that it took."""
    from django.core.management import call_command

    from benchmarks.population import METALAKE

    with peak_memory() as peak:
        call_command("refresh_catalog", METALAKE, catalog)
    print(json.dumps(peak))


@contextmanager
def peak_memory() -> Iterator[dict[str, int]]:
    """A context that measures peaks in KiB: the process's own memory, sampled each 20 ms, and resident memory."""
    peak, ended = {"own": 0, "resident": 0}, Event()

    def look() -> None:
        while not ended.wait(0.02):
            peak["own"] = max(peak["own"], memory("RssAnon"))

    watcher = Thread(target=look)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
        peak["resident"] = memory("VmHWM")


def memory(what: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0])


if __name__ == "__main__":
    main(sys.argv[1:])
