"""How long the server waits for its clients, and what keeps nobody else waiting: slow clients and silent systems."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import orjson
import pytest

from server.http import limits
from tests.catalogs.test_hanging_storage import Silence
from tests.server.http.conftest import require_sound
from tests.server.http.sockets import HEALTH, Line, admin, line, request, require_told
from tests.servers import MetalakeServer, on_a_migrated_store, prepare
from tests.waiting import eventually

HASTY = ("-m", "tests.server.http.hasty")
THREADS = 4
STEP = 2.0  # seconds, as in hasty.py
NATIVE, ICEBERG = "/api/metalakes/demo/catalogs", "/iceberg/demo/v1/lake/namespaces"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetalakeServer]:
    """One process with few threads, and with less patience than others."""
    home = tmp_path_factory.mktemp("hasty")
    few = {"METALAKE_WORKERS": "1", "METALAKE_THREADS": str(THREADS), "METALAKE_LOCK_TIMEOUT": "60"}
    server = on_a_migrated_store(prepare(home, **few))
    server.program = HASTY
    server.start()
    yield server
    server.kill()


# Slow clients


def send_a_byte_each_second(lines: list[Line], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for each in lines:
            each.send(b"x")
        time.sleep(1)


def send_slowly(client: Line) -> None:
    """More slowly than anybody needs to, and faster than is asked: for longer than two steps."""
    client.send(request("POST", "/api/metalakes", "Content-Length: 9000"))
    for _ in range(12):
        client.send(b" " * 750)
        time.sleep(STEP / 5)


def test_slow_clients_are_told_or_dropped_and_keep_nobody_waiting(hasty: MetalakeServer) -> None:
    idle = [Line(hasty) for _ in range(200)]
    used = [Line(hasty) for _ in range(10)]
    for each in used:
        assert each.ask(HEALTH).status == 200
    heads = [Line(hasty) for _ in range(50)]
    stopped = [Line(hasty) for _ in range(10)]
    trickling = [Line(hasty) for _ in range(20)]
    deaf = [Line(hasty, window=4096) for _ in range(10)]
    for number, each in enumerate(heads):
        each.send(HEALTH[: 5 + number % (len(HEALTH) - 6)])
    for each in stopped:
        each.send(request("POST", "/api/metalakes", "Content-Length: 5000") + b"{")
    for each in trickling:
        each.send(request("POST", "/api/metalakes", "Content-Length: 5000"))
    for each in deaf:
        each.send(request("GET", "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js") * 20)
    slow = Line(hasty)
    with ThreadPoolExecutor(2) as clients:
        sending = [clients.submit(send_a_byte_each_second, trickling, 2.5 * STEP), clients.submit(send_slowly, slow)]
        began = time.monotonic()
        while time.monotonic() < began + 2 * STEP:
            with line(hasty, timeout=5) as client:
                assert client.ask(HEALTH).status == 200
                assert client.ask(request("GET", f"{NATIVE}/lake", admin(hasty))).status == 200
                assert client.ask(request("GET", ICEBERG, admin(hasty))).status == 200
            time.sleep(0.1)
        for one in sending:
            one.result()
    answer = slow.answer()
    assert answer and answer.status == 401, "a body that comes as fast as is asked"
    for each in (*heads, *stopped, *trickling):
        late = each.answer()
        assert late and (late.status, late.closes) == (408, True)
        require_told(late)
        assert each.is_closed()
    for each in (*idle, *used):
        assert each.is_closed()
    with line(hasty) as client:
        whole = len(
            client.ask(request("GET", "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js")).body
        )
    for each in deaf:
        each.socket.settimeout(5)
        assert all_of(each) < 20 * whole, "it was not dropped"
    for each in (*idle, *used, *heads, *stopped, *trickling, *deaf, slow):
        each.close()
    require_sound(hasty)


def all_of(client: Line) -> int:
    """How many bytes come until the connection ends."""
    came = 0
    try:
        while some := client.socket.recv(1 << 20):
            came += len(some)
    except ConnectionResetError:
        pass
    return came


def test_who_sends_without_end_after_a_refusal_is_cut_off(hasty: MetalakeServer) -> None:
    with line(hasty) as client:
        client.send(b"nonsense\r\n\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while True:
                client.socket.sendall(b"x" * 65536)
                time.sleep(0.01)
    require_sound(hasty)


# Silent systems


@pytest.fixture
def silence() -> Iterator[Silence]:
    it = Silence()
    yield it
    it.end()


def made(client: Line, server: MetalakeServer, path: str, body: object) -> None:
    answer = client.ask(request("POST", path, admin(server), JSON, body=orjson.dumps(body)))
    assert answer.status == 200, answer


def ask_for(number: int, server: MetalakeServer, sent: bytes) -> list[Line]:
    lines = [Line(server, 90) for _ in range(number)]
    for each in lines:
        each.send(sent)
    return lines


def has_answered(client: Line) -> bool:
    client.socket.settimeout(0.01)
    try:
        return not client.is_closed()
    except TimeoutError:
        return False
    finally:
        client.socket.settimeout(90)


@contextmanager
def locked(server: MetalakeServer) -> Iterator[None]:
    """Somebody else writes, and does not end."""
    with closing(sqlite3.connect(server.home / "metalake.sqlite3", timeout=20, isolation_level=None)) as store:
        store.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            store.execute("ROLLBACK")


def test_reads_of_our_own_store_wait_for_nobody_who_waits(hasty: MetalakeServer, silence: Silence) -> None:
    """Every thread that may block does, and the line before them is full: reads know nothing of it."""
    server, credential = hasty, admin(hasty)
    own = ["/health", "/configs", NATIVE, f"{NATIVE}/lake", f"{NATIVE}/lake/schemas/s/tables/t", f"{NATIVE}/silent1"]
    own += [ICEBERG, "/iceberg/demo/v1/config?warehouse=lake", f"{ICEBERG}/s/tables", f"{ICEBERG}/s/tables/t"]
    table = {"name": "t", "columns": [{"name": "c", "type": "long"}]}
    uris = {"metastore.uris": silence.url.replace("http", "thrift")}
    with line(server, timeout=30) as client:
        made(client, server, f"{NATIVE}/lake/schemas", {"name": "s"})
        made(client, server, f"{NATIVE}/lake/schemas/s/tables", table)
        for name in ("silent1", "silent2"):
            made(client, server, NATIVE, {"name": name, "type": "relational", "provider": "hive", "properties": uris})
        for target in own:
            assert client.ask(request("GET", target, credential)).status == 200, target

    needs = [request("GET", f"{NATIVE}/silent{number}/schemas", credential) for number in (1, 2)]
    write = request("POST", f"{NATIVE}/lake/schemas", credential, JSON, body=b'{"name": "late"}')
    page = request("GET", "/login")
    with locked(server):
        writers = ask_for(THREADS // 2, server, write)
        waiting = [each for sent in needs for each in ask_for(THREADS // 2, server, sent)]
        assert eventually(lambda: bool(silence.taken), 20)
        pages = ask_for(limits.MOST_OTHERS + 2 * THREADS, server, page)
        assert eventually(lambda: any(has_answered(each) for each in pages), 20), "there is no end of the line"
        assert not all(has_answered(each) for each in pages), "a thread is free"
        with line(server, timeout=10) as client:
            for target in own * 3:
                assert client.ask(request("GET", target, credential)).status == 200, target
            for sent, method in ((needs[0], b"GET"), (write, b"POST"), (page, b"GET"), (page, b"HEAD")):
                spared = client.ask(sent.replace(b"GET", method), method)
                assert (spared.status, spared.headers["retry-after"]) == (503, "1")
                if method != b"HEAD":
                    require_told(spared)
                assert client.ask(HEALTH).status == 200
        assert not any(has_answered(each) for each in writers)
        silence.end()
    for each in pages:
        assert (each.answer() or spared).status in (200, 503)
    for each in waiting:
        answer = each.answer()
        assert answer and 502 <= answer.status <= 504, answer
    statuses = sorted(answer.status for each in writers if (answer := each.answer()))
    assert statuses[0] == 200 and len(statuses) == len(writers), statuses
    for each in (*pages, *waiting, *writers):
        each.close()
