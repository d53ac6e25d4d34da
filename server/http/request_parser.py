"""Parses requests incrementally, and builds the WSGI environment.

Sources: RFC 9112 (HTTP/1.1), sections 2 to 7; PEP 3333 for the environment.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from gunicorn.asgi import parser as letters
from gunicorn.asgi.parser import PythonProtocol

from metalake.bodies import is_delivery, limit_of
from metalake.client_address import is_trusted
from metalake.request_target import path_in, without_prefix
from server.http import limits
from server.http.responses import Refused

Environment = dict[str, Any]

TOO_MUCH = "The server's memory for requests is full; nothing was changed. Try again."
TLS = b"\x16\x03"  # the first bytes of a client that speaks https to this port
MOST_DIGITS = 100  # Python refuses to parse numbers of thousands of digits
TOO_LARGE = "The request body may take {} bytes."
_FIELD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*")  # RFC 9110, 5.1 and 5.5
_READ = re.compile(rb"(GET|HEAD) (/[\x21-\x7e]*) HTTP/1\.1")
_REFUSALS = {
    letters.LimitRequestLine: (414, f"The request line is longer than {limits.LINE} bytes."),
    letters.LimitRequestHeaders: (
        431,
        f"The header has more than {limits.MOST_FIELDS} fields or {limits.FIELDS} bytes.",
    ),
    letters.InvalidHTTPVersion: (505, "This server speaks HTTP/1.1 and HTTP/1.0."),
    letters.InvalidRequestLine: (400, "The first line of the request is not a method, a target and a version."),
    letters.InvalidRequestMethod: (400, "The method of the request is not a word of 3 to 20 capital letters."),
    letters.InvalidHeaderName: (400, "A header field's name has an invalid character, or is not allowed here."),
    letters.UnsupportedTransferCoding: (501, "A body may be sent in chunks, and with no other transfer coding."),
}


@dataclass
class Memory:
    """The bytes that this process buffers for its clients."""

    bodies: int = 0
    others: int = 0  # unsent responses and pipelined bytes, as of the last check

    @property
    def total(self) -> int:
        return self.bodies + self.others


class Known:
    """The header fields of a request, raw and parsed."""

    def __init__(self, fields: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self.fields, self.headers = fields, headers
        self.meta: dict[str, str] | None = None  # those that the fast path uses


class Parser(PythonProtocol):
    """Checks the trailer of a chunked body as strictly as a header, although it is not used."""

    def _find_line(self, limit: int, error: Exception) -> int:
        end = super()._find_line(limit, error)
        if end > 0 and self._chunk_state == "trailer" and not _FIELD.fullmatch(self._buffer, 0, end):
            raise letters.InvalidHeader("The trailer after the body is not a header field")
        return end


class Reader:
    """Reads one request after the other."""

    def __init__(self, peer: tuple[str, int], here: tuple[str, int], memory: Memory) -> None:
        self.peer, self.here, self.memory = peer, here, memory
        self.prefix = settings.METALAKE_PATH_PREFIX.encode()
        self.size = 0  # bytes of the body received so far
        self.known: Known | None = None  # the fields of the last read request
        self.parser = Parser(
            on_header=self._field,
            on_headers_complete=self._head,
            on_body=self._part,
            limit_request_line=limits.LINE,
            limit_request_fields=limits.MOST_FIELDS,
            limit_request_field_size=limits.FIELDS,
        )
        self.forget()

    def forget(self) -> None:
        """Drop the request, before the next one."""
        self.fields = 0  # bytes of them
        self.most = 0  # bytes that the body may take
        self.body, self.pieces = BytesIO(), 0
        self.memory.bodies -= self.size
        self.size = 0
        self.has_begun = self.has_head = self.is_delivery = False

    def feed(self, data: bytes) -> None:
        """Raises Refused."""
        if not self.has_begun:
            if self.known and self._repeats(data, self.known):
                return
            if data.startswith(TLS):
                raise Refused(400, "This port speaks plain HTTP, not TLS: terminate TLS at a proxy in front of it.")
        is_first, self.has_begun = not self.has_begun, True
        try:
            self.parser.feed(data)
        except letters.ParseError as wrong:
            status, why = _REFUSALS.get(type(wrong), (400, f"The request cannot be read: {wrong}."))
            raise Refused(status, why) from None
        if self.parser.is_chunked and self.size + self.parser._chunk_remaining > self.most:
            raise Refused(413, TOO_LARGE.format(self.most))  # known from the chunk's size line
        if is_first and self.is_whole:
            self._remember(data)

    def _remember(self, data: bytes) -> None:
        """Remember the fields of a read that arrived alone and in one piece, for `_repeats`."""
        parser, (line, _, fields) = self.parser, data.partition(b"\r\n")
        is_read = parser.should_keep_alive and not (self.size or parser.is_chunked or self.has_ahead)
        self.known = Known(fields, parser.headers) if is_read and _READ.fullmatch(line) else None

    def _repeats(self, data: bytes, known: Known) -> bool:
        """Accept a read whose header bytes equal those of the previous one, without parsing them again (hot path)."""
        line, _, fields = data.partition(b"\r\n")
        if fields != known.fields or len(line) > limits.LINE or not (read := _READ.fullmatch(line)):
            return False
        parser = self.parser
        parser.method, path = read.groups()
        parser.path = without_prefix(path, self.prefix) if self.prefix else path
        parser.http_version, parser.headers, parser.is_complete = (1, 1), known.headers, True
        self.has_begun = self.has_head = True
        return True

    @property
    def is_head(self) -> bool:
        return self.parser.method == b"HEAD"

    @property
    def has_ahead(self) -> bool:
        """Whether bytes arrived after the complete request."""
        return bool(self.parser.remaining())

    @property
    def is_large(self) -> bool:
        """Whether it goes to the process for large requests, as do all deliveries of a harvest, since they are many."""
        return self.is_delivery or (self.has_head and max(self.size, self.parser.content_length or 0) > limits.LARGE)

    @property
    def is_whole(self) -> bool:
        return self.parser.is_complete

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for 100 Continue before it sends the body."""
        return (
            self.parser.http_version == (1, 1)
            and not self.is_whole
            and any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.parser.headers)
        )

    @property
    def keeps_alive(self) -> bool:
        return self.parser.should_keep_alive

    def next(self) -> bytes:
        """Prepare for the next request; returns the bytes of it that were read already."""
        ahead = self.parser.remaining()
        self.parser.reset()
        self.forget()
        return ahead

    def _field(self, name: bytes, value: bytes) -> None:
        self.fields += len(name) + len(value) + 4
        if self.fields > limits.FIELDS:
            raise letters.LimitRequestHeaders
        if name == b"content-length" and len(value) > MOST_DIGITS:
            raise Refused(400, f"A Content-Length has {MOST_DIGITS} digits at most.")
        if name == b"transfer-encoding" and value.lower() != b"chunked":
            raise letters.UnsupportedTransferCoding  # the parser accepts others without decoding them

    def _head(self) -> bool:
        parser = self.parser
        self.has_head = True
        if self.prefix:
            parser.path = without_prefix(parser.path, self.prefix)
        if parser.http_version == (1, 1) and not any(name == b"host" for name, _ in parser.headers):
            raise Refused(400, "A request of HTTP/1.1 names its host in one Host header.")
        path = path_in(parser.path.decode("latin-1"))
        self.most, self.is_delivery = limit_of(path), is_delivery(path)
        length = parser.content_length or 0
        if length > self.most:
            raise Refused(413, TOO_LARGE.format(self.most))
        if length and self.memory.total + length > limits.MOST_MEMORY:
            raise Refused(503, TOO_MUCH)
        return False

    def _part(self, part: bytes) -> None:
        self.body.write(part)
        self.pieces += 1
        self.size += len(part)
        self.memory.bodies += len(part)
        if self.size > self.most:
            raise Refused(413, TOO_LARGE.format(self.most))
        if self.memory.total > limits.MOST_MEMORY:  # several large bodies may have started while there was room
            raise Refused(503, TOO_MUCH)
        if self.parser.is_chunked and self.pieces > limits.FEW_CHUNKS and self.size < self.pieces * limits.SMALL_CHUNK:
            raise Refused(400, f"Send the body in chunks larger than {limits.SMALL_CHUNK} bytes.")

    def environment(self) -> Environment:
        """The WSGI environment of the whole request."""
        self.body.seek(0)
        parser = self.parser
        target = parser.path.decode("latin-1")
        path, query = path_in(target) or "/", target.partition("?")[2]
        environment: Environment = {
            **_ALWAYS,
            "REQUEST_METHOD": parser.method.decode("latin-1"),
            "RAW_URI": target,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1") if "%" in path else path,
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": "HTTP/1.1" if parser.http_version == (1, 1) else "HTTP/1.0",
            "SERVER_NAME": self.here[0],
            "SERVER_PORT": str(self.here[1]),
            "REMOTE_ADDR": self.peer[0],
            "REMOTE_PORT": str(self.peer[1]),
            "wsgi.input": self.body,
        }
        for name, value in parser.headers:
            if (key := _KEYS.get(name) or _key(name)) is None:
                continue
            text = value.decode("latin-1")
            environment[key] = f"{environment[key]},{text}" if key in environment else text
        if self.size:
            environment["CONTENT_LENGTH"] = str(self.size)
        if environment.get("HTTP_X_FORWARDED_PROTO") == "https" and is_trusted(
            self.peer[0], settings.METALAKE_TRUSTED_PROXIES
        ):
            environment["wsgi.url_scheme"] = "https"
        return environment


def _key(name: bytes) -> str | None:
    """The WSGI key of a header; None for a name with an underscore, which would collide with the one with a dash."""
    if b"_" in name or name == b"transfer-encoding":
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
    if len(_KEYS) < 1000:
        _KEYS[name] = key
    return key


_KEYS: dict[bytes, str] = {}
_ALWAYS: Environment = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}

Application = Callable[[Environment, Callable[..., None]], Any]
