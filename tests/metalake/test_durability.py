"""A kill -9 right after an answer loses nothing of what was answered: not the change, its events, nor its purge."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
import pytest

from tests.catalogs.races import COLUMNS
from tests.catalogs.racing import ICEBERG, NATIVE, Client
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake, running_metalake
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROUNDS = 2


@pytest.fixture(scope="module")
def logging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MetalakeServer, Path]]:
    """A server for tests that look at schemas of their own, and its log of events."""
    log = tmp_path_factory.mktemp("log") / "events"
    given = {"METALAKE_EVENT_LOG": str(log), "METALAKE_LOG_LEVEL": "ERROR"}
    with running_metalake(tmp_path_factory.mktemp("metalake"), **given) as server:
        yield server, log
        server.kill()  # asked to stop it waits for idle clients


def test_a_kill_loses_neither_events_nor_purges(logging: tuple[MetalakeServer, Path]) -> None:
    server, log = logging
    told: list[tuple[str, str]] = []
    gone: list[Path] = []
    kept: list[Path] = []
    for number in range(ROUNDS):
        client = Client(server.url)
        kept.append(make_table(client, f"s{number}", "kept"))
        gone.append(make_table(client, f"s{number}", "dropped"))
        assert client.send("DELETE", f"{ICEBERG}/namespaces/s{number}/tables/dropped?purgeRequested=true").status == 204
        server.kill()
        told += [
            ("schema.created", f"lake.s{number}"),
            ("table.created", f"lake.s{number}.kept"),
            ("table.created", f"lake.s{number}.dropped"),
            ("table.dropped", f"lake.s{number}.dropped"),
        ]
        server.start()
    assert eventually(lambda: set(told) <= set(events(log)))
    assert eventually(lambda: not any(map(files_below, gone))), [files_below(folder) for folder in gone]
    assert all(files_below(folder) for folder in kept)
    client = Client(server.url)
    for number in range(ROUNDS):
        answer = client.send("GET", f"{ICEBERG}/namespaces/s{number}/tables")
        assert [table["name"] for table in answer.body["identifiers"]] == ["kept"]
    assert waits_for_nothing(server)


def test_events_say_who_did_what_when_and_in_which_request(logging: tuple[MetalakeServer, Path]) -> None:
    server, log = logging
    assert Client(server.url).send("POST", f"{NATIVE}/schemas", {"name": "a:b"}).status == 200
    made = [("schema.created", "lake.a"), ("schema.created", "lake.a:b")]
    assert eventually(lambda: set(made) <= set(events(log)))
    lines = [event for event in read(log) if (event["name"], event["full_name"]) in made]
    assert {event["actor"] for event in lines} == {"admin"}
    assert len({event["request_id"] for event in lines}) == 1
    assert lines[0]["request_id"]
    assert all({"at", "kind", "object_id", "metalake_id", "details"} <= event.keys() for event in lines)
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_disk_that_is_full_delays_events_and_breaks_none(start_metalake: StartMetalake, tmp_path: Path) -> None:
    """The limit of a process's files stands in for the end of the disk: the log alone is that large."""
    log, most = tmp_path / "events", 16 * 1024 * 1024
    log.touch(mode=0o600)
    server = start_metalake(METALAKE_EVENT_LOG=str(log), METALAKE_LOG_LEVEL="CRITICAL")
    assert waits_for_nothing(server)
    before = log.stat().st_size
    filler = b'{"name":"filler","full_name":"%s"}\n'
    room = most - before - len(filler) + 2 - 100  # 100 bytes are left: a part of a line
    with log.open("ab") as stream:
        stream.write(filler % (b"x" * room))
    limit_files(server, most)
    client = Client(server.url)
    names = [f"s{number}" for number in range(5)]
    for name in names:
        assert client.send("POST", f"{NATIVE}/schemas", {"name": name}).status == 200
    assert eventually(lambda: tried_in_vain(server))
    assert log.stat().st_size == most - 100, "what was written of a line is taken back"
    limit_files(server, resource.RLIM_INFINITY)
    assert waits_for_nothing(server)
    assert [name for event, name in events(log) if event == "schema.created"] == [f"lake.{name}" for name in names]


