"""Requests that reach no endpoint: too large, to nowhere, met by a failure of ours, or saying goodbye."""

from __future__ import annotations

import socket
from http.client import HTTPConnection
from typing import Any

import orjson
import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from benchmarks.http import basic
from metalake.request_context import request_id
from server.middleware import Wire
from tests.servers import MetalakeServer

WIRES = ["/api/nothing", "/iceberg/demo/v1/nothing/here/at/all", "/configs/more", "/health/more", "/metrics/more"]


@pytest.fixture
def client() -> Client:
    """A failure must come as a response, as it does on a server."""
    return Client(raise_request_exception=False)


def passed_on(request: HttpRequest) -> tuple[HttpRequest, HttpResponse]:
    """What the middleware hands to the next one, and what it answers."""
    seen: list[HttpRequest] = []

    def answer(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        return HttpResponse(request_id.get())

    response = Wire(answer)(request)
    return seen[0], response


def test_wires_see_the_raw_path_and_pages_the_decoded_one() -> None:
    wire, _ = passed_on(RequestFactory().get("/api/a b", RAW_URI="/api/a%20b"))
    page, _ = passed_on(RequestFactory().get("/a b", RAW_URI="/a%20b"))
    assert (wire.path_info, page.path_info) == ("/api/a%20b", "/a b")


def test_logs_and_audit_know_the_id_that_the_caller_is_told() -> None:
    for headers in ({}, {"X-Request-Id": "mine"}):
        _, response = passed_on(RequestFactory().get("/api/x", headers=headers))
        assert response.content.decode() == response["X-Request-Id"]
    assert request_id.get() == ""


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*WIRES, "/health", "/nothing", "/configs"])
def test_every_answer_has_id_and_length(client: Client, path: str) -> None:
    answer = client.get(path, headers={"X-Request-Id": "mine"})
    assert answer["X-Request-Id"] == "mine"
    assert answer["Content-Length"] == str(len(answer.content))


def test_a_goodbye_is_answered(client: Client) -> None:
    answer = client.generic("CLOSE", "/api/metalakes")
    assert (answer.status_code, orjson.loads(answer.content)) == (200, {"code": 0})


def test_a_large_body_is_refused_on_the_native_wire(client: Client, settings: Any) -> None:
    settings.METALAKE_MAX_BODY = 100
    refused = client.post("/api/metalakes", b"x" * 101, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (413, "application/json")
    body = orjson.loads(refused.content)
    assert (body["code"], body["type"]) == (1001, "IllegalArgumentException")
    assert "100 bytes" in body["message"]
    assert refused["X-Request-Id"]


def test_a_large_body_is_refused_on_the_iceberg_wire(client: Client, settings: Any) -> None:
    settings.METALAKE_MAX_COMMIT_BODY = 100
    refused = client.post("/iceberg/demo/v1/lake/namespaces", b"x" * 101, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (413, "application/json")
    error = orjson.loads(refused.content)["error"]
    assert (error["code"], error["type"]) == (413, "BadRequestException")
    assert "100 bytes" in error["message"]


@pytest.mark.django_db
def test_a_body_of_exactly_the_limit_is_read(client: Client, settings: Any) -> None:
    settings.METALAKE_MAX_BODY = settings.METALAKE_MAX_COMMIT_BODY = 100
    for path in ("/api/metalakes", "/iceberg/demo/v1/lake/namespaces"):
        assert client.post(path, b"x" * 100, content_type="application/json").status_code == 401


@pytest.mark.parametrize("path", WIRES)
def test_a_path_without_anything_is_told_in_json(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    body = orjson.loads(answer.content)
    if path.startswith("/iceberg"):
        assert (body["error"]["code"], body["error"]["type"]) == (404, "NotFoundException")
    else:
        assert (body["code"], body["type"]) == (1003, "NotFoundException")


def test_a_page_that_is_not_there_is_told_in_html(client: Client) -> None:
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("/iceberg/demo/v1/config", "iceberg_rest.routes.authenticate"),
        ("/api/version", "server.health.commit"),
        ("/metrics", "server.health.generate_latest"),
    ],
)
def test_a_failure_of_ours_is_told_in_json_without_its_cause(
    client: Client, path: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("s3cret")

    monkeypatch.setattr(broken, fail)
    answer = client.get(path)
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/json")
    assert b"s3cret" not in answer.content
    assert b"the request's id is in its log" in answer.content
    assert answer["X-Request-Id"]


# Through the server itself, which must hand over the path as it was sent.


def told(server: MetalakeServer, method: str, target: str, *more: str) -> tuple[int, Any]:
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Connection: close", *more]
    lines.append(f"Authorization: {basic('admin', server.admin_password)}")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        while some := connection.recv(65536):
            answer += some
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), orjson.loads(body)


@pytest.mark.parametrize("name", ["a%2Fb", "a%252Fb", "a%1Fb", "..%2Fb"])
def test_the_server_decodes_nothing(metalake_server: MetalakeServer, name: str) -> None:
    status, body = told(metalake_server, "GET", f"/api/metalakes/demo/catalogs/{name}")
    assert (status, body["type"]) == (404, "NoSuchCatalogException")


def test_the_server_answers_a_goodbye_and_goes_on(metalake_server: MetalakeServer) -> None:
    connection = HTTPConnection("127.0.0.1", metalake_server.port, timeout=30)
    for method, path in (("CLOSE", "/api/metalakes"), ("GET", "/configs")):
        connection.request(method, path)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content


def test_the_server_refuses_a_large_body_before_it_is_sent(metalake_server: MetalakeServer) -> None:
    status, body = told(metalake_server, "POST", "/api/metalakes", "Content-Length: 10000000000")
    assert (status, body["code"]) == (413, 1001)


def test_a_refusal_reaches_who_still_sends_the_body(metalake_server: MetalakeServer) -> None:
    """Closed with bytes unread, the connection would be reset before its client reads the answer."""
    size = 12 * 1024 * 1024
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", metalake_server.port), timeout=60) as connection:
            lines = ["POST /iceberg/gone/v1/lake/namespaces/a/tables/t HTTP/1.1", "Host: 127.0.0.1"]
            lines += [f"Content-Length: {size}", "Content-Type: application/json", "Connection: close"]
            lines.append(f"Authorization: {basic('admin', metalake_server.admin_password)}")
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            for _ in range(size // 65536):
                connection.sendall(b" " * 65536)
            answer = b""
            while some := connection.recv(65536):
                answer += some
        assert answer.startswith(b"HTTP/1.1 404"), answer[:100]
        assert b"NoSuchTableException" in answer
