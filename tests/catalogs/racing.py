"""What a race needs: servers on one database, keep-alive clients that start together, and the rows it left behind."""

from __future__ import annotations

import sqlite3
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import orjson
import psutil
import psycopg

from tests.connections import clients_of
from tests.servers import ADMIN_PASSWORD, STORE, MetalakeServer, doors_of, on_a_migrated_store, prepare
from tests.waiting import eventually

T = TypeVar("T")
NATIVE = "/api/metalakes/demo/catalogs/lake"
ICEBERG = "/iceberg/demo/v1/lake"
CHANCES = 200  # looks until every connection is taken by the process that is meant
IDLE = 20  # seconds; the servers close a connection that is idle for longer


class Answer(NamedTuple):
    status: int
    body: Any
    retry_after: str | None = None

    @property
    def failed(self) -> bool:
        return self.status >= 500


@dataclass
class Client:
    """One connection to one server, or to one of its processes."""

    url: str
    user: str = "admin"
    password: str = ADMIN_PASSWORD
    token: str = ""
    process: int = 0
    _connection: HTTPConnection | None = field(default=None, repr=False)
    _used: float = 0.0

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and time.monotonic() - self._used <= IDLE

    def connect(self) -> None:
        connect([self])
        self._used = time.monotonic()

    def take(self, connection: HTTPConnection) -> None:
        self._connection, self._used = connection, time.monotonic()

    def new_connection(self) -> HTTPConnection:
        """To its server; which of its processes takes it is chance."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.connect()
        return connection

    def send(self, method: str, path: str, body: Any = None) -> Answer:
        self.connect()
        assert self._connection is not None
        basic = "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Bearer {self.token}" if self.token else basic, "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else orjson.dumps(body), headers)
        response = self._connection.getresponse()
        content = response.read()
        body = orjson.loads(content) if content else None
        return Answer(response.status, body, response.headers["Retry-After"])


def connect(clients: Sequence[Client]) -> None:
    """Give each client that has no connection one to the process that it is meant for.

    As many connections are made as that needs, and all of them are looked up at once: a look reads every socket of the
    machine. Raises AssertionError where a process takes none.
    """
    waiting = [client for client in clients if not client.is_connected]
    for client in [client for client in waiting if not client.process]:
        client.take(client.new_connection())
        waiting.remove(client)
    with ExitStack() as surplus:
        for _ in range(CHANCES):
            if not waiting:
                return
            connections = [client.new_connection() for client in waiting]
            for connection, process in zip(connections, takers(connections, doors_beside(waiting)), strict=True):
                if (meant := next((client for client in waiting if client.process == process), None)) is None:
                    surplus.callback(connection.close)
                else:
                    meant.take(connection)
                    waiting.remove(meant)
    raise AssertionError(f"processes {[client.process for client in waiting]} took none of {CHANCES} connections")


def doors_beside(clients: Sequence[Client]) -> list[psutil.Process]:
    """The processes that take connections of the servers whose processes these clients are meant for."""
    parents = {psutil.Process(process).ppid() for process in {client.process for client in clients}}
    return [door for parent in sorted(parents) for door in doors_of(parent)]


def takers(connections: Sequence[HTTPConnection], processes: Sequence[psutil.Process]) -> list[int]:
    """Which of the processes has the other end of each connection."""
    ports = [connection.sock.getsockname()[1] for connection in connections]
    taken: dict[int, int] = {}

    def are_taken() -> bool:
        for process in processes:
            taken.update(dict.fromkeys(clients_of(process.pid) & set(ports), process.pid))
        return taken.keys() >= set(ports)

    assert eventually(are_taken), "nobody took a connection"
    return [taken[port] for port in ports]


@dataclass
class Nodes:
    """Servers of one database; clients are dealt out to their processes in turn."""

    servers: list[MetalakeServer]
    database: str  # a URL, or the path of an SQLite file
    _clients: list[Client] = field(default_factory=list, repr=False)

    @property
    def home(self) -> Path:
        return Path(self.servers[0].environment["METALAKE_HOME"])

    @cached_property
    def warehouse(self) -> str:
        return str(self.ask("GET", NATIVE).body["catalog"]["properties"]["warehouse"])

    def stop(self) -> None:
        for server in self.servers:
            server.kill()  # a server that is asked to stop waits for idle clients

    @cached_property
    def doors(self) -> list[Callable[..., Client]]:
        """A client of each process, given who asks."""
        return [partial(Client, server.url, process=process) for server in self.servers for process in server.doors()]

    def clients(self, number: int) -> list[Client]:
        while len(self._clients) < number:
            self._clients.append(self.doors[len(self._clients) % len(self.doors)]())
        return self._clients[:number]

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Outside a race, of the first server."""
        return self.clients(1)[0].send(method, path, body)

    def made(self, path: str, body: Any) -> Answer:
        answer = self.ask("POST", path, body)
        assert answer.status == 200, answer
        return answer

    def race(self, *acts: Callable[[Client], T]) -> list[T]:
        """Each act on a client of its own, all at once; what each returned."""
        return together([partial(act, client) for act, client in self._dealt(acts)])

    def _dealt(self, acts: Sequence[Callable[[Client], T]]) -> list[tuple[Callable[[Client], T], Client]]:
        clients = self.clients(len(acts))
        connect(clients)
        return list(zip(acts, clients, strict=True))

    def rows(self, sql: str, *values: Any) -> list[tuple]:
        """Read past the servers; %s is a value in both databases."""
        return self._execute(sql, values).fetchall()

    def read(self, sql: str, *values: Any) -> list[tuple]:
        """The same by one connection that stays, for a single thread that reads much."""
        return list(self._reader.execute(self._spelled(sql), values).fetchall())

    @cached_property
    def _reader(self) -> Any:
        if self.database.startswith("postgres"):
            return psycopg.connect(self.database, autocommit=True, cursor_factory=psycopg.ClientCursor)
        return sqlite3.connect(self.database, timeout=20, isolation_level=None)

    def _spelled(self, sql: str) -> str:
        return sql if self.database.startswith("postgres") else sql.replace("%s", "?")

    def execute(self, sql: str, *values: Any) -> None:
        self._execute(sql, values)

    def _execute(self, sql: str, values: tuple) -> Any:
        if self.database.startswith("postgres"):
            with psycopg.connect(self.database, cursor_factory=psycopg.ClientCursor) as connection:
                return connection.execute(sql, values)
        with sqlite3.connect(self.database, timeout=20) as connection:
            return connection.execute(self._spelled(sql), values)


