"""The fast path: hot reads of both wires without Django, from the parsed request head to the bytes of the response.

Each is a bounded number of fixed SQL statements (fast_path.py of iceberg_rest and of catalogs). On SQLite, which reads
from memory and never blocks readers, it runs on the event loop; on PostgreSQL, and for lists too long for the loop, in
a short-read thread. Everything else falls back to Django; nothing has changed by then.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from http.client import responses
from typing import Any, NamedTuple, Protocol

from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection
from django.http import QueryDict

from metalake import listeners
from metalake.blocking import BeginAgain
from metalake.bodies import JSON
from metalake.client_address import client_of
from metalake.errors import Invalid
from metalake.headers import BY_CALLER, HARMLESS, REVALIDATED
from metalake.request_context import Door, address, door, request_id
from metalake.request_target import WIRE_NAMES, require_host
from metalake.statements import Fetch, only_by, use_only
from metalake.user_agents import engine_of
from server.http.prepared import OnSqlite, on_postgresql
from server.http.request_parser import Reader
from server.http.responses import now_text
from server.response_log import BODILESS, count_answer, id_of_request

log = logging.getLogger(__name__)

_PLAIN = re.compile(r"/(iceberg|api)/[\x21\x22\x24-\x7e]+")  # an encoded path, with an optional query
_READ = {
    b"authorization": "HTTP_AUTHORIZATION",
    b"x-gravitino-active-roles": "HTTP_X_GRAVITINO_ACTIVE_ROLES",
    b"host": "HTTP_HOST",
    b"accept": "HTTP_ACCEPT",
    b"if-none-match": "HTTP_IF_NONE_MATCH",
    b"accept-encoding": "HTTP_ACCEPT_ENCODING",
    b"x-request-id": "HTTP_X_REQUEST_ID",
    b"x-forwarded-for": "HTTP_X_FORWARDED_FOR",
    b"forwarded": "HTTP_FORWARDED",
    b"user-agent": "HTTP_USER_AGENT",
}
_NOTHING = nullcontext()
_ALWAYS = "".join(f"{name}: {value}\r\n" for name, value in (HARMLESS | {"Cache-Control": REVALIDATED}).items())
_VARY = f"Vary: {BY_CALLER}\r\n"


class HotRead(Protocol):
    """A hot read as its wire declares it."""

    @property
    def operation(self) -> str: ...


class Reply(Protocol):
    """A wire's response; the headers are those that only this response has."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> dict[str, str]: ...


class Wire(NamedTuple):
    """One of the two wires: its routing of a method and path to a hot read, and the hot read's handler."""

    name: str
    hot_read: Callable[[str, str], tuple[Any, dict[str, str]] | None]
    answer: Callable[..., Reply | None]


@dataclass
class Question:
    """A request for a hot read, with what endpoints read of a request (iceberg_rest.routes.Sent)."""

    wire: Wire
    asked: HotRead
    raw: dict[str, str]
    method: str
    path: str
    META: dict[str, str]
    body: bytes = b""

    @property
    def environment(self) -> dict[str, str]:
        """The fields for the access log."""
        query = self.META["QUERY_STRING"]
        target = f"{self.path}?{query}" if query else self.path
        return {"REQUEST_METHOD": self.method, "RAW_URI": target, "REMOTE_ADDR": self.META["REMOTE_ADDR"]}

    @cached_property
    def GET(self) -> QueryDict:
        return QueryDict(self.META["QUERY_STRING"])


class Answered(NamedTuple):
    """The bytes of a response, and the fields for the access log."""

    content: bytes
    status: int
    size: int  # bytes of its body
    request_id: str


