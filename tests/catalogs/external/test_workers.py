"""With a broker a worker makes every call to an outside system, whatever becomes of the server and of Redis."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from base64 import b64decode, b64encode
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.catalogs.racing import Client
from tests.metalake.test_durability import eventually
from tests.metalake.test_worker import OwnRedis, StartWorker, redis  # noqa: F401 (fixture)
from tests.providers.memory import World
from tests.servers import MetalakeServer, StartMetalake

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.timeout(240)]

CATALOG = "/api/metalakes/demo/catalogs/deep"
SECRET = "kept-from-every-message-0123456789"
PROVIDERS = "memory=tests.providers.memory:MemoryProvider,memory-flat=tests.providers.memory:FlatMemoryProvider"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world.json")


@pytest.fixture
def server(start_metalake: StartMetalake, postgres_url: str, redis: OwnRedis) -> MetalakeServer:  # noqa: F811
    return start_metalake(
        METALAKE_DATABASE_URL=postgres_url,
        METALAKE_BROKER_URL=redis.url,
        METALAKE_WORKERS="1",
        METALAKE_PROVIDERS=PROVIDERS,
    )


@pytest.fixture
def client(server: MetalakeServer, world: World) -> Client:
    made = Client(server.url)
    body = {
        "name": "deep",
        "type": "relational",
        "provider": "memory",
        "properties": {"world": str(world.path), "api-token": SECRET},
    }
    answer = made.send("POST", "/api/metalakes/demo/catalogs", body)
    assert answer.status == 200, answer.body
    return made


def schemas(client: Client) -> set[str]:
    return {one["name"] for one in client.send("GET", f"{CATALOG}/schemas").body["identifiers"]}


def listen(port: int, heard: list[str]) -> None:
    """Every command that Redis gets, as it says them."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"MONITOR\r\n")
        while part := line.recv(65536):
            heard.append(part.decode(errors="replace"))


def answers(client: Client) -> bool:
    """The worker is up."""
    return eventually(lambda: client.send("GET", f"{CATALOG}/schemas").status == 200, 90)


def test_the_worker_makes_the_calls(
    server: MetalakeServer,
    client: Client,
    metalake_worker: StartWorker,
    world: World,
    redis: OwnRedis,  # noqa: F811
) -> None:
    worker = metalake_worker(server)
    assert answers(client)
    heard: list[str] = []
    Thread(target=listen, args=[redis.port, heard], daemon=True).start()
    assert eventually(lambda: bool(heard), 10)
    made = client.send("POST", f"{CATALOG}/schemas", {"name": "sales:emea"})
    assert made.status == 200, made.body
    assert schemas(client) == {"sales"}
    assert client.send("GET", f"{CATALOG}/schemas/none").status == 404
    with world.open() as state:
        assert set(state["pids"]) == {worker.pid}
    said = "\n".join(heard)
    assert "metalake.settle" in said
    assert "metalake.remote_call" in said
    assert SECRET not in said
    assert b64encode(SECRET.encode()).decode()[:20] not in said, "Celery's bodies are base64"
    bodies = [b64decode(found) for found in re.findall(r'"body\\*": \\*"([A-Za-z0-9+/=]+)', said)]
    assert bodies
    assert not any(SECRET.encode() in body for body in bodies)


def test_a_refresh_goes_on_while_the_server_restarts(
    server: MetalakeServer, client: Client, metalake_worker: StartWorker, world: World
) -> None:
    metalake_worker(server)
    assert answers(client)
    for number in range(4):
        world.put_schema(f"s{number}")
        for table in range(6):
            world.put_table(f"s{number}", f"t{table}")
    world.fail("list_tables", *["slow:0.3"] * 8)
    begun = client.send("POST", f"{CATALOG}/refreshes").body["refresh"]
    server.kill()
    server.start()

    def run() -> dict[str, Any]:
        return Client(server.url).send("GET", f"{CATALOG}/refreshes/{begun['id']}").body["refresh"]

    assert eventually(lambda: run()["state"] == "done")
    assert run()["seen"] == 28


def test_a_killed_worker_loses_no_write(
    server: MetalakeServer, client: Client, metalake_worker: StartWorker, world: World
) -> None:
    worker = metalake_worker(server)
    assert answers(client)
    assert client.send("POST", f"{CATALOG}/schemas", {"name": "first"}).status == 200
    world.fail("create_schema", "slow:5")
    pid = os.fork()
    if pid == 0:
        try:
            Client(server.url).send("POST", f"{CATALOG}/schemas", {"name": "second"})
        finally:
            os._exit(0)
    assert eventually(lambda: world.calls("create_schema") >= 2)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    metalake_worker(server)
    os.waitpid(pid, 0)
    started = time.monotonic()

    def is_there() -> bool:
        answer = client.send("POST", f"{CATALOG}/schemas", {"name": "second"})
        return answer.status == 200 or answer.body["code"] == 1004

    assert eventually(is_there, 75)
    assert time.monotonic() - started < 75
    assert schemas(client) == {"first", "second"}
    assert world.schemas() == {"first", "second"}


def test_without_a_worker_or_redis_the_answer_is_clear(
    server: MetalakeServer,
    client: Client,
    redis: OwnRedis,  # noqa: F811
) -> None:
    redis.stop()
    refused = client.send("POST", f"{CATALOG}/schemas", {"name": "sales"})
    assert refused.status == 502
    assert "broker" in refused.body["message"]
    assert client.send("GET", f"{CATALOG}/schemas").status == 502
    assert client.send("GET", "/api/metalakes/demo/catalogs/lake/schemas").status == 200
    redis.start()
