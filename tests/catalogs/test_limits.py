"""Nobody waits for ever, and no reader for a writer: a row that somebody holds, a node that stands still."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.catalogs.races import COLUMNS
from tests.catalogs.racing import ICEBERG, NATIVE, Answer, Client, Nodes, one_node, together, two_nodes
from tests.databases import migrated_database
from tests.postgres import PostgresServer
from tests.waiting import eventually

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

TABLES = f"{ICEBERG}/namespaces/s/tables"
SHORT = {"METALAKE_LOCK_TIMEOUT": "2", "METALAKE_IDLE_TIMEOUT": "4", "METALAKE_LOG_LEVEL": "WARNING"}
COMMITTERS = 24
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
    "AND query LIKE '%INSERT INTO \"metalake_outbox\"%'"
)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("nodes")
    if request.param == "sqlite":
        with one_node(folder, **SHORT) as nodes:
            yield _with_tables(nodes)
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    with two_nodes(folder, migrated_database(postgres), **SHORT) as nodes:
        yield _with_tables(nodes)


def _with_tables(nodes: Nodes) -> Nodes:
    nodes.made(f"{NATIVE}/schemas", {"name": "s"})
    for name in ("hot", "other"):
        nodes.made(TABLES, {"name": name, "schema": COLUMNS})
    return nodes


@contextmanager
def held(nodes: Nodes) -> Iterator[None]:
    """Somebody holds the row of the hot table; on SQLite, where there is one writer, is that writer."""
    if nodes.database.startswith("postgres"):
        with psycopg.connect(nodes.database) as holder:
            holder.execute("SELECT 1 FROM catalogs_table WHERE metadata_location LIKE '%/hot%' FOR UPDATE")
            yield
        return
    with closing(sqlite3.connect(nodes.database, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield


def commit(client: Client, key: str) -> Answer:
    update = {"action": "set-properties", "updates": {key: "set"}}
    return client.send("POST", f"{TABLES}/hot", {"requirements": [], "updates": [update]})


def alter(client: Client, key: str) -> Answer:
    update = {"@type": "setProperty", "property": key, "value": "set"}
    return client.send("PUT", f"{NATIVE}/schemas/s/tables/hot", {"updates": [update]})


def properties(nodes: Nodes) -> dict[str, Any]:
    answer = nodes.ask("GET", f"{TABLES}/hot")
    assert answer.status == 200
    return dict(answer.body["metadata"]["properties"])


def stands_still(process: int) -> bool:
    """Whether every thread of the process is stopped."""
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{process}/task").glob("*/stat")]
    return set(states) == {"T"}


def test_who_waits_for_a_row_is_told_and_keeps_nobody_from_reading(nodes: Nodes) -> None:
    answers: list[Answer] = []
    clients = [Client(nodes.servers[number % len(nodes.servers)].url) for number in range(COMMITTERS)]
    acts = [
        lambda client=client, number=number: (commit if number % 4 < 2 else alter)(client, f"waited-{number}")
        for number, client in enumerate(clients)
    ]
    writing = threading.Thread(target=lambda: answers.extend(together(acts)))
    with held(nodes):
        writing.start()
        while writing.is_alive():
            for server in nodes.servers:
                reader = Client(server.url)
                assert reader.send("GET", "/health").status == 200
                assert reader.send("GET", f"{TABLES}/other").status == 200
                assert reader.send("GET", f"{NATIVE}/schemas/s/tables/hot").status == 200
            writing.join(0.05)
    assert [answer.status for answer in answers] == [503] * COMMITTERS, answers
    assert all(int(answer.retry_after or 0) > 0 for answer in answers)
    for number, answer in enumerate(answers):
        if number % 4 < 2:
            assert answer.body["error"]["type"] == "ServiceUnavailableException"
        else:
            assert (answer.body["code"], answer.body["type"]) == (1007, "ConnectionFailedException")
    assert not any(key.startswith("waited") for key in properties(nodes))
    files = list((nodes.home / "warehouse").glob("**/hot*/**/*.metadata.json"))
    assert len(files) == 1, "what a commit that was undone had written is removed"
    for server in nodes.servers:
        client = Client(server.url)
        assert [commit(client, "after").status, alter(client, "after-that").status] == [200, 200]
        assert "[lock timeout (" in server.log.read_text()


def test_a_node_that_stands_still_in_a_transaction_stops_no_other(nodes: Nodes) -> None:
    if len(nodes.servers) < 2:
        pytest.skip("not offered: there is one node on SQLite")
    frozen, going_on = nodes.servers
    answers: list[Answer] = []
    assert frozen.process is not None
    writing = threading.Thread(target=lambda: answers.append(commit(Client(frozen.url), "frozen")))
    with psycopg.connect(nodes.database) as holder:
        holder.execute("LOCK TABLE metalake_outbox IN SHARE MODE")  # the last that a commit writes
        writing.start()
        with psycopg.connect(nodes.database, autocommit=True) as watcher:
            assert eventually(lambda: watcher.execute(WAITING).fetchone() != (0,))
        os.killpg(frozen.process.pid, signal.SIGSTOP)
        assert eventually(lambda: stands_still(frozen.process.pid))  # a thread may run on until the first one stops
    try:
        client = Client(going_on.url)
        assert eventually(lambda: commit(client, "went on").status == 200)
    finally:
        os.killpg(frozen.process.pid, signal.SIGCONT)
    writing.join()
    assert answers[0].status in (500, 503), answers  # the end of its session may look like a commit without an answer
    assert "went on" in properties(nodes) and "frozen" not in properties(nodes)
    assert commit(Client(frozen.url), "thawed").status == 200
