"""Hostile SQL on a server of several processes: it is answered in time, and no process that reads it is left behind."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.http import basic
from tests.providers.world import World
from tests.servers import ADMIN_PASSWORD, MetalakeServer, running_metalake
from tests.views_mgmt.sql.test_process import ENDLESS, programs
from tests.waiting import eventually
from views_mgmt.sql.process import NOT_REACHED

pytestmark = [pytest.mark.server, pytest.mark.timeout(240)]

VIEWS = "/metalakes/demo/catalogs/shelf/schemas/nyc/views"
CHECK = f"{VIEWS}/v/check"


def ask(server: MetalakeServer, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": basic("admin", ADMIN_PASSWORD), "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/api{path}", content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def reading(server: MetalakeServer) -> list[psutil.Process]:
    """The processes that read SQL for any process of the server: for a caller, or for the lineage of new versions."""
    with suppress(psutil.NoSuchProcess):  # one ended while it was looked at
        return [program for process in server.processes() for program in programs(process)]
    return reading(server)


def computes(program: psutil.Process) -> bool:
    """Whether it has its question, and is at work on it."""
    with suppress(psutil.NoSuchProcess):
        return bool(program.cpu_times().user > 0.5)
    return False


def is_alive(program: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(program.is_running() and program.status() != psutil.STATUS_ZOMBIE)
    return False


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetalakeServer]:
    """One with a view of a plain and an endless query."""
    half = {"METALAKE_PROVIDERS": "half=tests.providers.half:HalfMemoryProvider"}
    folder = tmp_path_factory.mktemp("metalake")
    with running_metalake(folder, METALAKE_WORKERS="2", METALAKE_SQL_TIMEOUT="3", **half) as server:
        fill(server, folder)
        yield server


@pytest.fixture
def server(prepared: MetalakeServer) -> MetalakeServer:
    """It runs, although a test has killed it."""
    if prepared.process is None:
        prepared.start()
    return prepared


def fill(server: MetalakeServer, folder: Path) -> None:
    catalog = {
        "name": "shelf",
        "type": "RELATIONAL",
        "provider": "half",
        "properties": {"world": str(World(folder / "world.json").path)},
    }
    queries = [
        {"type": "sql", "dialect": "trino", "sql": ENDLESS},
        {"type": "sql", "dialect": "spark", "sql": "SELECT 1 a"},
    ]
    for path, body in [
        ("/metalakes/demo/catalogs", catalog),
        ("/metalakes/demo/catalogs/shelf/schemas", {"name": "nyc"}),
        (VIEWS, {"name": "v", "columns": [], "representations": queries}),
    ]:
        status, answer = ask(server, "POST", path, body)
        assert status == 200, answer


def test_hostile_sql_ends_and_leaves_nothing(server: MetalakeServer) -> None:
    status, answer = ask(server, "POST", CHECK)
    assert status == 200, answer
    (problem,) = answer["dialects"][0]["problems"]
    assert problem["text"] in ("It could not be read within 3 s.", NOT_REACHED), "the latter on a very busy machine"
    assert eventually(lambda: not reading(server))

    with ThreadPoolExecutor() as clients:
        checks = clients.submit(ask, server, "POST", CHECK)
        assert eventually(lambda: bool(reading(server)))
        busy = [clients.submit(ask, server, "POST", CHECK) for _ in range(8)]
        assert {each.result()[0] for each in busy} <= {200, 429} and 429 in {each.result()[0] for each in busy}
        assert ask(server, "GET", f"{VIEWS}/v")[0] == 200
        assert checks.result()[0] == 200

        checks = clients.submit(ask, server, "POST", CHECK)
        assert eventually(lambda: bool(reading(server)))
        before = server.processes()
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        assert checks.result()[0] == 200, "what was begun is answered"
        assert eventually(lambda: not set(before) & set(server.processes()))
        assert eventually(lambda: not reading(server)), "the new processes read new versions at once, and end it"


def test_no_process_outlives_a_server_that_is_killed(server: MetalakeServer) -> None:
    with ThreadPoolExecutor() as clients:
        lost = clients.submit(ask, server, "POST", CHECK)
        assert eventually(lambda: bool(reading(server)))
        assert eventually(lambda: any(computes(each) for each in reading(server)))
        orphans = reading(server)
        assert server.process is not None
        for process in [server.process.pid, *server.processes()]:
            os.kill(process, signal.SIGKILL)
        with suppress(OSError):
            lost.result()
    assert eventually(lambda: not any(is_alive(each) for each in orphans))
    server.kill()  # it is known to be gone
