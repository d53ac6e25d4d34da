"""HTTP/1.1 to the letter, through the server: RFC 9110 and RFC 9112, by the sections that each test names."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from uuid import uuid4

import orjson
import pytest

from tests.server.http.sockets import HEALTH, admin, chunked, line, request, require_told
from tests.servers import MetalakeServer

MIB = 1024 * 1024
NATIVE, ICEBERG = "/api/metalakes", "/iceberg/demo/v1/lake"
JSON = "Content-Type: application/json"


def named(number: int, method: str = "GET", target: str = "/health", *lines: str) -> bytes:
    return request(method, target, f"X-Request-Id: n{number}", *lines)


def new() -> str:
    return f"m{uuid4().hex[:12]}"


# Connections (RFC 9112, 9.3)


def test_one_connection_serves_many_requests(server: MetalakeServer) -> None:
    with line(server) as client:
        for number in range(20):
            answer = client.ask(named(number))
            assert (answer.status, answer.headers["x-request-id"], answer.closes) == (200, f"n{number}", False)


def test_requests_in_a_row_are_answered_in_their_order(server: MetalakeServer) -> None:
    """Also where a later one is answered by others, and sooner (9.3.2)."""
    name, sent = new(), b""
    made = orjson.dumps({"name": name})
    sent += request("POST", NATIVE, admin(server), JSON, "X-Request-Id: n0", body=made)
    sent += named(1, "GET", f"{NATIVE}/{name}", admin(server))
    sent += named(2, "HEAD", f"{NATIVE}/{name}", admin(server))
    sent += named(3, "POST", f"{NATIVE}/nowhere", admin(server), "Transfer-Encoding: chunked") + chunked(b"{}", b" ")
    sent += named(4, "GET", "/static/frontend/tokens.css")
    sent += named(5, "OPTIONS", NATIVE)
    sent += b"".join(named(number) for number in range(6, 30))
    with line(server) as client:
        client.send(sent)
        statuses = []
        for number in range(30):
            answer = client.answer(b"HEAD" if number == 2 else b"GET")
            assert answer and answer.headers["x-request-id"] == f"n{number}", answer
            statuses.append(answer.status)
        assert statuses[:3] == [200, 200, 200] and set(statuses[4:5] + statuses[6:]) == {200}, statuses
        assert client.ask(HEALTH).status == 200


def test_requests_come_in_any_pieces(server: MetalakeServer) -> None:
    sent = named(0) + named(1, "POST", NATIVE, "Transfer-Encoding: chunked") + chunked(b"ab", b"c") + named(2)
    for size in (1, 2, 7):
        with line(server) as client:
            for start in range(0, len(sent), size):
                client.send(sent[start : start + size])
            answers = [client.answer() for _ in range(3)]
            assert [answer.status for answer in answers if answer] == [200, 401, 200]
            assert [answer.headers["x-request-id"] for answer in answers if answer] == ["n0", "n1", "n2"]


def test_more_requests_in_a_row_than_are_read_ahead(server: MetalakeServer) -> None:
    number = 2000
    with line(server) as client, ThreadPoolExecutor(1) as sender:
        sending = sender.submit(client.send, b"".join(named(each) for each in range(number)))
        for each in range(number):
            answer = client.answer()
            assert answer and (answer.status, answer.headers["x-request-id"]) == (200, f"n{each}")
        sending.result()


@pytest.mark.parametrize("how", ["close", "Close", "foo, close", "close, keep-alive"])
def test_who_asks_for_the_end_gets_it(server: MetalakeServer, how: str) -> None:
    """And nothing is answered that comes behind (9.6)."""
    with line(server) as client:
        client.send(named(0, "GET", "/health", f"Connection: {how}") + named(1))
        answer = client.answer()
        assert answer and (answer.status, answer.closes) == (200, True)
        assert client.is_closed()


def test_a_client_of_1_0(server: MetalakeServer) -> None:
    """Closed, unless it asks for more (9.3); it needs no Host, and knows no 100 (RFC 9110, 10.1.1)."""
    old = b"GET /health HTTP/1.0\r\n"
    with line(server) as client:
        client.send(old + b"\r\n" + HEALTH)
        answer = client.answer()
        assert answer and answer.status == 200
        assert client.is_closed()
    with line(server) as client:
        for _ in range(2):
            answer = client.ask(old + b"Connection: keep-alive\r\n\r\n")
            assert (answer.status, answer.headers["connection"].lower()) == (200, "keep-alive")
    with line(server) as client:
        head = b"POST /api/metalakes HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        client.send(head)
        time.sleep(0.2)
        answer = client.ask(b"{}")
        assert answer.status == 401, "an interim answer"


def test_who_sends_no_more_still_hears_all_answers(server: MetalakeServer) -> None:
    """A client may close its own half as soon as it has asked (9.6)."""
    with line(server) as client:
        client.send(named(0))
        client.end()
        answer = client.answer()
        assert answer and (answer.status, answer.headers["x-request-id"]) == (200, "n0")
        assert client.is_closed()
    with line(server) as client:  # while an answer is on its way
        client.send(request("GET", "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"))
        client.end()
        assert len(client.answer().body) > MIB
        assert client.is_closed()
    with line(server) as client:
        client.send(named(0) + named(1, "POST", NATIVE, "Transfer-Encoding: chunked") + chunked(b"{}") + named(2))
        client.end()
        answers = [client.answer() for _ in range(3)]
        assert [answer.headers["x-request-id"] for answer in answers if answer] == ["n0", "n1", "n2"]
        assert client.is_closed()


# Answers


TARGETS = ["/health", "/login", "/static/frontend/tokens.css", NATIVE, f"{ICEBERG}/namespaces", "/metrics", "/nothing"]


@pytest.mark.parametrize("target", TARGETS)
def test_head_is_get_without_its_body(server: MetalakeServer, target: str) -> None:
    """RFC 9110, 9.3.2: the same fields; the connection goes on behind them."""
    credential = [] if target == "/metrics" else [admin(server)]
    with line(server) as client:
        got = client.ask(request("GET", target, *credential))
        told = client.ask(request("HEAD", target, *credential), b"HEAD")
        assert told.body == b"" and "content-length" in told.headers
        if told.status != 405:  # where nobody asks for it
            assert (told.status, told.headers["content-type"]) == (got.status, got.headers["content-type"])
        assert client.ask(HEALTH).status == 200


@pytest.mark.parametrize("target", TARGETS)
def test_every_answer_is_dated(server: MetalakeServer, target: str) -> None:
    """RFC 9110, 6.6.1."""
    with line(server) as client:
        dated = parsedate_to_datetime(client.ask(request("GET", target)).headers["date"])
        assert abs(dated.timestamp() - time.time()) < 60


def test_answers_without_a_body(server: MetalakeServer) -> None:
    """204 tells no length (RFC 9110, 8.6), and 304 none that is not the file's."""
    name = new()
    with line(server) as client:
        made = orjson.dumps({"namespace": [name]})
        assert client.ask(request("POST", f"{ICEBERG}/namespaces", admin(server), JSON, body=made)).status == 200
        one = f"{ICEBERG}/namespaces/{name}"
        assert client.ask(request("HEAD", one, admin(server)), b"HEAD").status == 204
        assert client.ask(request("DELETE", one, admin(server)), b"DELETE").status == 204
        file = client.ask(request("GET", "/static/frontend/tokens.css"))
        for known in ("etag", "last-modified"):
            if known not in file.headers:
                continue
            asked = "If-None-Match" if known == "etag" else "If-Modified-Since"
            unchanged = client.ask(request("GET", "/static/frontend/tokens.css", f"{asked}: {file.headers[known]}"))
            assert unchanged.status == 304
            length = file.headers["content-length"]
            assert unchanged.headers.get("content-length", length) == length
        assert client.ask(HEALTH).status == 200


