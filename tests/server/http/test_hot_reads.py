"""Hot reads on real servers: in order on one connection, revoked at once, and through the restart of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import psutil
import psycopg
import pytest
from django.db import connection
from django.db.backends.signals import connection_created

from catalogs.models import Table
from formats.iceberg.metadata_json import MAX_METADATA_BYTES
from metalake.blocking import BeginAgain
from metalake.statements import fetch, only_by
from server.http.hot_reads import FastReads, Question, Wire
from server.http.prepared import OnSqlite, on_postgresql
from tests.catalogs.races import COLUMNS
from tests.catalogs.racing import Client
from tests.names import own_name
from tests.server.http.sockets import line
from tests.servers import MetalakeServer, StartMetalake

READ = ("use_catalog", "use_schema", "select_table")


class Reader:
    """A metalake of its own with the table `a.t`, and a user who reads it by one role and a token."""

    def __init__(self, server: MetalakeServer) -> None:
        self.metalake, self.role, self.user = own_name("hot"), own_name("readers"), own_name("rita")
        self.admin = Client(server.url, password=server.admin_password)
        self.native, self.wire = f"/api/metalakes/{self.metalake}", f"/iceberg/{self.metalake}/v1/lake"
        self.do("POST", "/api/metalakes", {"name": self.metalake})
        self.make()
        self.do("POST", f"{self.native}/users", {"name": self.user})
        self.do("POST", f"{self.native}/roles", {"name": self.role, "properties": {}, "securableObjects": []})
        self.do("PUT", f"{self.native}/permissions/users/{self.user}/grant", {"roleNames": [self.role]})
        made = self.do("POST", "/api/tokens", {"name": "hot", "user": self.user})
        self.reads = Client(server.url, token=made["token"]["secret"])

    def make(self) -> None:
        """The catalog with its table."""
        lake = {"name": "lake", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}}
        self.do("POST", f"{self.native}/catalogs", lake)
        self.do("POST", f"{self.wire}/namespaces", {"namespace": ["a"]})
        self.do("POST", f"{self.wire}/namespaces/a/tables", {"name": "t", "schema": COLUMNS})

    def do(self, method: str, path: str, body: object) -> dict:
        answer = self.admin.send(method, path, body)
        assert answer.status in (200, 201), (method, path, answer)
        return dict(answer.body)

    def change(self, verb: str) -> None:
        privileges = [{"name": name, "condition": "allow"} for name in READ]
        self.do("PUT", f"{self.native}/permissions/roles/{self.role}/catalog/lake/{verb}", {"privileges": privileges})

    def load(self) -> int:
        return self.reads.send("GET", f"{self.wire}/namespaces/a/tables/t").status


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def server(request: pytest.FixtureRequest, start_metalake: StartMetalake) -> MetalakeServer:
    if request.param == "SQLite":
        return request.getfixturevalue("metalake_server")
    return start_metalake(METALAKE_DATABASE_URL=request.getfixturevalue("migrated_postgres_url"))


@pytest.mark.slow
def test_a_revoke_holds_on_the_next_hot_read(server: MetalakeServer) -> None:
    reader = Reader(server)
    for _ in range(5):
        reader.change("grant")
        assert [reader.load() for _ in range(3)] == [200] * 3
        reader.change("revoke")
        assert reader.load() == 404


@pytest.mark.slow
def test_hot_reads_on_one_connection_are_answered_in_their_order(metalake_server: MetalakeServer) -> None:
    reader = Reader(metalake_server)
    reader.change("grant")
    rest = f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader.reads.token}\r\n"
    table = f"{reader.wire}/namespaces/a/tables/t"
    load, miss = f"GET {table}{rest}\r\n".encode(), f"GET {table}s{rest}\r\n".encode()
    exists, plain = f"HEAD {table}{rest}\r\n".encode(), f"GET {reader.wire}/namespaces/a{rest}\r\n".encode()
    with line(metalake_server) as client:
        client.send(load + miss + exists + plain + load + miss)
        methods = [b"GET", b"GET", b"HEAD", b"GET", b"GET", b"GET"]
        assert [answer.status for method in methods if (answer := client.answer(method))] == [
            200,
            404,
            204,
            200,
            200,
            404,
        ]
        last = client.ask(f"GET {table}{rest}Connection: close\r\n\r\n".encode())
        assert last.status == 200 and last.closes and client.answer() is None
    with line(metalake_server) as client:
        client.send(load + load)
        client.end()
        assert [answer.status for _ in range(2) if (answer := client.answer())] == [200, 200]
        assert client.answer() is None


@pytest.mark.slow
def test_hot_reads_survive_that_the_database_ends_every_session(
    start_metalake: StartMetalake, migrated_postgres_url: str
) -> None:
    reader = Reader(start_metalake(METALAKE_DATABASE_URL=migrated_postgres_url))
    reader.change("grant")
    for _ in range(3):
        assert [reader.load() for _ in range(20)] == [200] * 20
        with psycopg.connect(migrated_postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.mark.slow
def test_nothing_is_answered_for_another_of_the_same_name(metalake_server: MetalakeServer) -> None:
    reader = Reader(metalake_server)
    reader.change("grant")
    table, catalog = f"{reader.wire}/namespaces/a/tables/t", f"{reader.native}/catalogs/lake"
    seen = set()
    for _ in range(2):
        for _ in range(2):
            assert reader.load() == 200
            seen.add(reader.reads.send("GET", table).body["metadata"]["table-uuid"])
            assert reader.admin.send("DELETE", f"{table}?purgeRequested=true").status == 204
            assert reader.load() == 404
            reader.do("POST", f"{reader.wire}/namespaces/a/tables", {"name": "t", "schema": COLUMNS})
        assert reader.admin.send("DELETE", f"{catalog}?force=true").status == 200
        assert reader.load() == 404
        reader.make()
        assert reader.load() == 404  # the rights on the former catalog are gone with it
        reader.change("grant")
    assert len(seen) == 4


@pytest.mark.slow
def test_odd_headers_of_hot_reads_get_the_answers_of_all_requests(metalake_server: MetalakeServer) -> None:
    reader = Reader(metalake_server)
    reader.change("grant")
    start = f"GET {reader.wire}/namespaces/a/tables"
    rest = f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader.reads.token}\r\n"
    roles = ",".join(f"role{n}" for n in range(1000))
    with line(metalake_server) as client:

        def status(path: str, headers: str = "") -> int:
            return client.ask(f"{start}{path}{rest}{headers}\r\n".encode()).status

        etag = client.ask(f"{start}/t{rest}\r\n".encode()).headers["etag"]
        many = ", ".join(f'"{n:032}"' for n in range(280))  # 10 kB
        assert status("/t", f"If-None-Match: {many}\r\n") == 200
        assert status("/t", f"If-None-Match: {many}, {etag}\r\n") == 304
        assert status("/t", f"X-Gravitino-Active-Roles: {roles}\r\n") == 403
        assert status("/t", f"X-Gravitino-Active-Roles: {reader.role}\r\n") == 200
        assert status("/t", "X-Gravitino-Active-Roles: NONE\r\n") == 404
        assert status("?pageToken=of-somebody-else") == 400
        assert status("?pageToken=") == status("?pageToken=&pageSize=1") == 200
        assert status("/t?snapshots=refs") == 200 and status("/t?snapshots=some") == 400


@pytest.mark.slow
def test_metadata_of_50_mb_is_answered_whole_within_the_memory_of_the_server(metalake_server: MetalakeServer) -> None:
    reader = Reader(metalake_server)
    reader.change("grant")
    table = f"{reader.wire}/namespaces/a/tables/t"
    loaded = reader.admin.send("GET", table).body
    large = Path(loaded["metadata-location"].removeprefix("file://")).with_name("large.metadata.json")
    padding = {f"pad{number}": "x" * 60_000 for number in range(840)}
    large.write_bytes(orjson.dumps(loaded["metadata"] | {"properties": padding}))
    assert large.stat().st_size > 50_000_000
    assert reader.admin.send("DELETE", table).status == 204
    request = {"name": "t", "metadata-location": f"file://{large}"}
    assert reader.admin.send("POST", f"{reader.wire}/namespaces/a/register", request).status == 200
    for _ in range(3):
        answer = reader.reads.send("GET", table)
        assert answer.status == 200 and answer.body["metadata"]["properties"] == padding
    native = f"{reader.native}/catalogs/lake/schemas/a/tables/t"
    assert reader.reads.send("GET", native).body["table"]["properties"].items() >= padding.items()
    assert sum(psutil.Process(each).memory_info().rss for each in metalake_server.processes()) < 1_500_000_000
    too_large = large.with_name("too_large.metadata.json")
    too_large.write_bytes(large.read_bytes() + b" " * 18_000_000)
    assert reader.admin.send("DELETE", table).status == 204
    refused = reader.admin.send(
        "POST", f"{reader.wire}/namespaces/a/register", request | {"metadata-location": f"file://{too_large}"}
    )
    assert refused.status == 400 and str(MAX_METADATA_BYTES) in refused.body["error"]["message"], refused


def test_a_query_set_beside_the_event_loop_is_left_to_a_thread_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Reads of outside catalogs begin so: each would write a traceback into the log."""

    def answer(*_: object) -> None:
        Table.objects.first()

    def ask() -> object:
        fast = FastReads()
        meta = {"HTTP_HOST": "localhost", "REMOTE_ADDR": "127.0.0.1", "QUERY_STRING": ""}
        wire = Wire("api", lambda method, path: None, answer)
        question = Question(wire, SimpleNamespace(operation="load_table"), {}, "GET", "/api/x", meta)

        async def beside_the_loop() -> object:
            fast.settle()
            return fast.answer(question, closes=False)

        return asyncio.run(beside_the_loop())

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(ask).result() is None
    assert not caplog.records


