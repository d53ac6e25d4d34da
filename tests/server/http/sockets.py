"""A client that sends what it is told, byte by byte, and reads answers by the letter of RFC 9112."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import orjson

from benchmarks.http import basic
from tests.servers import MetalakeServer

HOST = b"Host: localhost\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d) [\x20-\x7e]*")
_FIELD = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\x20-\x7e\t]*?)[ \t]*")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]  # by name in lower case
    body: bytes

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


class Line:
    """One connection to the server."""

    def __init__(self, server: MetalakeServer, timeout: float = 20, window: int = 0) -> None:
        self.socket = socket.socket()
        if window:  # before the connection, or the other side is told of a larger one
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.came = b""

    def send(self, data: bytes) -> None:
        """A server that has closed already is no failure: what it answered is still there to be read."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def end(self) -> None:
        """Nothing more is sent; answers are still read."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def ask(self, data: bytes, method: bytes = b"GET") -> Answer:
        self.send(data)
        answer = self.answer(method)
        assert answer, "the connection was closed instead"
        return answer

    def answer(self, method: bytes = b"GET") -> Answer | None:
        """The next one, interim ones too; None where the connection was closed. Fails where it is not whole or odd."""
        if not self._fill(lambda came: b"\r\n\r\n" in came):
            assert not self.came, f"it ends in the middle of a head: {self.came!r}"
            return None
        head, _, self.came = self.came.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        status = _STATUS.fullmatch(first)
        assert status, f"no status line: {first!r}"
        fields = [_FIELD.fullmatch(line) for line in lines]
        assert all(fields), f"no header: {head!r}"
        pairs = [(field[1].decode().lower(), field[2].decode()) for field in fields if field]
        headers = dict(pairs)
        names = [name for name, _ in pairs if name != "set-cookie"]
        assert len(names) == len(set(names)), f"a header twice: {names}"
        return Answer(int(status[1]), headers, self._body(int(status[1]), headers, method))

    def _body(self, status: int, headers: dict[str, str], method: bytes) -> bytes:
        if status < 200 or status == 204:
            assert "content-length" not in headers and "transfer-encoding" not in headers, "RFC 9110, 8.6"
            return b""
        if method == b"HEAD" or status == 304:
            return b""
        assert "transfer-encoding" not in headers, "the server is asked for nothing that has no length"
        length = int(headers["content-length"])
        assert self._fill(lambda came: len(came) >= length), f"{len(self.came)} of {length} bytes came"
        body, self.came = self.came[:length], self.came[length:]
        return body

    def _fill(self, enough) -> bool:
        """Read until there is enough; False where the server has closed before."""
        while not enough(self.came):
            try:
                some = self.socket.recv(65536)
            except ConnectionResetError:
                some = b""
            if not some:
                return False
            self.came += some
        return True

    def is_closed(self) -> bool:
        """Waits for it; False where something else comes."""
        return not self._fill(bool)

    def close(self) -> None:
        self.socket.close()


@contextmanager
def line(server: MetalakeServer, timeout: float = 20, window: int = 0) -> Iterator[Line]:
    it = Line(server, timeout, window)
    try:
        yield it
    finally:
        it.close()


def request(method: str, target: str, *lines: str, body: bytes = b"") -> bytes:
    given = [f"{method} {target} HTTP/1.1", "Host: localhost", *lines]
    if body:
        given.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(given) + "\r\n\r\n").encode("latin-1") + body


def admin(server: MetalakeServer) -> str:
    return f"Authorization: {basic('admin', server.admin_password)}"


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def require_told(answer: Answer) -> None:
    """A refusal in a sentence, in the shape that the clients of both wires read."""
    assert answer.headers["content-type"] == "application/json"
    told = orjson.loads(answer.body)
    assert told["code"] and told["type"].endswith("Exception")
    error = told["error"]
    assert (error["code"], error["message"]) == (answer.status, told["message"])
    assert error["type"].endswith("Exception")
    assert told["message"].endswith(".") and len(told["message"].split()) > 3, told["message"]
    assert "%" not in told["message"], "a client formats messages with it"
    assert "date" in answer.headers and answer.headers["x-content-type-options"] == "nosniff"