def test_a_goodbye_of_the_native_client(server: MetalakeServer) -> None:
    with line(server) as client:
        for lines in ((), ("Connection: close",)):
            answer = client.ask(request("CLOSE", NATIVE, *lines))
            assert (answer.status, orjson.loads(answer.body)) == (200, {"code": 0})
        assert client.is_closed()


# Bodies


def test_a_body_may_come_in_chunks(server: MetalakeServer) -> None:
    """With extensions and trailers, which nobody reads (RFC 9112, 7.1)."""
    for number, sent in enumerate(
        (
            chunked(b'{"name": "', b"NAME", b'"}'),
            b'A\r\n{"name": "\r\n00d;a=b;c\r\nNAME\r\n2;q="x y"\r\n"}\r\n000;last\r\nX-A: b\r\nX-C: d\r\n\r\n',
        )
    ):
        name = new()
        head = request(
            "POST",
            NATIVE,
            admin(server),
            JSON,
            "Transfer-Encoding: CHUNKED" if number else "Transfer-Encoding: chunked",
        )
        with line(server) as client:
            if not number:
                sent = chunked(b'{"name": "', name.encode(), b'"}')
            made = client.ask(head + sent.replace(b"NAME", name.encode()))
            assert (made.status, orjson.loads(made.body)["metalake"]["name"]) == (200, name)
            assert client.ask(request("GET", f"{NATIVE}/{name}", admin(server))).status == 200