def together(acts: Sequence[Callable[[], T]]) -> list[T]:
    """Call them all at once, a thread each; the first failure is raised."""
    start = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)
    failures: list[Exception] = []

    def run(place: int) -> None:
        try:
            start.wait()
            results[place] = acts[place]()
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


@contextmanager
def two_nodes(folder: Path, database_url: str, **environment: str) -> Iterator[Nodes]:
    """Two servers of one process each on one PostgreSQL database, with one warehouse, that of the first one's home."""
    shared = {"METALAKE_DATABASE_URL": database_url, "METALAKE_WORKERS": "1", "METALAKE_LOG_LEVEL": "ERROR"}
    shared |= {"METALAKE_WAREHOUSE": str(folder / "one" / "warehouse"), "METALAKE_SECRET_KEY": "the same for both"}
    shared |= environment
    nodes = Nodes([on_a_migrated_store(prepare(folder / name, **shared)) for name in ("one", "two")], database_url)
    try:
        yield _started(nodes)
    finally:
        nodes.stop()


@contextmanager
def one_node(folder: Path, **environment: str) -> Iterator[Nodes]:
    """One server of two processes on SQLite."""
    environment = {"METALAKE_LOG_LEVEL": "ERROR", "METALAKE_WORKERS": "2"} | environment
    nodes = Nodes([on_a_migrated_store(prepare(folder, **environment))], str(folder / STORE))
    try:
        yield _started(nodes)
    finally:
        nodes.stop()


def _started(nodes: Nodes) -> Nodes:
    """The slow hash of the password is paid here, before anything races."""
    for server in nodes.servers:
        server.start()
    for client in nodes.clients(len(nodes.doors)):
        assert client.send("GET", NATIVE).status == 200
    return nodes


def segment(name: str) -> str:
    return quote(name, safe="")


def namespace(logical: str) -> str:
    """A nested name as the Iceberg wire has it in a path."""
    return "%1F".join(quote(level, safe="") for level in logical.split(":"))
