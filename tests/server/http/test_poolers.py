"""Hot reads on PostgreSQL behind PgBouncer, which lends its sessions to clients for a while."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests import processes
from tests.catalogs.racing import Client
from tests.parts import needs
from tests.ports import free_port
from tests.server.http.test_hot_reads import Reader
from tests.servers import StartMetalake
from tests.waiting import eventually

CLIENTS, SESSIONS, LOADS = 12, 4, 100


@contextmanager
def pooler(folder: Path, database: str, mode: str, sessions: int) -> Iterator[str]:
    """PgBouncer in one of its modes; the URL of the same database through it."""
    needs("pgbouncer")
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    there, port = urlsplit(database), free_port()
    name = there.path.removeprefix("/")
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host={there.hostname} port={there.port} user={there.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\ndefault_pool_size = {sessions}\nignore_startup_parameters = extra_float_digits,options\n"
    )
    for each in (folder, folder / "pgbouncer.ini"):
        each.chmod(0o755)  # it refuses to run as root
    url = f"postgres://{there.username}@127.0.0.1:{port}/{name}"
    command = [program, "-u", "nobody", str(folder / "pgbouncer.ini")]
    process = processes.start("PgBouncer", command, folder / "log", lambda: is_ready(url), 30)
    try:
        yield url
    finally:
        processes.kill(process)


def is_ready(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def reads(reader: Reader, url: str) -> Counter[int]:
    """The answers to loads and misses of more clients than there are sessions."""
    table = f"{reader.wire}/namespaces/a/tables/t"

    def load(_: int) -> list[int]:
        client = Client(url, token=reader.reads.token)
        answers = [client.send("GET", path) for path in [table, f"{table}s"] * LOADS]
        assert not [answer for answer in answers if answer.failed]
        return [answer.status for answer in answers]

    with ThreadPoolExecutor(CLIENTS) as clients:
        return Counter(status for each in clients.map(load, range(CLIENTS)) for status in each)


def prepared_in_a_session_of(pooled: str) -> int:
    """How many statements of the fast path a session has prepared that the pooler lends just now."""
    with psycopg.connect(pooled, autocommit=True) as client:
        statement = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'm\\_%'"
        ((count,),) = client.execute(statement).fetchall()
        return int(count)


def sessions_of(url: str) -> int:
    with psycopg.connect(url) as direct:
        statement = "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
        ((count,),) = direct.execute(statement).fetchall()
        return int(count)


@pytest.mark.long
def test_a_server_works_behind_a_pooler_that_keeps_a_session_with_its_client(
    start_metalake: StartMetalake, migrated_postgres_url: str, tmp_path: Path
) -> None:
    with pooler(tmp_path, migrated_postgres_url, "session", 60) as url:
        server = start_metalake(METALAKE_DATABASE_URL=url)
        reader = Reader(server)
        reader.change("grant")
        assert reads(reader, server.url) == {200: CLIENTS * LOADS, 404: CLIENTS * LOADS}
        assert sessions_of(migrated_postgres_url) > 0
        reader.change("revoke")
        assert reader.load() == 404


@pytest.mark.long
def test_hot_reads_go_through_a_pooler_that_changes_sessions_between_statements(
    start_metalake: StartMetalake, migrated_postgres_url: str, tmp_path: Path
) -> None:
    """What else a server does needs the other mode, so this one only reads what was made without a pooler."""
    made = start_metalake(METALAKE_DATABASE_URL=migrated_postgres_url)
    reader = Reader(made)
    reader.change("grant")
    made.stop()
    with pooler(tmp_path, migrated_postgres_url, "transaction", SESSIONS) as url:
        server = start_metalake(
            METALAKE_DATABASE_URL=url, METALAKE_READ_THREADS=str(CLIENTS), METALAKE_HOME=str(made.home)
        )
        reader.reads = Client(server.url, token=reader.reads.token)
        # The policy comes through a cursor of its session, which this mode may take away: such a read fails.
        assert eventually(lambda: reader.load() == 200)
        assert reads(reader, server.url) == {200: CLIENTS * LOADS, 404: CLIENTS * LOADS}
        assert 0 < sessions_of(migrated_postgres_url) <= SESSIONS
        assert prepared_in_a_session_of(url) > 0
