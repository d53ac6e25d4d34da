"""Fixtures for the databases beside a test: PostgreSQL and Redis."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import processes
from tests.jars import only_one
from tests.parts import needs
from tests.ports import free_port
from tests.postgres import PostgresServer, running_postgres
from tests.servers import made_once, migrate, prepare

TEMPLATE = "metalake_migrated"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; `postgres.create_database()` gives the URL of an empty database."""
    if given := os.environ.get("METALAKE_TEST_POSTGRES"):  # make test starts one for all
        yield PostgresServer(given)
        return
    needs("postgres")
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database of the test's own."""
    yield from _until_the_end(postgres, postgres.create_database())


@pytest.fixture
def migrated_postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The same with a migrated, empty store in it."""
    yield from _until_the_end(postgres, migrated_database(postgres))


def _until_the_end(postgres: PostgresServer, url: str) -> Iterator[str]:
    yield url
    postgres.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


def migrated_database(postgres: PostgresServer) -> str:
    """The URL of a database with a migrated, empty store: a copy, which saves 2 s of a server's start."""
    return postgres.create_database(migrated_template(postgres))


def migrated_template(postgres: PostgresServer) -> str:
    """The name of the database that is copied, made when it is first asked for; nobody may be connected to it."""
    folder = made_once()
    with only_one(folder / "template.lock"):
        if not postgres.execute(f"SELECT 1 FROM pg_database WHERE datname = '{TEMPLATE}'"):
            url = postgres.create_database()
            migrate(prepare(folder / "migrating-postgres", METALAKE_DATABASE_URL=url))
            postgres.execute(f"ALTER DATABASE {url.rpartition('/')[2]} RENAME TO {TEMPLATE}")
    return TEMPLATE


class OwnRedis:
    """A Redis that keeps nothing on disk; it runs at once, and may be stopped and started again on its port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        log = self.folder / "redis.log"
        self.process = processes.start("redis-server", command, log, self.is_ready, cwd=self.folder)

    def is_ready(self) -> bool:
        from redis import Redis
        from redis.exceptions import ConnectionError as NotYet

        with Redis(port=self.port) as client:
            try:
                return bool(client.ping())
            except NotYet:
                return False

    def stop(self) -> None:
        processes.kill(self.process)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis server that keeps nothing on disk."""
    needs("redis")
    own = OwnRedis(tmp_path_factory.mktemp("redis"))
    yield own.url
    own.stop()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[OwnRedis]:
    """A Redis of the test's own, which it may stop."""
    needs("redis")
    (folder := tmp_path / "redis").mkdir()
    own = OwnRedis(folder)
    yield own
    own.stop()