class FastReads:
    """The fast path of one process of a server."""

    def __init__(self) -> None:
        # Imported late: by now the process that starts a server has loaded these apps.
        import catalogs.fast_path as native
        import iceberg_rest.fast_path as iceberg
        import metalake.urls  # noqa: F401  (its endpoints add their hot reads)
        from iceberg_rest.urls import hot_read

        wires = Wire("iceberg", hot_read, iceberg.answer), Wire("api", native.hot_read, native.answer)
        self._wires = {wire.name: wire for wire in wires}
        self.never_waits = connection.vendor == "sqlite"
        self._loops_thread: int | None = None
        self._fetch: Fetch = OnSqlite() if self.never_waits else on_postgresql

    def find(self, reader: Reader) -> Question | None:
        """The hot read for a complete request; None if it is not one."""
        parser = reader.parser
        method = parser.method.decode("latin-1")
        target = parser.path.decode("latin-1")
        if method not in ("GET", "HEAD") or reader.size or listeners.listeners or parser.http_version != (1, 1):
            return None
        if not (plain := _PLAIN.fullmatch(target)):
            return None
        wire, (path, _, query) = self._wires[plain[1]], target.partition("?")
        matched = wire.hot_read(method, path[len(wire.name) + 2 :])
        meta = _meta_of(reader) if matched else None
        if not matched or not meta:
            return None
        return Question(wire, *matched, method, path, meta | {"QUERY_STRING": query})

    def settle(self) -> None:
        """Dedicate this thread, which must not use the database otherwise, to the fast path."""
        use_only(self._fetch)
        self._loops_thread = threading.get_ident()

    @property
    def is_in_loop(self) -> bool:
        """Whether this is the dedicated thread of the event loop."""
        return threading.get_ident() == self._loops_thread

    def answer(self, question: Question, closes: bool) -> Answered | None:
        """The response; None if the request has to fall back to Django."""
        started, meta = time.perf_counter(), question.META
        identifier = request_id.set(id_of_request(meta.get("HTTP_X_REQUEST_ID", "")))
        came_from = address.set(client_of(meta, settings.METALAKE_TRUSTED_PROXIES))
        came_by = door.set(Door(WIRE_NAMES[question.wire.name], engine_of(meta.get("HTTP_USER_AGENT", "")), None))
        try:
            require_host(meta, question.wire.name)
            with _NOTHING if self.is_in_loop else only_by(self._fetch):
                reply = question.wire.answer(question.asked, question, question.raw)
            if reply is None:
                return None
            head, body = _head_of(reply, closes), b"" if question.method == "HEAD" else reply.body
            answered = Answered(head + body, reply.status, len(body), request_id.get())
        except (BeginAgain, Invalid, SynchronousOnlyOperation):  # the last for a query set on the event loop
            return None
        except Exception:
            log.exception("the fast path failed; the request falls back to Django")
            return None
        finally:
            door.reset(came_by)
            address.reset(came_from)
            request_id.reset(identifier)
        count_answer(question.wire.name, question.method, reply.status, started)
        return answered


def _meta_of(reader: Reader) -> dict[str, str] | None:
    """The headers that hot reads use, and the client's address; None if a header is repeated."""
    known = reader.known
    if known and known.meta:
        return known.meta
    meta = {"REMOTE_ADDR": reader.peer[0]}
    for name, value in reader.parser.headers:
        if (key := _READ.get(name)) is not None:
            if key in meta:
                return None
            meta[key] = value.decode("latin-1")
    if known:
        known.meta = meta
    return meta


def _head_of(reply: Reply, closes: bool) -> bytes:
    """The head of the response, with its headers in Django's order."""
    status, body = reply.status, reply.body
    kind = f"Content-Type: {JSON}\r\n" if body else ""
    own = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    length = "" if status in BODILESS else f"Content-Length: {len(body)}\r\n"
    vary = "" if "Vary" in reply.headers else _VARY
    last = "Connection: close\r\n" if closes else ""
    head = (
        f"HTTP/1.1 {status} {responses[status]}\r\nDate: {now_text()}\r\n{kind}{own}"
        f"X-Request-Id: {request_id.get()}\r\n{_ALWAYS}{vary}{length}{last}\r\n"
    )
    return head.encode("latin-1")
