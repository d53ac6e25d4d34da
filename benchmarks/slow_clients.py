"""How long others wait while 1,000 clients send nothing, 100 send a byte a second, and three send large requests.

wrk loads a table over eight connections: alone, beside the slow clients, and beside these and three more that repeat a
16 MiB commit, a list of 100,000 tables and a request to a storage that never answers. The server before is measured
once, for comparison. `python -m benchmarks.slow_clients [rounds]`
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks import wrk
from benchmarks.harness import claim, finish, median, own_store, ratio, serve, serve_twin
from benchmarks.load_table import fetch
from benchmarks.server import fill
from benchmarks.wrk import Turn, require_wrk
from tests.catalogs.test_hanging_storage import Silence

ROUNDS, SECONDS, CLIENTS = 5, 8, 8
SILENT, SLOW = 1000, 100
TABLES = 100_000
SETTLE = 2.0  # seconds

Ask = tuple[str, str, Callable[[int], bytes | None]]
"""Method, path, and the body for the n-th time."""


def main(arguments: list[str]) -> None:
    require_wrk()
    own_store()
    rounds = int(arguments[0]) if arguments else ROUNDS
    paths, reader = fill()
    with ExitStack() as stack:
        storage = stack.enter_context(silent_storage())
        asks, admin = fill_more(storage.url, rounds)
        storage.is_silent = True
        old, new = serve_twin(stack, "-m", "benchmarks.old_server").url, serve(stack).url
        # The limit of open files suffices for the server; the clients need more.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        for url in (old, new):
            fetch(url + paths["load"], reader)
        wrk.load(new + paths["load"], reader, CLIENTS, 2)

        def turn() -> Turn:
            return wrk.ask(new + paths["load"], reader, CLIENTS, SECONDS)

        turns: dict[str, list[Turn]] = {"alone": [], "slow": [], "all": []}
        for number in range(rounds):
            turns["alone"].append(turn())
            with SlowClients(new, admin):
                turns["slow"].append(turn())
                with insistent(new, admin, asks(number)) as answers:
                    turns["all"].append(turn())
            print(f"  round {number + 1}: {summary(answers)}", flush=True)
        show(turns)
        before_it(old, paths["load"], reader, admin)
    finish()


def show(turns_by_name: dict[str, list[Turn]]) -> None:
    for name, turns in turns_by_name.items():
        rate, p50, p99 = (median([turn[place] for turn in turns]) for place in range(3))
        print(f"  {name}: {rate:.0f} requests/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    unanswered = sum(turn.refused + turn.broken for turns in turns_by_name.values() for turn in turns)
    claim("requests that were refused, broke or waited for two seconds", unanswered, 0)
    p99s = {name: [turn.p99 or float("inf") for turn in turns] for name, turns in turns_by_name.items()}
    slow = f"{SILENT:,} silent connections and {SLOW} of a byte a second"
    claim(f"p99 beside {slow} : alone", ratio(p99s["slow"], p99s["alone"]), 1.5, unit="x")
    what = "those, a 16 MiB commit, a list of 100,000 tables and a storage that hangs"
    claim(f"p99 beside {what} : alone", ratio(p99s["all"], p99s["alone"]), 3, unit="x")


def before_it(old: str, path: str, reader: str, admin: str) -> None:
    alone = wrk.ask(old + path, reader, CLIENTS, SECONDS)
    with SlowClients(old, admin):
        slow = wrk.ask(old + path, reader, CLIENTS, SECONDS)
    print(f"  the server before, alone: {alone.rate:.0f} requests/s, p99 {alone.p99:.2f} ms")
    print(
        f"  the server before, beside the slow clients: {slow.answered} answers in {SECONDS} s, "
        f"{slow.broken} requests that waited for two seconds or broke"
    )


def fill_more(storage: str, rounds: int) -> tuple[Callable[[int], dict[str, Ask]], str]:
    """Make a large schema, a table for commits, and for each round a catalog whose storage is silent.

    Returns a function from the round to its requests, and the authorization for them.
    """
    from authz.callers.identity import actor_of, issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, children, schema
    from catalogs.services import catalogs, schemas, tables
    from catalogs.table_stores import TableDraft
    from metalake.kinds import Kind
    from metalake.lineage import Address

    admin = User.objects.get(username="admin")
    owner = actor_of(admin)
    children(schema(owner, "wide"), (f"table_{n:06}" for n in range(TABLES)), Kind.TABLE, admin)
    schema(owner, "own")
    columns: dict[str, Any] = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    tables.create_table(
        owner,
        Address(metalake=METALAKE, catalog=CATALOG, schema="own", leaf="t"),
        TableDraft(columns, None, None, {}),
    )
    keys = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}
    for number in range(rounds):  # a new one for each round, whose breaker is still closed
        properties = {"s3.endpoint": storage, "warehouse": f"s3://lake{number}/tables", **keys}
        catalogs.create_catalog(owner, METALAKE, f"stuck{number}", "relational", "lakehouse-iceberg", None, properties)
        schemas.create_schema(owner, Address(metalake=METALAKE, catalog=f"stuck{number}", schema="s"), None, {})
    wire = f"/iceberg/{METALAKE}/v1"
    commits = [commit("x"), commit("y")]  # in turn, so that each of them changes the table
    creation = orjson.dumps({"name": "t", "schema": columns})

    def asks(number: int) -> dict[str, Ask]:
        return {
            "commits": ("POST", f"{wire}/{CATALOG}/namespaces/own/tables/t", lambda n: commits[n % 2]),
            "lists": ("GET", f"{wire}/{CATALOG}/namespaces/wide/tables", lambda n: None),
            "creations": ("POST", f"{wire}/stuck{number}/namespaces/s/tables", lambda n: creation),
        }

    return asks, f"Bearer {issue_token(admin, 'bench')}"


def commit(letter: str) -> bytes:
    """A commit of almost 16 MiB, the largest that is allowed, with properties of 64 KiB each, also the largest."""
    values = {f"note-{number:03}": letter * 65_536 for number in range(255)}
    return orjson.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": values}]})


# Clients that should not slow down others


class SlowClients:
    """Connections that send nothing, and some that send a byte a second, half of these in a request's head and half in
    its body. One that the server closes is opened again.
    """

    def __init__(self, url: str, authorization: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        named = f"Host: {parts.netloc}\r\nAuthorization: {authorization}\r\n"
        self._head = f"GET /health HTTP/1.1\r\n{named}X-Said: ".encode()
        self._posted = f"POST /api/metalakes HTTP/1.1\r\n{named}Content-Length: 100000\r\n\r\n".encode()
        self._opened = threading.Semaphore(0)

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=asyncio.run, args=(self._all(),))
        self._thread.start()
        for _ in range(SILENT + SLOW):
            assert self._opened.acquire(timeout=30), "the server takes no more connections"
        time.sleep(SETTLE)

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _all(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        clients = [self._client(b"", pause=None) for _ in range(SILENT)]
        clients += [self._client(self._head if n % 2 else self._posted, pause=1.0) for n in range(SLOW)]
        tasks = [asyncio.create_task(client) for client in clients]
        await self._over.wait()
        for client in tasks:
            client.cancel()

    async def _client(self, first: bytes, pause: float | None) -> None:
        """Hold a connection open, sending nothing or a byte at each pause; reconnect when it ends."""
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                self._opened.release()
                try:
                    writer.write(first)
                    await (reader.read() if pause is None else self._drip(reader, writer, pause))
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.2)

    async def _drip(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause: float) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(), pause)  # the server is done with us
                return
            writer.write(b"a")


@contextmanager
def insistent(url: str, authorization: str, asks: dict[str, Ask]) -> Iterator[dict[str, Counter[int]]]:
    """A context with a client for each request, which repeats it once it is answered; yields answers by status."""
    over = threading.Event()
    answers: dict[str, Counter[int]] = {name: Counter() for name in asks}
    connections: dict[str, HTTPConnection] = {}

    def insist(name: str, method: str, path: str, body: Callable[[int], bytes | None]) -> None:
        headers = {"Authorization": authorization, "Content-Type": "application/json"}
        asked = 0
        while not over.is_set():
            connections[name] = HTTPConnection(urlsplit(url).netloc, timeout=60)
            with closing(connections[name]), suppress(OSError, HTTPException):
                while not over.is_set():
                    connections[name].request(method, path, body(asked), headers)
                    asked += 1
                    answer = connections[name].getresponse()
                    answer.read()
                    answers[name][answer.status] += 1
                    if answer.status == 503:
                        over.wait(float(answer.headers["Retry-After"] or 1))
            over.wait(0.1)

    threads = [threading.Thread(target=insist, args=(name, *ask)) for name, ask in asks.items()]
    for thread in threads:
        thread.start()
    time.sleep(SETTLE)
    yield answers
    over.set()
    for connection in connections.values():
        with suppress(OSError, AttributeError):  # it may be closed already
            connection.sock.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()


def summary(answers: dict[str, Counter[int]]) -> str:
    def statuses(counted: Counter[int]) -> str:
        return ", ".join(f"{count} times {status}" for status, count in sorted(counted.items())) or "nothing yet"

    return "; ".join(f"{name} were answered {statuses(counted)}" for name, counted in answers.items())


@contextmanager
def silent_storage() -> Iterator[Silence]:
    """A storage that accepts every connection and, once catalogs are registered on it, never answers."""
    storage = Silence()
    try:
        yield storage
    finally:
        storage.end()


if __name__ == "__main__":
    main(sys.argv[1:])