@pytest.fixture
def straight(transactional_db: None) -> Callable[..., list]:
    return OnSqlite() if connection.vendor == "sqlite" else on_postgresql


@pytest.mark.store
def test_a_statement_is_sent_past_django_with_every_kind_of_parameter(straight: Callable[..., list]) -> None:
    statement = "SELECT %s, %s WHERE %s > 1 -- a statement of hot reads has no percent sign"
    for text in ("it's", "100 %s", "é\\", "", None):
        assert straight(statement, [text, 7, 2]) == [(text, 7)]
    assert straight(statement, ["x", 7, 1]) == []


@pytest.mark.store
def test_a_statement_that_the_session_lost_is_prepared_again(straight: Callable[..., list]) -> None:
    for _ in range(3):
        assert straight("SELECT name FROM authz_group WHERE name = %s LIMIT %s", ["a", 3]) == []
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("DEALLOCATE ALL")


@pytest.mark.store
def test_a_statement_that_fails_is_left_to_the_way_of_all_requests(straight: Callable[..., list]) -> None:
    for _ in range(2):
        with pytest.raises(BeginAgain):
            straight("SELECT no_such_column", [])
        assert straight("SELECT %s || 'b'", ["a"]) == [("ab",)]


@pytest.mark.store
def test_a_new_connection_is_prepared_before_it_serves_the_fast_path(straight: Callable[..., list]) -> None:
    prepared = []

    def prepare(connection: Any, **_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        prepared.append(connection)

    connection_created.connect(prepare)
    try:
        connection.close()
        with only_by(straight):
            assert fetch("SELECT %s", ["a"]) == [("a",)]
    finally:
        connection_created.disconnect(prepare)
    assert prepared
