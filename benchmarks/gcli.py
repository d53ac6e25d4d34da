"""The command line beside what it cannot be faster than: its start, and a list of 10,000 tables.

Starts are those of an installed `gcli`, whose code is compiled already, in turn with a Python that does nothing. The
list is printed into a buffer of this process, in turn with the same request by the same HTTP library, whose answer is
read as JSON and no more; the whole process is printed beside it. `python -m benchmarks.gcli [rounds]`
"""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

from benchmarks.harness import claim, finish, median, own_store, ratio, serve
from benchmarks.usage import processor_seconds
from metalake_client.cli.app import main as gcli

if TYPE_CHECKING:
    from tests.servers import MetalakeServer

ROUNDS, TABLES = 15, 10_000
REPOSITORY = Path(__file__).resolve().parent.parent
HELP = ("-m", "metalake_client", "--help")


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else ROUNDS
    with tempfile.TemporaryDirectory(prefix="metalake-bench-") as compiled:
        starts(rounds, {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled})
        lists(rounds, {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled})
    finish()


def run(arguments: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of a process of Python, by the clock and of a processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, env=os.environ | environment, stdout=subprocess.DEVNULL
    )
    took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took * 1000, used * 1000


def starts(rounds: int, environment: dict[str, str]) -> None:
    run(HELP, environment)  # compiles it
    helped, bare = zip(
        *((run(HELP, environment), run(("-c", "pass"), environment)) for _ in range(rounds)), strict=True
    )
    for what, times in (("gcli --help", helped), ("python -c pass", bare)):
        clock, used = (median([each[place] for each in times]) for place in (0, 1))
        print(f"  {what}: {clock:.0f} ms by the clock, {used:.0f} ms of a processor")
    claim("processor time of gcli --help", median([each[1] for each in helped]), 300, unit=" ms")
    claim("gcli --help by the clock", median([each[0] for each in helped]), 300, unit=" ms")


def lists(rounds: int, environment: dict[str, str]) -> None:
    own_store()
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, analyze, children, first_catalog, schema
    from metalake.kinds import Kind

    home = schema(first_catalog(), "wide")
    admin = User.objects.get(username="admin")
    children(home, (f"table_{number:05}" for number in range(TABLES)), Kind.TABLE, admin)
    analyze()
    with ExitStack() as stack:
        server = serve(stack)
        secret = issue_token(admin, "bench")
        os.environ |= {"METALAKE_URL": server.url, "METALAKE_METALAKE": METALAKE, "METALAKE_TOKEN": secret}
        os.environ["METALAKE_PROFILES"] = str(server.home / "profiles.toml")
        client = requests.Session()
        client.headers.update({"Authorization": f"Bearer {secret}", "Accept": "application/json"})
        url = f"{server.url}/api/metalakes/{METALAKE}/catalogs/{CATALOG}/schemas/wide/tables"
        asked = ("table", "list", "--catalog", CATALOG, "--schema", "wide")
        for output in ("table", "json"):
            beside(server, client, url, (*asked, "--output", output), rounds)
        whole = [run(("-m", "metalake_client", *asked), environment)[0] for _ in range(rounds)]
        print(f"  the same as a process of its own, into a pipe: {median(whole):.0f} ms")


def beside(server: MetalakeServer, client: requests.Session, url: str, asked: tuple[str, ...], rounds: int) -> None:
    """Both in turn, by the clock and in the processor time of the server and of this process together."""

    def request() -> None:
        assert len(client.get(url).json()["identifiers"]) == TABLES

    def command() -> None:
        with redirect_stdout(io.StringIO()) as shown:
            assert gcli(asked) == 0
        assert shown.getvalue().count("table_") == TABLES

    clock: dict[Any, list[float]] = {request: [], command: []}
    used = dict.fromkeys(clock, 0.0)
    for act in clock:
        act()  # warms up
    for _ in range(rounds):
        for act, times in clock.items():
            before, started = processor_seconds(server) + time.process_time(), time.perf_counter()
            act()
            times.append((time.perf_counter() - started) * 1000)
            used[act] += processor_seconds(server) + time.process_time() - before
    for name, act in (("the request itself", request), (" ".join(asked[-2:]), command)):
        print(f"  {name}: {median(clock[act]):.0f} ms by the clock, {used[act] / rounds * 1000:.0f} ms of a processor")
    what = f"a list of {TABLES} tables, {asked[-1]} : the request itself"
    claim(f"{what}, processor time", used[command] / used[request], 1.5, unit="x")
    claim(f"{what}, by the clock", ratio(clock[command], clock[request]), 1.5, unit="x")


if __name__ == "__main__":
    main(sys.argv[1:])
