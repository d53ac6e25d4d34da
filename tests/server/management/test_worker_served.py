"""With a broker a worker drains the outbox: a kill -9 of either loses nothing, and no request needs Redis."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from tests import processes
from tests.catalogs.racing import ICEBERG, NATIVE, Client
from tests.databases import OwnRedis, migrated_database
from tests.metalake.test_durability import events, files_below, has_happened, make_table, waits_for_nothing
from tests.parts import needs
from tests.postgres import PostgresServer
from tests.servers import MetalakeServer, running_metalake
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.timeout(240)]

StartWorker = Callable[[MetalakeServer], "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "events"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRedis]:
    """One for the file; a test that stops it starts it again."""
    needs("redis")
    own = OwnRedis(tmp_path_factory.mktemp("redis"))
    yield own
    own.stop()


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, redis: OwnRedis, log: Path
) -> Iterator[MetalakeServer]:
    """One for the file, on schemas of each test's own; a test has a worker of its own, and leaves nothing to do."""
    with running_metalake(
        tmp_path_factory.mktemp("metalake"),
        METALAKE_DATABASE_URL=migrated_database(postgres),
        METALAKE_BROKER_URL=redis.url,
        METALAKE_EVENT_LOG=str(log),
    ) as server:
        yield server
        server.kill()  # asked to stop it waits for idle clients


@pytest.fixture
def server(started: MetalakeServer, redis: OwnRedis) -> MetalakeServer:
    """It and Redis run, whatever the test before did; Redis has forgotten what that told the worker."""
    if redis.process.poll() is not None:
        redis.start()
    Redis(port=redis.port).flushall()
    if started.process is None:
        started.start()
    return started


def hasty(server: MetalakeServer) -> MetalakeServer:
    """Its environment for a worker whose rounds are short."""
    return with_settings(server, "tests.outside.hasty")


def with_settings(server: MetalakeServer, module: str) -> MetalakeServer:
    return replace(server, environment=server.environment | {"DJANGO_SETTINGS_MODULE": module})


def purge(client: Client, schema: str) -> Path:
    """Drop a table with its files; its folder."""
    folder = make_table(client, schema, "t")
    assert client.send("DELETE", f"{ICEBERG}/namespaces/{schema}/tables/t?purgeRequested=true").status == 204
    return folder


def test_the_worker_drains_and_is_woken_by_commits(
    server: MetalakeServer, metalake_worker: StartWorker, log: Path
) -> None:
    client = Client(server.url)
    folder = purge(client, "before")
    time.sleep(1.5)
    assert files_below(folder), "the server drained although it has a broker"
    worker = metalake_worker(server)
    assert eventually(lambda: not files_below(folder))
    assert waits_for_nothing(server)
    processes.kill(worker)
    metalake_worker(with_settings(server, "tests.metalake.roundless"))
    for number in range(5):
        assert client.send("POST", f"{NATIVE}/schemas", {"name": f"woken{number}"}).status == 200
        assert eventually(partial(has_happened, log, ("schema.created", f"lake.woken{number}")))


def test_kills_lose_nothing(server: MetalakeServer, metalake_worker: StartWorker, log: Path) -> None:
    worker = metalake_worker(hasty(server))
    folders = []
    for number in range(2):
        folders.append(purge(Client(server.url), f"killed{number}"))
        server.kill()
        processes.kill(worker)
        worker = metalake_worker(hasty(server))
        server.start()
    wanted = {("table.dropped", f"lake.killed{number}.t") for number in range(2)}
    assert eventually(lambda: wanted <= set(events(log)))
    assert eventually(lambda: not any(map(files_below, folders)))
    assert waits_for_nothing(server)


def test_requests_do_not_need_redis(
    server: MetalakeServer, metalake_worker: StartWorker, redis: OwnRedis, log: Path
) -> None:
    metalake_worker(hasty(server))
    client = Client(server.url)
    assert client.send("POST", f"{NATIVE}/schemas", {"name": "there"}).status == 200
    assert eventually(lambda: ("schema.created", "lake.there") in events(log))
    redis.stop()
    started = time.monotonic()
    folder = purge(client, "away")
    for number in range(5):
        assert client.send("POST", f"{NATIVE}/schemas", {"name": f"away:{number}"}).status == 200
    assert time.monotonic() - started < 30
    assert files_below(folder)
    redis.start()
    assert eventually(lambda: ("schema.created", "lake.away:4") in events(log))
    assert eventually(lambda: not files_below(folder))
    for number in range(3):  # once more, while the worker is busy
        assert client.send("POST", f"{NATIVE}/schemas", {"name": f"busy{number}"}).status == 200
        time.sleep(number * 0.02)
        redis.stop()
        assert client.send("POST", f"{NATIVE}/schemas", {"name": f"late{number}"}).status == 200
        redis.start()
        wanted = ("schema.created", f"lake.late{number}")
        assert eventually(partial(has_happened, log, wanted))
    assert waits_for_nothing(server)
    assert Redis(port=redis.port).llen("celery") == 0, "no wake-up piles up"


def test_a_worker_whose_settings_differ_leaves_the_work_to_others(
    server: MetalakeServer, metalake_worker: StartWorker, log: Path, tmp_path: Path
) -> None:
    before = events(log)
    quick = hasty(server)
    environment = quick.environment | {"METALAKE_HOME": str(tmp_path / "another"), "METALAKE_EVENT_LOG": ""}
    other = replace(server, home=tmp_path, environment=environment)
    differs = metalake_worker(other)
    folder = purge(Client(server.url), "left")
    with psycopg.connect(server.environment["METALAKE_DATABASE_URL"], autocommit=True) as store:

        def waiting(topic: str) -> list[tuple[int, str]]:
            found = store.execute("SELECT attempts, last_error FROM metalake_outbox WHERE topic = %s", [topic])
            return found.fetchall()

        assert eventually(lambda: any(attempts > 1 for attempts, _ in waiting("table.purge")))
        assert ["is not allowed here" in reason for _, reason in waiting("table.purge")] == [True]
        assert waiting("event") and not any(attempts for attempts, _ in waiting("event"))
    assert len(files_below(folder)) == 3
    assert events(log) == before
    told = (tmp_path / "worker.log").read_text()
    assert "leaves events to others: METALAKE_EVENT_LOG is not set here" in told
    assert f"leaves purges to others: The folder {server.home}/warehouse" in told
    assert eventually(lambda: 'metalake_differing_processes{work="events"} 1.0' in metrics(server))
    assert 'metalake_differing_processes{work="purges"} 1.0' in metrics(server)
    assert 'metalake_outbox_failing{topic="table.purge"} 1.0' in metrics(server)
    metalake_worker(quick)
    assert eventually(lambda: not files_below(folder)), "whose settings are right does it, beside the other"
    assert waits_for_nothing(server)
    assert {("table.dropped", "lake.left.t"), ("table.purged", "lake.left.t")} <= set(events(log))
    assert differs.poll() is None


def metrics(server: MetalakeServer) -> str:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        return str(answer.read(), "utf-8")
