"""A small HTTP server that answers what a test gives it, for servers that are newer, older or no Metalake at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

UNKNOWN_PATH = {"code": 1003, "type": "NotFoundException", "message": "There is nothing at this path."}
VERSION = {"code": 0, "version": {"version": "1.3.1", "compileDate": "24/11/2026 00:00:00", "gitCommit": "unknown"}}


@dataclass
class StandIn:
    """`answers` are bodies by method and path: data for JSON, bytes as they are, a number and data for a status.

    A function is called with the query. What is not there is answered as Metalake answers an unknown path.
    """

    url: str = ""
    answers: dict[str, Any] = field(default_factory=lambda: {"GET /api/version": VERSION})
    asked: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)  # those of each answer

    def answer(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        split = urlsplit(request.path)
        self.asked.append(f"{request.command} {request.path}")
        if length := int(request.headers.get("Content-Length") or 0):
            self.bodies.append(json.loads(request.rfile.read(length)))
        given = self.answers.get(f"{request.command} {split.path}", (404, UNKNOWN_PATH))
        if callable(given):
            given = given({name: values[0] for name, values in parse_qs(split.query).items()})
        status, body = given if isinstance(given, tuple) else (200, given)
        return status, body if isinstance(body, bytes) else json.dumps(body).encode()


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """Run one on a free port of this machine."""
    stand_in = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            status, body = stand_in.answer(self)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **stand_in.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