def test_a_body_of_a_request_that_needs_none_is_no_request(server: MetalakeServer) -> None:
    with line(server) as client:
        inner = named(7)
        for method in ("GET", "DELETE", "OPTIONS", "CLOSE"):
            assert client.ask(request(method, "/configs", body=inner)).status in (200, 401, 404, 405)
            assert client.ask(request(method, "/configs", "Transfer-Encoding: chunked") + chunked(inner)).status < 500
            assert client.ask(named(1)).headers["x-request-id"] == "n1"


def test_who_asks_first_whether_its_body_is_wanted(server: MetalakeServer) -> None:
    """RFC 9110, 10.1.1: told to go on; or refused, and then not told to."""
    name = new()
    body = orjson.dumps({"name": name})
    expects = ("Expect: 100-continue", admin(server), JSON)
    with line(server) as client:
        assert client.ask(request("POST", NATIVE, *expects, f"Content-Length: {len(body)}")).status == 100
        assert client.ask(body).status == 200
        # whoever does not wait is not told, or is: both are right
        client.send(request("POST", NATIVE, *expects, body=body))
        answer = client.answer()
        if answer and answer.status == 100:
            answer = client.answer()
        assert answer and answer.status == 409
        assert client.ask(request("POST", NATIVE, *expects, "Transfer-Encoding: chunked")).status == 100
        assert client.ask(chunked(body)).status == 409
    with line(server) as client:
        refused = client.ask(request("POST", NATIVE, *expects, f"Content-Length: {3 * MIB}"))
        assert (refused.status, refused.closes) == (413, True)
        require_told(refused)
    with line(server) as client:
        assert client.ask(request("GET", "/health", "Expect: 100-continue")).status == 200


def test_names_of_fields_are_not_mixed_up(server: MetalakeServer) -> None:
    """X_Request_Id is not X-Request-Id, and no field says what the body's length or the path is."""
    body = orjson.dumps({"name": new()})
    odd = (
        "X_Request_Id: underscored",
        "Content_Length: 3",
        "Transfer_Encoding: chunked",
        "CONTENT-TYPE: application/json",
        "PATH_INFO: /x",
    )
    with line(server) as client:
        made = client.ask(request("POST", NATIVE, admin(server), *odd, body=body))
        assert (made.status, made.headers["x-request-id"] != "underscored") == (200, True)
        assert client.ask(HEALTH).status == 200
