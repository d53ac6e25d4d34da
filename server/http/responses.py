"""Responses as bytes: those of the application, and the server's own errors.

Source: RFC 9112 (HTTP/1.1), sections 3 to 7 and 9.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus
from uuid import uuid4

from metalake.headers import HARMLESS, NEVER_STORED

Headers = Iterable[tuple[str, str]]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_date: tuple[int, str] = (0, "")


class Refused(Exception):
    """Raised for a request that the server itself refuses, with a status and an explanation."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


def head(status: str, headers: Headers, connection: str = "") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Date: {now_text()}", *(f"{name}: {value}" for name, value in headers)]
    if connection:
        lines.append(f"Connection: {connection}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def refusal(refused: Refused, *, closes: bool = True, is_head: bool = False) -> bytes:
    """The response to a refused request, as JSON that the clients of both wires read as an error.

    Reference: Gravitino 1.2, Iceberg REST 2.3.
    """
    status = HTTPStatus(refused.status)
    busy = status == HTTPStatus.SERVICE_UNAVAILABLE
    message = refused.why.replace("%", " percent ")  # a client formats messages with the % operator
    code, kind, iceberg = 1001, "IllegalArgumentException", "BadRequestException"
    if busy:
        code, kind, iceberg = 1007, "ConnectionFailedException", "ServiceUnavailableException"
    elif status == HTTPStatus.INTERNAL_SERVER_ERROR:
        code, kind, iceberg = 1002, "InternalError", "ServiceFailureException"
    error = {"message": message, "type": iceberg, "code": status.value}
    body = json.dumps({"code": code, "type": kind, "message": message, "error": error}).encode()
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Request-Id", uuid4().hex),
        *HARMLESS.items(),
        ("Cache-Control", NEVER_STORED),
    ]
    if busy:
        headers.append(("Retry-After", "1"))
    return head(f"{status.value} {status.phrase}", headers, "close" if closes else "") + (b"" if is_head else body)


def now_text() -> str:
    """The Date header, formatted once a second."""
    global _date
    now = int(time.time())
    if _date[0] != now:
        _date = now, formatdate(now, usegmt=True)
    return _date[1]
