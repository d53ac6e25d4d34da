"""Starting: an empty store is filled once, a second start touches nothing, and bad settings say what is wrong."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.exceptions import ImproperlyConfigured

from metalake.bind_address import address, why_not
from server.management.commands.serve import hints
from tests.catalogs.racing import NATIVE, Client
from tests.servers import ADMIN_PASSWORD, REPOSITORY, MetalakeServer, StartMetalake, prepare

pytestmark = [pytest.mark.slow, pytest.mark.server]

PASSWORD_LINE = re.compile(r"with the password (\S+)")
# Rows that Django itself keeps count of a process's life in.
VOLATILE = {"sqlite_sequence"}


def dump(server: MetalakeServer) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with sqlite3.connect(server.home / "metalake.sqlite3") as store:
        names = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: store.execute(f'SELECT * FROM "{name}"').fetchall() for name in names if name not in VOLATILE}


def settled(server: MetalakeServer) -> dict[str, list[tuple[Any, ...]]]:
    """The rows once the outbox is drained."""
    deadline = time.monotonic() + 30
    while (rows := dump(server))["metalake_outbox"]:
        assert time.monotonic() < deadline, rows["metalake_outbox"]
        time.sleep(0.05)
    return rows


def busy_seconds(server: MetalakeServer) -> float:
    """What its start took of a processor, which does not depend on what else the machine does."""
    assert server.process is not None
    leader = psutil.Process(server.process.pid)
    times = [process.cpu_times() for process in (leader, *leader.children(recursive=True))]
    return sum(time.user + time.system for time in times)


def test_first_start_makes_the_first_catalog_and_a_second_touches_nothing(start_metalake: StartMetalake) -> None:
    server = start_metalake(migrated=False)
    first_start = busy_seconds(server)
    catalog = Client(server.url).send("GET", NATIVE).body["catalog"]
    assert (catalog["name"], catalog["provider"]) == ("lake", "lakehouse-iceberg")
    log = server.log.read_text()
    assert ADMIN_PASSWORD not in log, "a password that was given is not to be shown"
    assert not PASSWORD_LINE.search(log)
    assert "Preparing the database" in log
    assert f"Metalake serves on {server.url}" in log
    before = settled(server)
    files = {path for path in server.home.rglob("*") if path.suffix not in (".sqlite3-wal", ".sqlite3-shm")}
    server.kill()
    server.start()
    assert busy_seconds(server) < first_start, "it prepares nothing"
    assert settled(server) == before
    assert {path for path in server.home.rglob("*") if path.suffix not in (".sqlite3-wal", ".sqlite3-shm")} == files
    assert "Made the" not in server.log.read_text().removeprefix(log)
    assert "Preparing" not in server.log.read_text().removeprefix(log)


def test_a_password_that_was_not_given_is_made_and_shown_once(start_metalake: StartMetalake) -> None:
    server = start_metalake(METALAKE_ADMIN_PASSWORD="")
    shown = PASSWORD_LINE.findall(server.log.read_text())
    assert len(shown) == 1
    assert len(shown[0]) >= 16
    assert Client(server.url, password=shown[0]).send("GET", NATIVE).status == 200
    assert Client(server.url, password=shown[0] + "x").send("GET", NATIVE).status == 401
    assert shown[0] not in repr(dump(server)), "the store holds the password itself"
    server.kill()
    server.start()
    assert PASSWORD_LINE.findall(server.log.read_text()) == shown


def refused(folder: Path, *command: str, **environment: str) -> str:
    """What the command says to the terminal as it refuses."""
    server = prepare(folder, **environment)
    done = subprocess.run(
        [sys.executable, "manage.py", *(command or ("serve",))],
        cwd=REPOSITORY,
        env=server.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0, done.stdout
    store = folder / "metalake.sqlite3"
    assert not store.exists() or not store.stat().st_size, "it began all the same"
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"METALAKE_SCHEMA_SEPARATOR": "a"}, "METALAKE_SCHEMA_SEPARATOR: "),
        ({"METALAKE_SCHEMA_SEPARATOR": ""}, "METALAKE_SCHEMA_SEPARATOR: "),
        ({"METALAKE_AUTHENTICATORS": "basic,kerberos"}, "METALAKE_AUTHENTICATORS names ['kerberos']; known are"),
        ({"METALAKE_AUTHENTICATORS": "simple", "METALAKE_HOST": "0.0.0.0"}, "METALAKE_HOST must be a loopback address"),
        ({"METALAKE_AUTHENTICATORS": "simple,basic"}, "simple and basic read the same header"),
        ({"METALAKE_AUTHENTICATORS": "simple", "METALAKE_ALLOWED_HOSTS": "*"}, "METALAKE_ALLOWED_HOSTS must list"),
        ({"METALAKE_METRICS_TOKEN": "short"}, "METALAKE_METRICS_TOKEN must have 20 characters or more"),
        ({"METALAKE_PATH_PREFIX": "lake/"}, "METALAKE_PATH_PREFIX: write a path such as /metalake instead of 'lake/'"),
        ({"METALAKE_AUTHORIZATION": "maybe"}, "METALAKE_AUTHORIZATION is 'on' or 'off'"),
        ({"METALAKE_AUTHORIZATION": "off", "METALAKE_HOST": "0.0.0.0"}, "on a loopback address only"),
        ({"METALAKE_BROKER_URL": "redis://127.0.0.1:1/0"}, "needs PostgreSQL: set METALAKE_DATABASE_URL"),
        ({"METALAKE_LISTENERS": "nowhere.count"}, "METALAKE_LISTENERS: nowhere.count cannot be imported"),
        ({"METALAKE_OWN_IDENTITY": "s3://lake,lake"}, "METALAKE_OWN_IDENTITY: 'lake' is no place"),
        ({"METALAKE_HOST": "192.0.2.1"}, "METALAKE_HOST=192.0.2.1 is no address of this machine: "),
        ({"METALAKE_PORT": "65536"}, "METALAKE_PORT is a number from 1 to 65535, not '65536'."),
        ({"METALAKE_THREADS": "many"}, "METALAKE_THREADS is a whole number, not 'many'."),
        ({"METALAKE_WORKERS": "-1"}, "METALAKE_WORKERS is how many processes the server has"),
        ({"METALAKE_DATABASE_URL": "mysql://root@127.0.0.1/x"}, "must be sqlite:///path or postgres://"),
        (
            {"METALAKE_DATABASE_URL": "postgres://x@127.0.0.1:1/x", "METALAKE_DATABASE_WAIT": "1"},
            "The database cannot be opened: ",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_bad_setting_stops_the_start(tmp_path: Path, environment: dict[str, str], sentence: str) -> None:
    assert sentence in refused(tmp_path, **environment)


@pytest.mark.parametrize(
    ("host", "allowed", "told"),
    [("127.0.0.1", "", 0), ("10.1.2.3", "", 1), ("0.0.0.0", "", 1), ("::", "a.example", 0)],
)
def test_a_server_for_others_says_which_names_it_knows(
    monkeypatch: pytest.MonkeyPatch, settings: Any, host: str, allowed: str, told: int
) -> None:
    monkeypatch.setenv("METALAKE_ALLOWED_HOSTS", allowed)
    settings.METALAKE_HOST = host
    assert sum("set METALAKE_ALLOWED_HOSTS" in hint for hint in hints()) == told


def test_the_data_folder_is_for_the_server_s_own_account(tmp_path: Path, settings: Any) -> None:
    own = tmp_path / "new" / "home"
    begin = [sys.executable, "-c", "import metalake.settings"]
    for given in ({}, {"METALAKE_SECRET_KEY": "given"}):
        subprocess.run(begin, cwd=REPOSITORY, env=os.environ | {"METALAKE_HOME": str(own)} | given, check=True)
        assert own.stat().st_mode & 0o777 == 0o700
        settings.METALAKE_HOME = own
        assert list(hints()) == []
        own.chmod(0o755)
        assert ["chmod 700" in hint for hint in hints()] == [True]
        assert (own / "metalake.sqlite3").stat().st_mode & 0o777 == 0o600
        shutil.rmtree(own)


def test_a_worker_needs_a_broker(tmp_path: Path) -> None:
    assert "Set METALAKE_BROKER_URL" in refused(tmp_path, "worker")


def test_a_taken_port_is_told_with_what_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(tmp_path, METALAKE_PORT=str(port))
    begins, ends = f"Port {port} of 127.0.0.1 is taken by process {os.getpid()} (", f"METALAKE_PORT={port + 1}.\n"
    assert said.startswith(begins) and said.endswith(ends) and said.count("\n") == 1
    assert [*tmp_path.iterdir()] == [], "it wrote before it knew that it cannot serve"


def test_a_port_that_another_metalake_has(tmp_path: Path, metalake_server: MetalakeServer) -> None:
    assert metalake_server.process is not None
    said = refused(tmp_path, METALAKE_PORT=str(metalake_server.port))
    assert f" is taken by another Metalake (process {metalake_server.process.pid}): " in said
    assert said.endswith(", and a METALAKE_HOME of its own.\n")


@pytest.mark.parametrize("given", ["abc", "", "0", "-1", "65536", "80.5", "9" * 5000])
def test_what_is_no_port(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("METALAKE_PORT", given)
    with pytest.raises(ImproperlyConfigured, match="METALAKE_PORT is a number from 1 to 65535, not "):
        address()


def test_a_port_that_needs_rights() -> None:
    refusal = why_not(PermissionError(errno.EACCES, "Permission denied"), "127.0.0.1", 80)
    assert refusal.startswith("This account may not open port 80: ") and "METALAKE_PORT=8090" in refusal
