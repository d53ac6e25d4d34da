"""The operator's page (docs/operations.md) walked as it is written: nodes, worker, backup, restore, upgrade."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import processes
from tests.catalogs.racing import ICEBERG, NATIVE, Client
from tests.databases import OwnRedis
from tests.metalake.operating import Balancer, Load, code_of, make_load_tables, recipes, run_recipe, write_environment
from tests.postgres import PostgresServer
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake, prepare
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

# The last state whose nodes and workers knew nothing of one another's settings.
BEFORE = "7984d82d9a2fd3b2a8d401ad0b33820320ab9830"


@contextmanager
def running_worker(environment: dict[str, str], log: Path, code: Path = REPOSITORY) -> Iterator[None]:
    command = [sys.executable, "manage.py", "worker"]
    worker = processes.start("the worker", command, log, cwd=code, env=environment)
    try:
        yield
    finally:
        processes.kill(worker)


def are_gone(places: list[str]) -> bool:
    return not any(path.is_file() for place in places for path in Path(unquote(urlsplit(place).path)).rglob("*"))


def test_two_nodes_are_backed_up_lost_and_restored(tmp_path: Path, postgres: PostgresServer, redis: OwnRedis) -> None:
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "secrets.keys").write_text(f"first {'A' * 43}=\n")
    environment = {
        "METALAKE_DATABASE_URL": postgres.create_database(),
        "METALAKE_BROKER_URL": redis.url,
        "METALAKE_WAREHOUSE": str(tmp_path / "lake"),
        "METALAKE_SECRET_KEY": "k" * 50,
        "METALAKE_SECRET_KEYS_FILE": str(tmp_path / "ring" / "secrets.keys"),
    }
    write_environment(tmp_path, environment)
    backup, restore, *_ = recipes()

    with ExitStack() as stack:
        nodes = started_together(stack, tmp_path, environment)
        worker = prepare(tmp_path / "worker", **environment)
        stack.enter_context(running_worker(worker.environment, tmp_path / "worker.log"))
        secret = {"s3.access-key-id": "AK", "s3.secret-access-key": "hidden-in-the-ring"}
        body = {"name": "sealed", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": secret}
        assert Client(nodes[0].url).send("POST", NATIVE.rpartition("/")[0], body).status == 200
        balancer = Balancer(list(nodes))
        load = Load(balancer)
        make_load_tables(nodes[0], load)
        with load:
            load.wait_for_more(10)
            before = dict(load.commits)
            run_recipe(backup, tmp_path, {})
            load.wait_for_more(5)
        assert load.failed == []
        assert eventually(lambda: are_gone(load.purged), 60)

    lose(tmp_path / "lake", tmp_path)
    lose(tmp_path / "ring" / "secrets.keys", tmp_path)
    environment["METALAKE_DATABASE_URL"] = postgres.create_database()
    (tmp_path / "metalake.env").write_text("".join(f"{name}={value}\n" for name, value in environment.items()))
    said = run_recipe(restore, tmp_path, {"METALAKE_HOME": str(tmp_path / "one")})
    assert "Every table and view can be read." in said

    with ExitStack() as stack:
        nodes = started_together(stack, tmp_path, environment)
        load.commits = before
        for node in nodes:
            assert load.lost(node) == []
        assert load.client(nodes[1]).send("GET", NATIVE.removesuffix("lake") + "sealed").status == 200
        assert load.client(nodes[0]).send("DELETE", f"{ICEBERG}/namespaces/load/tables/t0").status == 204


def test_an_upgrade_under_load_refuses_nobody(tmp_path: Path, postgres: PostgresServer, redis: OwnRedis) -> None:
    old = code_of(BEFORE, tmp_path / "old")
    if old is None:
        pytest.skip(f"needs the history of the code, as far as {BEFORE}")
    environment = {
        "METALAKE_DATABASE_URL": postgres.create_database(),
        "METALAKE_BROKER_URL": redis.url,
        "METALAKE_HOME": str(tmp_path / "home"),
    }
    with ExitStack() as stack:
        nodes = [prepare(tmp_path / name, **environment) for name in ("one", "two")]
        for node in nodes:  # one by one, as the code of before wants it
            start(node, old)
            stack.callback(node.kill)
        home = tmp_path / "home"  # which the code of now wants for one of them alone
        nodes[1].environment |= {
            "METALAKE_HOME": str(tmp_path / "two"),
            "METALAKE_WAREHOUSE": str(home / "warehouse"),
            "METALAKE_SECRET_KEY": (home / "secret_key").read_text(),
        }
        workers = ExitStack()
        workers.enter_context(running_worker(nodes[0].environment, tmp_path / "old-worker.log", old))
        stack.callback(workers.close)
        balancer = Balancer(list(nodes))
        load = Load(balancer)
        make_load_tables(nodes[0], load)
        with load:
            load.wait_for_more(10)
            for node in nodes:
                balancer.take_out(node)
                node.stop()
                node.start()
                balancer.put_in(node)
                load.wait_for_more(10)
            workers.close()
            stack.enter_context(running_worker(nodes[0].environment, tmp_path / "worker.log"))
            load.wait_for_more(10)
        assert load.failed == []
        assert load.lost(nodes[1]) == []
        assert eventually(lambda: are_gone(load.purged), 60)

    with ExitStack() as stack:  # and back again
        for app in ("metalake", "authz", "catalogs"):
            last = max(path.stem for path in (old / app / "migrations").glob("0*.py"))
            command = [sys.executable, "manage.py", "migrate", app, last]
            subprocess.run(command, cwd=REPOSITORY, env=nodes[0].environment, check=True, capture_output=True)
        stack.callback(nodes[0].kill)
        start(nodes[0], old)
        assert load.lost(nodes[0]) == []


def test_one_server_is_backed_up_and_restored_at_another_path(start_metalake: StartMetalake, tmp_path: Path) -> None:
    server = start_metalake(METALAKE_HOME=str(tmp_path / "home"))
    load = Load(Balancer([server]), clients=1)
    make_load_tables(server, load)
    write_environment(tmp_path, {})
    *_, backup, restore = recipes()
    with load:
        load.wait_for_more(3)
        before = dict(load.commits)
        run_recipe(backup, tmp_path, {"METALAKE_HOME": str(tmp_path / "home")})
    server.kill()

    lose(tmp_path / "home", tmp_path)
    run_recipe(restore, tmp_path, {"METALAKE_HOME": str(tmp_path / "elsewhere")})
    server.environment["METALAKE_HOME"] = str(tmp_path / "elsewhere")
    server.start()
    assert "which does not exist: restore the folder" in server.log.read_text()
    table = f"{ICEBERG}/namespaces/load/tables/t0"
    missing = load.client(server).send("GET", table)
    assert (missing.status, "metadata.json" in missing.body["error"]["message"]) == (404, True)
    (tmp_path / "home").symlink_to(tmp_path / "elsewhere")
    load.commits = before
    assert load.lost(server) == []
    update = {"action": "set-properties", "updates": {"restored": "yes"}}
    made = load.client(server).send("POST", table, {"requirements": [], "updates": [update]})
    file = Path(unquote(urlsplit(made.body["metadata-location"]).path))
    assert file.resolve().is_relative_to(tmp_path / "elsewhere")
    assert load.client(server).send("DELETE", f"{table}?purgeRequested=true").status == 204
    assert eventually(lambda: not file.exists())


def started_together(stack: ExitStack, folder: Path, environment: dict[str, str]) -> list[MetalakeServer]:
    """Two nodes with data folders of their own, started at once."""
    nodes = [prepare(folder / name, **environment) for name in ("one", "two")]
    for node in nodes:
        stack.callback(node.kill)
    threads = [threading.Thread(target=node.start) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(node.is_ready() for node in nodes)
    return nodes


def start(node: MetalakeServer, code: Path) -> None:
    """As node.start(), with the code of another folder."""
    command = [sys.executable, "manage.py", "serve"]
    node.process = processes.start(
        "the server of before", command, node.log, node.is_ready, cwd=code, env=node.environment
    )


def lose(path: Path, folder: Path) -> None:
    """What a disaster does to a folder of this test's own, or a file."""
    assert path.resolve().is_relative_to(folder.resolve()) and not path.is_symlink()
    shutil.rmtree(path) if path.is_dir() else path.unlink()
