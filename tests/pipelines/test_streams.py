"""What jobs ask in bulk: a stream that breaks anywhere gives the same lines once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from metalake_client import rest
from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client
from pipelines import ndjson_streams

HEAD = {"metalake": "acme", "id": 1, "place": 9}
LINKS = [{"topic": "user_roles", "place": 0, "holder": holder, "has": [5]} for holder in (7, 8)]
THINGS: list[dict[str, Any]] = [{"topic": "object", "place": place, "id": place} for place in (1, 2, 4, 7, 9)]
END = {"end": True}


class Breaking(ThreadingHTTPServer):
    """Answers as the server does, but ends each connection after so many lines; asked for is what was asked."""

    def __init__(self, breaks: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.breaks = breaks
        self.asked: list[dict[str, str]] = []

    def lines(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        after = int(query.get("after", ["0"])[0])
        links = [] if after else LINKS
        return [HEAD, *links, *(thing for thing in THINGS if thing["place"] > after), END]


class _Audit(Breaking):
    rows: list[dict[str, Any]] = []

    def lines(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        after = int(query["after"][0])
        return [HEAD, *(row for row in self.rows if row["place"] > after), END]


class _Handler(BaseHTTPRequestHandler):
    server: Breaking

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.server.asked.append({name: values[0] for name, values in query.items()})
        content = [json.dumps(line).encode() + b"\n" for line in self.server.lines(query)]
        whole = b"".join(content)
        sent = whole
        if self.server.breaks:
            sent = b"".join(content[: self.server.breaks.pop(0)]) + b'{"topic'
        self.send_response(200)
        self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        self.wfile.write(sent)
        self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson_streams, "PAUSE", 0.0)
    monkeypatch.setattr(rest, "LINES_AT_ONCE", 8)  # of what broke off, the last such part is lost


@contextmanager
def serving(breaks: list[int], kind: type[Breaking] = Breaking) -> Iterator[Breaking]:
    server = kind(breaks)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("breaks", [[], [1], [2], [3], [4], [5, 2], [1, 2, 3, 2], [7]])
def test_the_same_lines_come_once(breaks: list[int]) -> None:
    with serving(breaks) as server:
        client = Client(f"http://127.0.0.1:{server.server_port}", token="t", timeout=10)
        lines = list(ndjson_streams.state_of(client, "acme", "2026-01-01T00:00:00Z"))
        assert lines == [HEAD, *LINKS, *THINGS]
        assert server.asked[0] == {"asOf": "2026-01-01T00:00:00Z"}
        assert all(asked["place"] == "9" and "asOf" not in asked for asked in server.asked[1:])


@pytest.mark.parametrize("breaks", [[], [1], [2, 1], [4]])
def test_the_audit_goes_on_with_its_first_place(breaks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"event": "table.created", "place": place} for place in (3, 5, 8)]
    monkeypatch.setattr(_Audit, "rows", rows)
    with serving(breaks, _Audit) as server:
        client = Client(f"http://127.0.0.1:{server.server_port}", token="t", timeout=10)
        assert list(ndjson_streams.audit_of(client, "acme", 2)) == [HEAD, *rows]
        assert server.asked[0] == {"after": "2"}
        assert all(asked["place"] == "9" for asked in server.asked[2:])


def test_who_never_answers_whole_is_given_up() -> None:
    with serving([1] * 20) as server:
        client = Client(f"http://127.0.0.1:{server.server_port}", token="t", timeout=10)
        with pytest.raises(Failure, match="broke off") as given_up:
            list(ndjson_streams.state_of(client, "acme"))
        assert given_up.value.exit_code is Exit.UNREACHABLE
