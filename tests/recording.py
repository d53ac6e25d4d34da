"""A way to a server that keeps what was said on it: every request and its answer, in the order in which they came."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOST = "127.0.0.1"
OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
UNPACKED = {"accept-encoding"}  # not passed on, so that an answer is kept as it reads


@dataclass
class Exchange:
    """A request and its answer; the names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    status: int = 0
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""
    cookies: list[str] = field(default_factory=list)  # that it sets


@dataclass
class Recorder:
    """`url` is where to send requests instead of to the server."""

    url: str
    exchanges: list[Exchange] = field(default_factory=list)


@contextmanager
def running_recorder(server: str, *, takes_away: str | None = None) -> Iterator[Recorder]:
    """Listen on a port of this machine, and pass on to the server at this URL.

    With `takes_away` it is a proxy in front: it passes on the Host, and paths without that at their beginning.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            sent = {name.lower(): value for name, value in self.headers.items()}
            exchange = Exchange(self.command, self.path, sent, self._body())
            recorder.exchanges.append(exchange)
            _pass_on(exchange, server, takes_away)
            self.send_response(exchange.status)
            for name, value in exchange.answer_headers.items():
                self.send_header(name, value)
            for cookie in exchange.cookies:
                self.send_header("Set-Cookie", cookie)
            self.send_header("Content-Length", str(len(exchange.answer)))
            self.end_headers()
            self.wfile.write(exchange.answer if self.command != "HEAD" else b"")

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def handle(self) -> None:
            with suppress(ConnectionError):  # an engine that leaves
                super().handle()

        def log_message(self, format: str, *args: object) -> None:
            pass

    listening = ThreadingHTTPServer((HOST, 0), Handler)
    recorder = Recorder(f"http://{HOST}:{listening.server_port}")
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield recorder
    finally:
        listening.shutdown()
        listening.server_close()


def _pass_on(exchange: Exchange, server: str, takes_away: str | None) -> None:
    left = (OF_A_CONNECTION | UNPACKED) - ({"host"} if takes_away is not None else set())
    headers = {name: value for name, value in exchange.headers.items() if name not in left}
    connection = HTTPConnection(urlsplit(server).netloc, timeout=60)
    try:
        connection.request(
            exchange.method, exchange.target.removeprefix(takes_away or ""), exchange.body or None, headers
        )
        response = connection.getresponse()
        exchange.answer = response.read()
    finally:
        connection.close()
    exchange.status = response.status
    exchange.cookies = response.headers.get_all("Set-Cookie") or []
    exchange.answer_headers = {
        name.lower(): value
        for name, value in response.getheaders()
        if name.lower() not in OF_A_CONNECTION | {"set-cookie"}
    }
