"""Several nodes on one database: started at once, before it is there, before it is prepared, and with older code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests import processes
from tests.catalogs.racing import NATIVE, Client
from tests.databases import OwnRedis
from tests.names import own_name
from tests.ports import free_port
from tests.postgres import PostgresServer
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake, prepare
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FROM_THE_FUTURE = "INSERT INTO django_migrations (app, name, applied) VALUES ('catalogs', '9999_future', now())"
COMMANDS = (["serve"], ["worker"], ["migrate"], ["set_password", "admin"])


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database that nobody has made yet."""
    name = own_name("metalake")
    yield postgres.url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def run(server: MetalakeServer, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=REPOSITORY,
        env=server.environment,
        input="another correct horse\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.redis
def test_nodes_started_at_once_wait_for_the_database_and_for_each_other(
    postgres: PostgresServer, database: str, redis: OwnRedis, tmp_path: Path
) -> None:
    shared = {
        "METALAKE_DATABASE_URL": database,
        "METALAKE_BROKER_URL": redis.url,
        "METALAKE_WORKERS": "1",
        "METALAKE_WAREHOUSE": str(tmp_path / "warehouse"),
        "METALAKE_SECRET_KEY": "the same for all",
    }
    nodes = [prepare(tmp_path / name, **shared) for name in ("one", "two")]
    works = prepare(tmp_path / "worker", **shared)
    log = works.home / "worker.log"
    command = [sys.executable, "manage.py", "worker"]
    worker = processes.start("the worker", command, log, cwd=REPOSITORY, env=works.environment)
    try:
        with ThreadPoolExecutor(2) as pool:
            started = [pool.submit(node.start, 120) for node in nodes]
            said = [*(node.log for node in nodes), log]
            assert eventually(lambda: all(one.exists() and "for the database: " in one.read_text() for one in said))
            with psycopg.connect(postgres.url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {database.rpartition('/')[2]}")
            for start in started:
                start.result()
        assert eventually(lambda: "The worker drains the outbox" in log.read_text())
        assert "for a server to prepare the database" in log.read_text()
        for one in said:
            assert "Traceback" not in one.read_text(), one.read_text()
        assert sum("Made the metalake demo" in node.log.read_text() for node in nodes) == 1
        for node in nodes:
            assert Client(node.url).send("GET", NATIVE).status == 200
    finally:
        processes.kill(worker)
        for node in nodes:
            node.kill()


def test_code_that_is_older_than_its_store_does_not_start_and_a_running_one_goes_on(
    start_metalake: StartMetalake, migrated_postgres_url: str, tmp_path: Path
) -> None:
    node = start_metalake(METALAKE_DATABASE_URL=migrated_postgres_url, METALAKE_WORKERS="1")
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(FROM_THE_FUTURE)
    node.environment |= {"METALAKE_BROKER_URL": "redis://127.0.0.1:1/0", "METALAKE_HOME": str(tmp_path)}
    node.environment["METALAKE_PORT"] = str(free_port())
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda command: run(node, *command), COMMANDS):
            assert done.returncode == 1, done.stdout
            assert "This code is older than its store" in done.stdout
            assert "catalogs.9999_future" in done.stdout
            assert "Traceback" not in done.stdout, done.stdout
    assert Client(node.url).send("POST", f"{NATIVE}/schemas", {"name": "still"}).status == 200


def test_a_worker_that_no_server_prepares_a_database_for_ends_in_a_sentence(postgres_url: str, tmp_path: Path) -> None:
    given = {"METALAKE_BROKER_URL": "redis://127.0.0.1:1/0", "METALAKE_DATABASE_WAIT": "1"}
    done = run(prepare(tmp_path, METALAKE_DATABASE_URL=postgres_url, **given), "worker")
    assert done.returncode == 1
    assert "The database lacks migrations of this version: start a server" in done.stdout
    assert "Traceback" not in done.stdout, done.stdout
