"""Parts that the programs share: a store of their own, figures, and the exit status."""

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
    """Set up Django on a new store in a folder that is removed at exit. Call it before importing our modules."""
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
    """Set up Django on the store of the program that started this process."""
    import django

    django.setup()


def serve(stack: ExitStack, **environment: str) -> MetalakeServer:
    """Start Metalake as a process group of its own on the program's store; it stops with the stack."""
    return _serve(stack, Path(os.environ["METALAKE_HOME"]), environment)


def serve_twin(stack: ExitStack, *program: str, **environment: str) -> MetalakeServer:
    """Start a server on a copy of the program's data folder, so that several servers can run side by side.

    It may only read: its tables lie in the program's folder. `program` are arguments of Python in place of Metalake's.
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
        "METALAKE_WORKERS": "0",  # the server's default
    }
    server = prepare(home, **own | environment)
    server.program = program or server.program
    server.start()
    stack.callback(server.kill)  # a graceful stop would wait for idle clients
    return server


def on_both_databases(program: str, arguments: Sequence[str], **settings: str) -> bool:
    """Run the program in a process on SQLite, then in one on PostgreSQL, and exit; returns False in such a process."""
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
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1000)
    return times


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def statements(act: Callable[[], Any]) -> int:
    """The number of SQL statements of an act, without transaction control."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        act()
    control = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    return sum(not query["sql"].startswith(control) for query in captured.captured_queries)


def ratio(left: Sequence[float], right: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return median([a / b for a, b in zip(left, right, strict=True)])


def claim(what: str, figure: float, limit: float, *, at_least: bool = False, unit: str = "") -> None:
    """Print a figure and its goal, and note if the goal is missed."""
    reached = figure >= limit if at_least else figure <= limit
    sign = ">=" if at_least else "<="
    print(f"  {'ok  ' if reached else 'MISS'} {what}: {figure:.3g}{unit} (goal {sign} {limit:g}{unit})", flush=True)
    if not reached:
        _missed.append(what)


def finish() -> None:
    """Exit with 1 if a goal was missed."""
    sys.exit(1 if _missed else 0)
