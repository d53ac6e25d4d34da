"""What holds for a server holds for all of its processes together, whichever a request met, and outlives each."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from typing import Any

import psutil
import pytest

from benchmarks.http import basic
from metalake import refusal_audit
from providers import circuit_breaker as lines
from tests.catalogs.test_hanging_storage import Silence
from tests.connections import clients_of
from tests.ports import free_port
from tests.servers import ADMIN_PASSWORD, MetalakeServer, StartMetalake
from tests.waiting import eventually

pytestmark = [pytest.mark.server, pytest.mark.timeout(240)]

ADMIN = basic("admin", ADMIN_PASSWORD)
API = "/api/metalakes/demo"


class Process:
    """One of a server's processes, asked by a connection that leads to it."""

    def __init__(self, pid: int, connection: HTTPConnection) -> None:
        self.pid, self.connection = pid, connection

    def __call__(self, method: str, path: str, body: Any = None, user: str = ADMIN) -> tuple[int, Any]:
        given = {"Authorization": user} if user else {}
        if body is not None:
            given["Content-Type"] = "application/json"
        self.connection.request(method, path, json.dumps(body) if body is not None else None, given)
        answer = self.connection.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said.startswith(b"{") else said.decode()

    def figures(self) -> dict[str, float]:
        status, text = self("GET", "/metrics", user="")
        assert status == 200
        lines = [line.rpartition(" ") for line in text.splitlines() if line and line[0] != "#"]
        assert len({name for name, _, _ in lines}) == len(lines), "a figure is told twice"
        return {name: float(value) for name, _, value in lines}


def processes_of(server: MetalakeServer) -> list[psutil.Process]:
    assert server.process is not None
    return psutil.Process(server.process.pid).children()


def one_in_each(server: MetalakeServer, number: int = 2) -> list[Process]:
    """A connection to each process: new ones come to the process that has fewest."""
    found: dict[int, Process] = {}

    def all_found() -> bool:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/health")
        connection.getresponse().read()
        here = connection.sock.getsockname()[1]
        for process in processes_of(server):
            if here in clients_of(process.pid):
                found.setdefault(process.pid, Process(process.pid, connection))
        return len(found) == number

    assert eventually(all_found)
    return list(found.values())


@pytest.fixture
def start(start_metalake: StartMetalake) -> Callable[..., MetalakeServer]:
    return partial(start_metalake, METALAKE_WORKERS="2", METALAKE_LOG_LEVEL="CRITICAL")


def audit(server: MetalakeServer, event: str) -> list[dict[str, Any]]:
    with sqlite3.connect(server.home / "metalake.sqlite3") as store:
        rows = store.execute("SELECT details FROM authz_auditentry WHERE event = ? ORDER BY id", [event])
        return [json.loads(details) for (details,) in rows]


def refuses(server: MetalakeServer) -> bool:
    """Whether it takes no new connection. One that it takes is answered, while connections that idle hold it up."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", "/health/live")
        connection.getresponse().read()
        return False
    except ConnectionRefusedError:
        return True
    finally:
        connection.close()


def test_bounds_and_figures_are_the_server_s_and_outlive_a_process(start: Callable[..., MetalakeServer]) -> None:
    server = start()
    one, other = one_in_each(server)
    assert one("POST", f"{API}/users", {"name": "mia"})[0] == 200
    status, issued = other("POST", "/api/tokens", {"name": "of mia", "user": "mia"})
    assert status == 200, issued
    mia = f"Bearer {issued['token']['secret']}"
    for number in range(15):
        for process in (one, other):
            assert process("DELETE", f"{API}/users/{number}-{process.pid}", user=mia)[0] == 403
    for process in (one, other):
        assert process("GET", API, user=basic("admin", "wrong"))[0] == 401
    refused = 'metalake_requests_total{method="DELETE",status="403",wire="api"}'
    told = one.figures()
    assert told.keys() <= other.figures().keys()
    assert (told[refused], other.figures()[refused]) == (30, 30)

    os.kill(one.pid, signal.SIGKILL)
    one.connection.close()
    assert eventually(lambda: one.pid not in {process.pid for process in processes_of(server)})
    comers = one_in_each(server)
    assert one.pid not in {process.pid for process in comers}
    for process in comers:
        now = process.figures()
        assert not {name for name in told if name.endswith("_total") and now[name] < told[name]}, "a count went back"
        assert process("DELETE", f"{API}/users/{process.pid}", user=mia)[0] == 403
        assert process("GET", API, user=basic("admin", "wrong"))[0] == 401
    assert [process.figures()[refused] for process in comers] == [32, 32]

    assert server.process is not None
    server.process.terminate()
    assert eventually(lambda: refuses(server)), "a proxy is to learn at once that it should ask another node"
    server.stop()
    rows = audit(server, "access.refused")
    assert sum("why" in row for row in rows) == refusal_audit.ROWS
    assert [row["more"] for row in rows if "more" in row] == [32 - refusal_audit.ROWS], "also what the dead had counted"
    assert [row["wrong"] for row in audit(server, "sign_in.refused")] == [4]


def test_a_system_is_spared_by_all_processes_and_asked_sixteen_times_at_once_by_all_of_them(
    start: Callable[..., MetalakeServer],
) -> None:
    server = start(METALAKE_THREADS="64")
    one, other = one_in_each(server)
    nobody = {"metastore.uris": f"thrift://127.0.0.1:{free_port()}"}
    catalog = {"name": "out", "type": "relational", "provider": "hive", "properties": nobody}
    status, made = one("POST", f"{API}/catalogs", catalog)
    assert status == 200, made
    schemas = f"{API}/catalogs/out/schemas"

    def asked(process: Process) -> str:
        status, said = process("GET", schemas)
        assert status in (502, 503, 504), said
        return str(said["message"])

    assert eventually(lambda: "kept failing" in asked(one))
    assert "kept failing" in asked(other)
    (opened,) = (name for name in one.figures() if name.startswith("metalake_remote_breaker_open"))
    assert one.figures()[opened] == other.figures()[opened] == 1

    silence = Silence()

    def ask() -> str:
        return asked(Process(0, HTTPConnection("127.0.0.1", server.port, timeout=60)))

    with ThreadPoolExecutor(2 * lines.SLOTS) as clients:
        try:
            there = silence.url.replace("http", "thrift")
            change = {"@type": "setProperty", "property": "metastore.uris", "value": there}
            status, said = other("PUT", f"{API}/catalogs/out", {"updates": [change]})
            assert status == 200, said
            assert opened not in one.figures(), "what was learnt of another address"
            calls = [clients.submit(ask) for _ in range(24)]
            assert eventually(lambda: sum(call.done() for call in calls) == 24 - lines.SLOTS)
            assert all("others wait for it" in call.result() for call in calls if call.done())
            os.kill(one.pid, signal.SIGKILL)
            assert eventually(lambda: sum(call.done() for call in calls) > 24 - lines.SLOTS), "its clients know"
            heard = len(silence.taken)
            clients.submit(ask)
            assert eventually(lambda: len(silence.taken) > heard), "its places are free"
        finally:
            silence.end()