@pytest.mark.long
def test_what_a_kill_leaves_of_a_commit_is_found_and_removed(start_metalake: StartMetalake) -> None:
    """The store is held, so that the server is killed between the metadata file and its pointer."""
    server = start_metalake(METALAKE_LOG_LEVEL="ERROR")
    folder = make_table(Client(server.url), "s", "t")
    before = set(files_below(folder))
    update = {"action": "set-properties", "updates": {"n": "killed"}}
    with closing(sqlite3.connect(server.home / "metalake.sqlite3", isolation_level=None)) as store:
        store.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as pool:
            body = {"requirements": [], "updates": [update]}
            asked = pool.submit(Client(server.url).send, "POST", f"{ICEBERG}/namespaces/s/tables/t", body)
            assert eventually(lambda: len(files_below(folder)) > len(before))
            server.kill()
            assert asked.exception() or asked.result().status not in (200, 204)
        store.execute("ROLLBACK")
    (orphan,) = set(files_below(folder)) - before
    assert "Nothing is to be removed" in vacuum(server), "it is young"
    for path in files_below(folder):
        os.utime(path, (path.stat().st_mtime - 200_000,) * 2)
    assert f"found    {orphan}" in vacuum(server)
    assert f"removed  {orphan}" in vacuum(server, "--delete")
    assert set(files_below(folder)) == before
    server.start()
    loaded = Client(server.url).send("GET", f"{ICEBERG}/namespaces/s/tables/t")
    assert loaded.body["metadata"]["properties"]["n"] == "1"


def vacuum(server: MetalakeServer, *arguments: str) -> str:
    command = [sys.executable, "manage.py", "vacuum", *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, env=server.environment, check=True, capture_output=True, text=True
    ).stdout


def limit_files(server: MetalakeServer, size: int) -> None:
    """Of all processes of the server."""
    assert server.process is not None
    group = server.process.pid
    for process in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()):
        with suppress(ProcessLookupError):
            if os.getpgid(process) == group:
                resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def tried_in_vain(server: MetalakeServer) -> bool:
    """One event was tried, and those behind it wait for it."""
    with closing(sqlite3.connect(f"file:{server.home}/metalake.sqlite3?mode=ro", uri=True)) as store:
        rows = store.execute("SELECT attempts FROM metalake_outbox ORDER BY id").fetchall()
    return len(rows) == 5 and rows[0][0] > 0 and not any(attempts for (attempts,) in rows[1:])


def make_table(client: Client, schema: str, name: str) -> Path:
    """A table with some versions; its folder."""
    client.send("POST", f"{NATIVE}/schemas", {"name": schema})
    made = client.send("POST", f"{ICEBERG}/namespaces/{schema}/tables", {"name": name, "schema": COLUMNS})
    assert made.status == 200, made
    for number in range(2):
        update = {"action": "set-properties", "updates": {"n": str(number)}}
        path = f"{ICEBERG}/namespaces/{schema}/tables/{name}"
        assert client.send("POST", path, {"requirements": [], "updates": [update]}).status == 200
    folder = Path(unquote(urlsplit(made.body["metadata"]["location"]).path))
    assert len(files_below(folder)) == 3
    return folder


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def read(log: Path) -> list[dict[str, Any]]:
    """The events in a log, which must end with a whole line, if not at once, since it may be written to meanwhile."""
    content = b""

    def is_whole() -> bool:
        nonlocal content
        content = log.read_bytes() if log.exists() else b""
        return content[-1:] in (b"", b"\n")

    assert eventually(is_whole), content[-200:]
    return [orjson.loads(line) for line in content.splitlines()]


def events(log: Path) -> list[tuple[str, str]]:
    return [(event["name"], event["full_name"]) for event in read(log)]


def has_happened(log: Path, event: tuple[str, str]) -> bool:
    return event in events(log)


def waits_for_nothing(server: MetalakeServer) -> bool:
    """The outbox is empty, as the server itself says."""

    def is_empty() -> bool:
        ready = Client(server.url).send("GET", "/health/ready").body
        return bool(ready["checks"][0]["details"].get("outbox") == 0)  # without one, it was too busy to look

    return eventually(is_empty)
