"""A server, a worker and Redis, each a process, and catalogs of outside systems in memory that they serve."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import Celery
from redis import Redis

from tests.catalogs.racing import Answer, Client
from tests.databases import OwnRedis, migrated_database
from tests.names import own_name
from tests.parts import needs
from tests.postgres import PostgresServer
from tests.providers.world import World
from tests.servers import REPOSITORY, MetalakeServer, on_a_migrated_store, prepare
from tests.waiting import eventually

CATALOGS = "/api/metalakes/demo/catalogs"
PROVIDERS = ",".join(
    f"{name}=tests.providers.{class_}"
    for name, class_ in (
        ("memory", "memory:MemoryProvider"),
        ("memory-flat", "flat:FlatMemoryProvider"),
        ("memory-views", "viewing:ViewingProvider"),
    )
)
THREADS = 8  # of the worker
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


@dataclass
class Deployment:
    """All of it, with one worker; the tests of a file share it, each on catalogs of its own."""

    folder: Path
    redis: OwnRedis
    server: MetalakeServer
    worker: subprocess.Popen[bytes] | None = None
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(32))

    def start_worker(self) -> None:
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [sys.executable, "manage.py", "worker", "--concurrency", str(THREADS)],
                cwd=REPOSITORY,
                env=self.server.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal_worker(self, number: signal.Signals) -> None:
        assert self.worker is not None
        os.killpg(self.worker.pid, number)
        if number == signal.SIGKILL:
            self.worker.wait()
            self.worker = None

    @contextmanager
    def paused_worker(self) -> Iterator[None]:
        """What is sent meanwhile stays in Redis."""
        self.signal_worker(signal.SIGSTOP)
        try:
            assert eventually(
                lambda: not any("b" in one["flags"] for one in self.keys.client_list() if one["cmd"] == "brpop")
            )
            yield
        finally:
            self.signal_worker(signal.SIGCONT)

    def heal(self) -> None:
        """Redis and a worker run, whatever a test did."""
        if self.redis.process.poll() is not None:
            self.redis.start()
        self.redis.process.send_signal(signal.SIGCONT)
        self.keys.config_set("maxmemory", 0)
        self.keys.config_set("maxmemory-policy", "noeviction")
        if self.worker is None or self.worker.poll() is not None:
            self.start_worker()
        self.signal_worker(signal.SIGCONT)

    def worker_said(self) -> str:
        return (self.folder / "worker.log").read_text(errors="replace")

    def catalog(self, provider: str = "memory", **properties: str) -> Served:
        """A new catalog of an empty world; `cache_ttl` is cache-ttl."""
        name = own_name("c")
        world = World(self.folder / f"{name}.json")
        given = {"world": str(world.path)} | {key.replace("_", "-"): value for key, value in properties.items()}
        body = {"name": name, "type": "relational", "provider": provider, "properties": given}
        answer = Client(self.server.url).send("POST", CATALOGS, body)
        assert answer.status == 200, answer.body
        return Served(self, name, world)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.environment["METALAKE_DATABASE_URL"]) as connection:
            return connection.execute(sql, values).fetchall()

    def send(self, task: str, *arguments: Any, **options: Any) -> None:
        """A message to the worker."""
        with Celery(broker=self.redis.url) as sender:
            sender.send_task(task, args=arguments, **options)

    @property
    def keys(self) -> Redis:
        return Redis(port=self.redis.port)

    def drained(self) -> None:
        """Wait until the worker has done all that it was told of."""

        def is_idle() -> bool:
            if self.queued() or self.keys.hlen("unacked"):
                return False
            with Celery(broker=self.redis.url) as asking:
                return list((asking.control.inspect().active() or {}).values()) == [[]]

        assert eventually(is_idle)

    def queued(self, task: str = "") -> list[bytes]:
        """Messages that no worker has taken, all or those of a task."""
        waiting: list[Any] = self.keys.lrange("celery", 0, -1)
        return [message for message in waiting if task.encode() in message]


@dataclass
class Served:
    """A catalog, and the world that it shows."""

    on: Deployment
    name: str
    world: World

    def ask(self, method: str, below: str, body: Any = None, user: str = "admin") -> Answer:
        return Client(self.on.server.url, user).send(method, f"{CATALOGS}/{self.name}{below}", body)

    def later(self, method: str, below: str, body: Any = None) -> Future[Answer]:
        return self.on.pool.submit(self.ask, method, below, body)

    def make(self, schema: str) -> Answer:
        return self.ask("POST", "/schemas", {"name": schema})

    def make_later(self, schema: str) -> Future[Answer]:
        return self.later("POST", "/schemas", {"name": schema})

    def shown(self) -> set[str]:
        """The schemas that a list shows; it asks the outside system unless the catalog has a cache-ttl."""
        answer = self.ask("GET", "/schemas")
        assert answer.status == 200, answer.body
        return {one["name"] for one in answer.body["identifiers"]}

    def works(self, seconds: float = 90) -> bool:
        """Its outside system is asked by a worker, sooner or later."""
        return eventually(lambda: self.ask("GET", "/schemas?refresh=true").status == 200, seconds)

    def refresh(self) -> str:
        """The id of a walk that has begun."""
        answer = self.ask("POST", "/refreshes")
        assert answer.status == 200, answer.body
        return str(answer.body["refresh"]["id"])

    def run(self, walk: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/refreshes/{walk}").body["refresh"]
        return found

    def intents(self) -> list[tuple[int, str, int]]:
        """Id, state and fence of its writes, the oldest first."""
        return self.on.rows(
            "SELECT i.id, i.state, i.fence FROM catalogs_intent i JOIN metalake_securable c ON c.id = i.catalog_id"
            " WHERE c.name = %s ORDER BY i.id",
            self.name,
        )

    def states(self) -> list[str]:
        return [state for _, state, _ in self.intents()]

    def is_settled(self) -> bool:
        return not {"open", "undoing"} & set(self.states())


@contextmanager
def running(folder: Path, database_url: str, **environment: str) -> Iterator[Deployment]:
    needs("redis")
    redis = OwnRedis(folder)
    server = on_a_migrated_store(
        prepare(
            folder / "server",
            METALAKE_DATABASE_URL=database_url,
            METALAKE_BROKER_URL=redis.url,
            METALAKE_WORKERS="1",
            METALAKE_PROVIDERS=PROVIDERS,
            **environment,
        )
    )
    deployed = Deployment(folder, redis, server)
    try:
        server.start()
        deployed.start_worker()
        yield deployed
    finally:
        if deployed.worker is not None:
            deployed.signal_worker(signal.SIGKILL)
        server.kill()
        redis.stop()
        deployed.pool.shutdown(wait=False, cancel_futures=True)


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Deployment]:
    """With hasty settings."""
    hasty = {"DJANGO_SETTINGS_MODULE": "tests.outside.hasty"}
    with running(tmp_path_factory.mktemp("deployed"), migrated_database(postgres), **hasty) as started:
        assert started.catalog().works()
        yield started


@pytest.fixture
def deployed(deployment: Deployment) -> Iterator[Deployment]:
    """A test leaves it as it found it, or a reason to look into."""
    yield deployment
    deployment.heal()
