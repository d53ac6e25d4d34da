"""Requests that the server itself cannot read: still JSON, never a page."""

from __future__ import annotations

import json
import socket

import pytest

from tests.servers import MetalakeServer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /api/version HTTP/9.9\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /iceberg/demo/v1/config HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
    ],
)
def test_it_answers_json(metalake_server: MetalakeServer, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", metalake_server.port), timeout=10) as connection:
        connection.sendall(request_)
        answer = b""
        while some := connection.recv(65536):
            answer += some
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 414", b"HTTP/1.1 431", b"HTTP/1.1 505")), head
    told = json.loads(body)
    assert told["code"] == 1001 and told["error"]["message"] == told["message"]
