"""Names that lead where a test says, an allow list, local servers that count who called, and a clock for the calls."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from providers import circuit_breaker, remote
from providers.circuit_breaker import Line
from tests.catalogs.conftest import admin as admin
from tests.catalogs.conftest import mia as mia
from tests.catalogs.conftest import otto as otto
from tests.providers.network.calls import CATALOG


class Resolver:
    """Stands for DNS: each lookup of a name takes the next of its answers, the last one again and again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def leads(self, name: str, *answers: list[str]) -> None:
        self.answers[name] = list(answers)

    def getaddrinfo(self, host: str, port: Any, *_: Any, **__: Any) -> list[tuple]:
        self.asked.append(host)
        if host not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self.answers[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        kinds = [(socket.AF_INET6 if ":" in address else socket.AF_INET, address) for address in found]
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for family, address in kinds]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
    return resolver


@pytest.fixture
def allow(settings: Any) -> Callable[..., None]:
    """Set METALAKE_REMOTE_ALLOW for the test; without entries nothing but public addresses is allowed."""

    def set_to(*entries: str) -> None:
        settings.METALAKE_REMOTE_ALLOW = entries

    return set_to


class Site:
    """A local HTTP server that answers each path as it was told, and keeps what it was asked."""

    def __init__(self, answers: dict[str, tuple[int, dict[str, str], bytes]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                site.asked.append((self.command, self.path, dict(self.headers)))
                status, headers, body = site.answers.get(self.path, (404, {}, b"{}"))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else body)

            do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def start(answers: dict[str, tuple[int, dict[str, str], bytes]] | None = None) -> Site:
        sites.append(Site(answers or {}))
        return sites[-1]

    yield start
    for one in sites:
        one.stop()


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    """A fresh one, and no waiting between tries."""
    circuit_breaker.forget(CATALOG)
    monkeypatch.setattr(remote.random, "uniform", lambda low, high: low)
    return circuit_breaker.line_of(CATALOG)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time as the modules have it, which passes when it is told to; `slept` are its pauses."""
    told = SimpleNamespace(now=1000.0, slept=[])
    for module in (remote, circuit_breaker):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: told.now, sleep=told.slept.append))
    return told
