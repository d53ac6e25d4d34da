"""What the programs share: a store of their own, figures, and the verdict they exit with."""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.servers import MetalakeServer

_missed: list[str] = []


def own_store(database_url: str = "", **environment: str) -> None:
    """Django on a fresh store in a folder that goes away with the process. Call it before any import of ours."""
    home = tempfile.mkdtemp(prefix="metalake-bench-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in [name for name in os.environ if name.startswith("METALAKE_")]:
        del os.environ[name]
    os.environ |= {
        "METALAKE_HOME": home,
        "METALAKE_DATABASE_URL": database_url,
        "METALAKE_LOG_LEVEL": "ERROR",
        "METALAKE_ALLOWED_HOSTS": "testserver",  # as Django's own client calls it
        "DJANGO_SETTINGS_MODULE": "metalake.settings",
        **environment,
    }
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def join_store() -> None:
    """Django on the store of the program that started this process."""
    import django

    django.setup()


def serve(stack: ExitStack, **environment: str) -> MetalakeServer:
    """Metalake as a process group of its own on the program's store, which stops with the stack."""
    return _serve(stack, Path(os.environ["METALAKE_HOME"]), environment)


def serve_twin(stack: ExitStack, *program: str, **environment: str) -> MetalakeServer:
    """A server in a data folder of its own, as the program's is now, so that several stand side by side.

    It may only read: its tables lie in the program's folder. `program` is what Python runs instead of Metalake's door.
    """
    twin = Path(tempfile.mkdtemp(prefix="metalake-bench-"))
    stack.callback(shutil.rmtree, twin, ignore_errors=True)
    home = Path(os.environ["METALAKE_HOME"])
    for key in home.glob("secret*"):
        shutil.copy2(key, twin)
    if (store := home / "metalake.sqlite3").exists():
        with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(twin / store.name)) as copy:
            source.backup(copy)
    return _serve(stack, twin, {"METALAKE_FILE_LOCATIONS": str(home / "warehouse"), **environment}, *program)


def _serve(stack: ExitStack, home: Path, environment: dict[str, str], *program: str) -> MetalakeServer:
    from tests.servers import prepare

    own = {
        "METALAKE_DATABASE_URL": os.environ["METALAKE_DATABASE_URL"],
        "METALAKE_LOG_LEVEL": "ERROR",
        "METALAKE_WORKERS": "0",  # as many as a server has of itself
    }
    server = prepare(home, **own | environment)
    server.program = program or server.program
    server.start()
    stack.callback(server.kill)  # one that is asked to stop waits for idle clients
    return server


def on_both_databases(program: str, arguments: Sequence[str], **settings: str) -> bool:
    """Run the program once on SQLite and once on PostgreSQL, each in a process of its own; False in such a process."""
    if os.environ.get("BENCH_DATABASE") is not None:
        own_store(os.environ.pop("BENCH_DATABASE"), **settings)
        return False
    import subprocess

    from tests.postgres import running_postgres

    codes = []
    with running_postgres() as server:
        for label, url in (("SQLite", ""), ("PostgreSQL", server.create_database())):
            print(f"-- {label}", flush=True)
            environment = os.environ | {"BENCH_DATABASE": url}
            codes.append(subprocess.call([sys.executable, "-m", program, *arguments], env=environment))
    sys.exit(max(codes))


def timed(act: Callable[[], Any], rounds: int, warm_up: int = 5) -> list[float]:
    """Milliseconds of each round."""
    for _ in range(warm_up):
        act()
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def statements(act: Callable[[], Any]) -> int:
    """SQL statements that it takes; transaction control not counted."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        act()
    control = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    return sum(not query["sql"].startswith(control) for query in captured.captured_queries)


def ratio(left: Sequence[float], right: Sequence[float]) -> float:
    """Round by round, then the median."""
    return median([a / b for a, b in zip(left, right, strict=True)])


def claim(what: str, found: float, limit: float, *, at_least: bool = False, unit: str = "") -> None:
    """Print a figure beside its goal, and remember a miss."""
    held = found >= limit if at_least else found <= limit
    sign = ">=" if at_least else "<="
    print(f"  {'ok  ' if held else 'MISS'} {what}: {found:.3g}{unit} (goal {sign} {limit:g}{unit})", flush=True)
    if not held:
        _missed.append(what)


def finish() -> None:
    """Exit with 1 where a goal was missed."""
    sys.exit(1 if _missed else 0)
