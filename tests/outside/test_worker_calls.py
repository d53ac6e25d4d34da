"""With a broker a worker makes every call to an outside system, whatever becomes of the server and of itself."""

from __future__ import annotations

import re
import signal
import socket
from base64 import b64decode, b64encode
from threading import Thread

import pytest

from tests.outside.deployment import Deployment, Served
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.server, pytest.mark.timeout(240)]

SECRET = "kept-from-every-message-0123456789"


@pytest.fixture
def live(deployed: Deployment) -> Served:
    return deployed.catalog(api_token=SECRET)


def fill(served: Served, schemas: int = 4, tables: int = 6) -> int:
    """How many objects there are."""
    for number in range(schemas):
        served.world.put_schema(f"s{number}")
        for table in range(tables):
            served.world.put_table(f"s{number}", f"t{table}")
    return schemas * (tables + 1)


def listen(port: int, heard: list[str]) -> None:
    """Every command that Redis gets, as it says them."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"MONITOR\r\n")
        while part := line.recv(65536):
            heard.append(part.decode(errors="replace"))


def test_the_worker_makes_the_calls(live: Served) -> None:
    heard: list[str] = []
    Thread(target=listen, args=[live.on.redis.port, heard], daemon=True).start()
    assert eventually(lambda: bool(heard))
    assert live.make("sales:emea").status == 200
    assert live.shown() == {"sales"}
    assert live.ask("GET", "/schemas/none").status == 404
    with live.world.open() as state:
        assert live.on.worker is not None and set(state["pids"]) == {live.on.worker.pid}
    said = "\n".join(heard)
    assert "metalake.settle" in said
    assert "metalake.remote_call" in said
    assert SECRET not in said
    assert b64encode(SECRET.encode()).decode()[:20] not in said, "Celery's bodies are base64"
    bodies = [b64decode(found) for found in re.findall(r'"body\\*": \\*"([A-Za-z0-9+/=]+)', said)]
    assert bodies
    assert not any(SECRET.encode() in body for body in bodies)


def test_a_call_may_take_its_time(live: Served) -> None:
    live.world.fail("list_schemas", "slow:4")  # longer than one look for a reply, and than Redis may be silent
    assert live.ask("GET", "/schemas").status == 200


def test_a_refresh_goes_on_while_the_server_restarts(live: Served) -> None:
    there = fill(live)
    live.world.fail("list_tables", *["slow:0.3"] * 8)
    begun = live.refresh()
    live.on.server.kill()
    live.on.server.start()
    assert eventually(lambda: live.run(begun)["state"] == "done")
    assert live.run(begun)["seen"] == there


def test_a_killed_worker_loses_neither_a_write_nor_a_refresh(live: Served) -> None:
    """What it had in hand ends all the same, in the hands of another."""
    there = fill(walked := live.on.catalog())
    walked.world.fail("list_tables", "", "", "", "slow:5")
    begun = walked.refresh()
    assert live.make("first").status == 200
    live.world.fail("create_schema", "slow:5")
    write = live.make_later("second")
    assert eventually(lambda: live.world.calls("create_schema") == 2 and walked.world.calls("list_tables") == 4)
    live.on.signal_worker(signal.SIGKILL)
    live.on.start_worker()
    assert write.result(60).status == 504, write.result()
    assert eventually(lambda: live.is_settled())
    assert live.states() == ["committed", "aborted"]
    assert live.works() and live.shown() == live.world.schemas() == {"first"}
    assert live.make("second").status == 200
    assert eventually(lambda: walked.run(begun)["state"] == "done")
    assert walked.run(begun)["seen"] == there


def test_more_walks_than_threads(deployed: Deployment) -> None:
    """A walk that waited for another thread of its worker would wait in vain."""
    walked = [deployed.catalog() for _ in range(10)]
    there = {fill(each, schemas=2) for each in walked}
    for each in walked:
        each.world.fail("list_schemas", "slow:1")
        each.world.fail("list_tables", "slow:1")
    begun = [each.refresh() for each in walked]
    ended = "done", "failed"
    assert eventually(lambda: all(each.run(run)["state"] in ended for each, run in zip(walked, begun, strict=True)))
    told = [each.run(run) for each, run in zip(walked, begun, strict=True)]
    assert {run.get("error", "") for run in told} == {""}
    assert {run["seen"] for run in told} == there
