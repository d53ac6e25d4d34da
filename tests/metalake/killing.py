"""Clients that keep asking while processes of a server are killed or exchanged, and what became of each request."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from math import ceil
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson
import psutil

from pipelines.rest import Client
from tests.connections import clients_of
from tests.servers import MetalakeServer

NATIVE, ICEBERG = "/api/metalakes/demo/catalogs/lake", "/iceberg/demo/v1/lake"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
PATIENCE = 60  # seconds that a client waits for an answer
BREATH = 0.08  # seconds between a writer's commits, so that a table holds all of their properties


class Unanswered(NamedTuple):
    port: int  # the client's, of the connection that it was sent on
    moment: float
    why: str


class Killed(NamedTuple):
    moment: float
    ports: frozenset[int]
    """Its clients', of the connections that it held."""


@dataclass
class Outcome:
    answers: Counter[int] = field(default_factory=Counter)  # by status
    refused: list[str] = field(default_factory=list)  # connections that could not be made
    unanswered: list[Unanswered] = field(default_factory=list)
    acknowledged: dict[str, set[str]] = field(default_factory=dict)  # the properties of each table of a writer
    killed: list[Killed] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # commits that were acknowledged and are not there

    @property
    def unexplained(self) -> list[Unanswered]:
        """Requests without an answer that no killed process held; each of its connections accounts for one."""
        held = [(killed.moment, port) for killed in self.killed for port in killed.ports]
        rest = []
        for one in self.unanswered:
            found = next((each for each in held if each[1] == one.port and each[0] <= one.moment), None)
            if found is None:
                rest.append(one)
            else:
                held.remove(found)
        return rest

    @property
    def failures(self) -> int:
        """Answers that say the server made a mistake."""
        return sum(count for status, count in self.answers.items() if status >= 500 and status != 503)


@dataclass
class SqlCaller:
    """One client and its connection, which it opens anew where it broke or the server says that it ends."""

    url: str
    token: str
    outcome: Outcome
    over: threading.Event
    _connection: HTTPConnection | None = None

    def read(self, paths: list[str]) -> None:
        while not self.over.is_set():
            self.send("GET", random.choice(paths))

    def write(self, table: str) -> None:
        """Commits a property after the other."""
        acknowledged = self.outcome.acknowledged.setdefault(table, set())
        number = 0
        while not self.over.wait(BREATH):
            number += 1
            updates = [{"action": "set-properties", "updates": {f"commit-{number}": "done"}}]
            body = orjson.dumps({"requirements": [], "updates": updates})
            if self.send("POST", f"{ICEBERG}/namespaces/kept/tables/{table}", body) == 200:
                acknowledged.add(f"commit-{number}")

    def send(self, method: str, path: str, body: bytes | None = None) -> int:
        """The answer's status, 0 where there is none."""
        if self._connection is None and not self._connect():
            return 0
        assert self._connection is not None and self._connection.sock is not None
        port = self._connection.sock.getsockname()[1]
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, HTTPException) as broken:
            self.outcome.unanswered.append(Unanswered(port, time.monotonic(), f"{method} {path}: {broken!r}"))
            self._close()
            return 0
        if answer.will_close:
            self._close()
        self.outcome.answers[answer.status] += 1
        return answer.status

    def _connect(self) -> bool:
        parts = urlsplit(self.url)
        made = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        try:
            made.connect()
        except OSError as refusal:
            self.outcome.refused.append(repr(refusal))
            time.sleep(0.1)
            return False
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = made
        return True

    def _close(self) -> None:
        assert self._connection is not None
        self._connection.close()
        self._connection = None


def ask_throughout(
    server: MetalakeServer,
    seconds: float,
    every: float,
    disturb: Callable[[Outcome], None],
    readers: int,
    writers: int,
) -> Outcome:
    """Let clients ask for that long, each as soon as it is answered, and disturb the server every so many seconds."""
    admin = Client(server.url, "admin", server.admin_password)
    token = admin.call("POST", "tokens", body={"name": f"killing-{time.time_ns()}"})["token"]["secret"]
    outcome, over = Outcome(), threading.Event()
    tables = [f"t{time.time_ns()}_{number}" for number in range(writers)]
    askers = [SqlCaller(server.url, token, outcome, over) for _ in range(readers + writers)]
    askers[0].send("POST", f"{ICEBERG}/namespaces", orjson.dumps({"namespace": ["kept"]}))
    for table in tables:
        made = askers[0].send(
            "POST", f"{ICEBERG}/namespaces/kept/tables", orjson.dumps({"name": table, "schema": SCHEMA})
        )
        assert made == 200, (made, outcome)
    outcome.answers.clear()
    paths = [NATIVE, f"{ICEBERG}/namespaces/kept/tables", *(f"{ICEBERG}/namespaces/kept/tables/{t}" for t in tables)]
    threads = [threading.Thread(target=asker.read, args=(paths,)) for asker in askers[:readers]]
    threads += [
        threading.Thread(target=asker.write, args=(table,))
        for asker, table in zip(askers[readers:], tables, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        end = time.monotonic() + seconds
        for _ in range(ceil(seconds / every) - 1):  # however slow the machine is
            time.sleep(every)
            disturb(outcome)
        time.sleep(max(0.0, end - time.monotonic()))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    for table in tables:
        kept = properties_of(table, admin.url, token)
        outcome.lost += [f"{table}: {key}" for key in outcome.acknowledged[table] - kept]
    return outcome


def properties_of(table: str, url: str, token: str) -> set[str]:
    """Their names, as PyIceberg reads them."""
    return set(Client(url, token=token).iceberg("demo", "lake").load_table(("kept", table)).properties)


# What is done to the server


def processes(server: MetalakeServer) -> list[psutil.Process]:
    """Those that answer."""
    assert server.process is not None
    children = psutil.Process(server.process.pid).children()
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


def kill_one(server: MetalakeServer) -> Callable[[Outcome], None]:
    """SIGKILL to one of them. It is stopped for a moment before, so that nothing changes while its connections are
    counted."""

    def kill(outcome: Outcome) -> None:
        victim = random.choice(processes(server))
        victim.suspend()
        outcome.killed.append(Killed(time.monotonic(), clients_of(victim.pid)))
        victim.kill()

    return kill


def exchange(server: MetalakeServer) -> Callable[[Outcome], None]:
    """SIGHUP: others take the place of all of them."""

    def hang_up(outcome: Outcome) -> None:
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGHUP)

    return hang_up
