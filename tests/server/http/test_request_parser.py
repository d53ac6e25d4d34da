"""Requests that are none: refused in a sentence, and the connection closed where nobody knows what comes next.

Sources: RFC 9112, sections 2 to 7 and 9; RFC 9110, section 10.1.1.
"""

from __future__ import annotations

import socket
import time

import pytest

from server.http import limits
from tests.cases import each
from tests.server.http.sockets import HEALTH, HOST, Line, admin, chunked, line, request, require_told
from tests.servers import MetalakeServer

MIB = 1024 * 1024
NATIVE, ICEBERG = "/api/metalakes", "/iceberg/demo/v1/lake/namespaces"
CHUNKED = "Transfer-Encoding: chunked"
SMUGGLED = request("GET", "/health", "X-Request-Id: smuggled")


def get(*lines: bytes, first: bytes = b"GET /health HTTP/1.1", host: bytes = HOST) -> bytes:
    """A head whose lines are as odd as they are given."""
    return first + b"\r\n" + host + b"".join(each + b"\r\n" for each in lines) + b"\r\n"


def post(body: bytes, *lines: str) -> bytes:
    return request("POST", NATIVE, *(lines or (CHUNKED,))) + body


def first(text: bytes) -> bytes:
    return get(first=text)


# Whose next bytes nobody can tell: refused and closed

BROKEN: dict[str, tuple[set[int], bytes]] = {
    # the request line
    "nonsense": ({400}, b"nonsense\r\n\r\n"),
    "two words": ({400}, first(b"GET /health")),
    "HTTP/0.9": ({400}, b"GET /health\r\n\r\n"),
    "four words": ({400, 505}, first(b"GET /health a HTTP/1.1")),
    "two spaces": ({400, 505}, first(b"GET  /health HTTP/1.1")),
    "a space before": ({400}, first(b" GET /health HTTP/1.1")),
    "a space behind": ({400, 505}, first(b"GET /health HTTP/1.1 ")),
    "a tab between": ({400}, first(b"GET\t/health\tHTTP/1.1")),
    "two empty lines before": ({400}, b"\r\n\r\n" + HEALTH),
    "HTTP/2.0": ({505}, first(b"GET /health HTTP/2.0")),
    "HTTP/3.0": ({505}, first(b"GET /health HTTP/3.0")),
    "HTTP/9.9": ({505}, first(b"GET /health HTTP/9.9")),
    "HTTP/11": ({400, 505}, first(b"GET /health HTTP/11")),
    "HTTP/1.1x": ({400, 505}, first(b"GET /health HTTP/1.1x")),
    "http/1.1": ({400, 505}, first(b"GET /health http/1.1")),
    "HTTP/1.": ({400, 505}, first(b"GET /health HTTP/1.")),
    "another protocol": ({400, 505}, first(b"GET /health RTSP/1.0")),
    "the preface of HTTP/2": ({400, 505}, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"),
    "a method with a space": ({400, 505}, first(b"GE T /health HTTP/1.1")),
    "a method with a bracket": ({400}, first(b"G(T /health HTTP/1.1")),
    "a method with NUL": ({400}, first(b"GE\0T /health HTTP/1.1")),
    "a method beyond ASCII": ({400}, first("GÉT /health HTTP/1.1".encode())),
    "a method of 8,000 bytes": ({400, 501}, first(b"G" * 8000 + b" /health HTTP/1.1")),
    "a method of 100,000 bytes": ({400, 414, 501}, first(b"G" * 100_000 + b" /health HTTP/1.1")),
    "no method": ({400}, first(b" /health HTTP/1.1")),
    # the target
    "no slash": ({400}, first(b"GET health HTTP/1.1")),
    "an authority": ({400}, first(b"GET localhost:8090 HTTP/1.1")),
    "an asterisk": ({400}, first(b"GET * HTTP/1.1")),
    "NUL in the target": ({400}, first(b"GET /health\0 HTTP/1.1")),
    "a control character in the target": ({400}, first(b"GET /hea\x01lth HTTP/1.1")),
    "DEL in the target": ({400}, first(b"GET /hea\x7flth HTTP/1.1")),
    "CR in the target": ({400}, first(b"GET /hea\rlth HTTP/1.1")),
    "a target of 8,191 bytes": ({414}, first(b"GET /" + b"a" * 8177 + b" HTTP/1.1")),
    "a target of 1 MiB": ({414}, first(b"GET /" + b"a" * MIB + b" HTTP/1.1")),
    # line ends
    "bare LF": ({400}, HEALTH.replace(b"\r\n", b"\n")),
    "bare LF in the first line": ({400}, HEALTH.replace(b"\r\n", b"\n", 1)),
    "bare LF at the end": ({400}, HEALTH[:-2] + b"\n"),
    "CR alone": ({400, 408}, HEALTH[:-4] + b"\rX-A: b\r\n\r\n"),
    "LF and CR": ({400}, HEALTH.replace(b"\r\n", b"\n\r")),
    # header fields
    "no colon": ({400}, get(b"bad header")),
    "no name": ({400}, get(b": value")),
    "a space before the colon": ({400}, get(b"X-A : b")),
    "a space in the name": ({400}, get(b"X A: b")),
    "a space before the name": ({400}, get(b" X-A: b", host=b"")),
    "a folded line": ({400}, get(b"X-A: b", b" c")),
    "a folded line by a tab": ({400}, get(b"X-A: b", b"\tc")),
    "NUL in a name": ({400}, get(b"X\0A: b")),
    "NUL in a value": ({400}, get(b"X-A: b\0c")),
    "a control character in a value": ({400}, get(b"X-A: b\x01c")),
    "DEL in a value": ({400}, get(b"X-A: b\x7fc")),
    "a name beyond ASCII": ({400}, get("X-Ü: b".encode())),
    "no host": ({400}, get(host=b"")),
    "two hosts": ({400}, get(b"Host: localhost")),
    "two other hosts": ({400}, get(b"Host: other.example")),
    "101 fields": ({431}, get(*[b"X-A: b"] * 100)),
    "100,000 fields": ({431}, get(*[b"X-A: b"] * 100_000)),
    "a field of 1 MiB": ({431}, get(b"X-A: " + b"b" * MIB)),
    "a name of 1 MiB": ({431}, get(b"X" * MIB + b": b")),
    "fields of more than 17 KiB": ({431}, get(*[b"X-A: " + b"b" * 1000] * 18)),
    "a line without an end": ({431}, HEALTH[:-2] + b"X-A: " + b"b" * 20_000),
    # the length of the body
    "two lengths": ({400}, post(b"a" * 5, "Content-Length: 5", "Content-Length: 50")),
    "one length twice": ({400}, post(b"a" * 5, "Content-Length: 5", "Content-Length: 5")),
    "a list of lengths": ({400}, post(b"a" * 5, "Content-Length: 5, 5")),
    "a length with a sign": ({400}, post(b"a" * 5, "Content-Length: +5")),
    "a length below zero": ({400}, post(b"", "Content-Length: -1")),
    "a length in hex": ({400}, post(b"a" * 5, "Content-Length: 0x5")),
    "a length with an underscore": ({400}, post(b"a" * 5, "Content-Length: 1_0")),
    "a length with a space": ({400}, post(b"a" * 5, "Content-Length: 1 0")),
    "a length with a fraction": ({400}, post(b"a" * 5, "Content-Length: 5.0")),
    "no length": ({400}, post(b"a" * 5, "Content-Length: ")),
    "a length in other digits": ({400}, post(b"a" * 5, "Content-Length: \xb2")),
    "a length beyond the limit": ({413}, post(b"", f"Content-Length: {2 * MIB + 1}")),
    "a length of 30 digits": ({413}, post(b"", f"Content-Length: {'9' * 30}")),
    "a length of 5,000 digits": ({400, 413}, post(b"", f"Content-Length: {'9' * 5000}")),
    "length and chunks": ({400}, post(chunked(b"a"), "Content-Length: 5", CHUNKED)),
    "chunks and length": ({400}, post(chunked(b"a"), CHUNKED, "Content-Length: 5")),
    "length and chunks in other letters": (
        {400},
        post(chunked(b"a"), "content-length: 5", "TRANSFER-ENCODING: CHUNKED"),
    ),
    # transfer codings
    **{
        f"Transfer-Encoding: {coding!r}": ({400, 501}, post(chunked(b"a"), f"Transfer-Encoding: {coding}"))
        for coding in (
            "gzip",
            "identity",
            "gzip, chunked",
            "identity, chunked",
            "chunked, gzip",
            "chunked, identity",
            "chunked, chunked",
            "xchunked",
            "chunked;q=1",
            '"chunked"',
            "\x0bchunked",
            "chu nked",
            "chunked,",
            "",
        )
    },
    "chunks twice": ({400}, post(chunked(b"a"), CHUNKED, CHUNKED)),
    "a space before the colon of chunks": ({400}, post(chunked(b"a"), "Transfer-Encoding : chunked")),
    "chunks in HTTP/1.0": ({400}, post(chunked(b"a")).replace(b"HTTP/1.1", b"HTTP/1.0", 1)),
    # chunks
    **{
        f"a chunk of size {size!r}": ({400, 413}, post(size.encode("latin-1") + b"\r\nabcde\r\n0\r\n\r\n"))
        for size in ("-5", "+5", "0x5", " 5", "5 ", "\t5", "5_", "zz", "", "5,", "\xb2", "5\0", "5\r")
    },
    "a huge chunk": ({400, 413}, post(b"f" * 16 + b"\r\na")),
    "a chunk's size of 17 KiB": ({400, 413}, post(b"f" * 17_000 + b"\r\na")),
    "a chunk's size without an end": ({400, 413}, post(b"0" * 40_000)),
    "a chunk without its end": ({400}, post(b"5\r\nabcdeX0\r\n\r\n")),
    "a chunk that ends by LF": ({400}, post(b"5\r\nabcde\n0\r\n\r\n")),
    "a size that ends by LF": ({400}, post(b"5\nabcde\r\n0\r\n\r\n")),
    "a chunk that is longer than it says": ({400}, post(b"3\r\nabcde\r\n0\r\n\r\n")),
    "an extension with NUL": ({400}, post(b"5;a\0\r\nabcde\r\n0\r\n\r\n")),
    "an extension with CR": ({400}, post(b"5;a\rb\r\nabcde\r\n0\r\n\r\n")),
    "an extension that is none": ({400}, post(b"5;=\r\nabcde\r\n0\r\n\r\n")),
    "an extension of 16 KiB": ({400}, post(b"5;a" + b" " * 16_000 + b"\x01\r\nabcde\r\n0\r\n\r\n")),
    "an extension without an end": ({400}, post(b"5;" + b"a" * 40_000)),
    "a body in chunks of a byte": ({400}, post(chunked(*[b"x"] * 2000))),
    "a body of 3 MiB in chunks": ({413}, post(chunked(*[b" " * 65536] * 48))),
    **{
        f"{name} behind the body": ({400}, post(b"5\r\nabcde\r\n0\r\n" + name.encode() + b": 5\r\n\r\n"))
        for name in ("Content-Length", "Transfer-Encoding", "Host", "Authorization", "content-LENGTH")
    },
    **{
        f"{text!r} behind the body": ({400}, post(b"0\r\n" + text + b"\r\n\r\n"))
        for text in (b"no colon", b"X-A : b", b" X-A: b", b"X-A: b\0", b"\rX-A: b", b"X-A: b\n", b"GET / HTTP/1.1")
    },
    "trailers without an end": ({400, 431}, post(b"0\r\nX-A: " + b"b" * 40_000)),
    "101 trailers": ({400, 431}, post(b"0\r\n" + b"X-A: b\r\n" * 101 + b"\r\n")),
    # other protocols
    "TLS": ({400}, bytes.fromhex("16030100c8010000c40303") + b"\xaa" * 192),
    "the first bytes of TLS": ({400}, bytes.fromhex("1603010200010001fc0303") + b"\xaa" * 300),
    "SSH": ({400}, b"SSH-2.0-OpenSSH_9.2\r\n"),
    "a proxy's first line": ({400}, b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + HEALTH),
    "bytes of nobody": ({400, 414}, bytes(range(256)) * 64),
}


@each("name", BROKEN)
def test_what_cannot_be_read_is_refused_and_ends_its_connection(server: MetalakeServer, name: str) -> None:
    expected, sent = BROKEN[name]
    with line(server, timeout=8) as client:
        client.send(sent + SMUGGLED)
        answer = client.answer()
        assert answer and answer.status in expected, answer
        require_told(answer)
        assert answer.closes
        assert client.is_closed(), f"something else is answered: {client.came!r}"


# Which can be read, and are none of ours: refused by the application, and the connection goes on

ODD: dict[str, tuple[set[int], bytes]] = {
    "a foreign host": ({400}, get(host=b"Host: rebound.example\r\n")),
    "an empty host": ({400}, get(host=b"Host:\r\n")),
    "a host that is none": ({400}, get(host=b"Host: a b/c\r\n")),
    "an absolute target of another": ({400}, first(b"GET http://rebound.example/health HTTP/1.1")),
    "an absolute target without a host": ({400}, first(b"GET http:///health HTTP/1.1")),
    "another scheme": ({400}, first(b"GET ftp://localhost/health HTTP/1.1")),
    "two slashes": ({400}, first(b"GET //health HTTP/1.1")),
    "two slashes and dots": ({400}, first(b"GET //../health HTTP/1.1")),
    "a fragment": ({400}, first(b"GET /health#a HTTP/1.1")),
    "dots": ({404}, first(b"GET /../../etc/passwd HTTP/1.1")),
    "dots below the wires": ({401, 404}, first(b"GET /api/metalakes/../../health HTTP/1.1")),
    "encoded dots": ({404}, first(b"GET /static/%2e%2e/%2e%2e/manage.py HTTP/1.1")),
    "dots below static files": ({404}, first(b"GET /static/../metalake/settings.py HTTP/1.1")),
    "a cut percent": ({401, 404}, first(b"GET /api/metalakes/% HTTP/1.1")),
    "a percent that is none": ({401, 404}, first(b"GET /api/metalakes/%zz HTTP/1.1")),
    "NUL in percent": ({400, 401, 404}, first(b"GET /api/metalakes/%00 HTTP/1.1")),
    "CR and LF in percent": ({400, 401, 404}, first(b"GET /api/metalakes/%0d%0aX-A:%20b HTTP/1.1")),
    "no text in percent": ({400, 401, 404}, first(b"GET /api/metalakes/%ff%fe HTTP/1.1")),
    "an asterisk for OPTIONS": ({400, 404}, first(b"OPTIONS * HTTP/1.1")),
    "a method that nobody knows": ({400, 401, 404, 405, 501}, first(b"BREW /api/metalakes HTTP/1.1")),
    "TRACE": ({400, 401, 404, 405, 501}, first(b"TRACE /api/metalakes HTTP/1.1")),
    "another expectation": ({200, 417}, get(b"Expect: the-best")),
    "an upgrade": ({200}, get(b"Connection: Upgrade", b"Upgrade: websocket")),
    "an upgrade to HTTP/2": ({200}, get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: A")),
    "bytes beyond ASCII in a value": ({200}, get(b"X-A: \xff\xc3\xbc")),
    "a credential of such bytes": ({400, 401}, get(b"Authorization: Basic \xff\xff", first=b"GET /configs HTTP/1.1")),
    "two credentials": ({400, 401}, get(*[b"Authorization: Basic eDp4"] * 2, first=b"GET /configs HTTP/1.1")),
    "one empty line before": ({200}, b"\r\n" + HEALTH),
    "a request of 100 fields": ({200}, get(*[b"X-A: b"] * 99)),
}


@each("name", ODD)
def test_what_leads_nowhere_is_told_so_and_its_connection_goes_on(server: MetalakeServer, name: str) -> None:
    expected, sent = ODD[name]
    with line(server) as client:
        answer = client.ask(sent)
        assert answer.status in expected, answer
        if "json" in answer.headers["content-type"] and answer.status >= 400 and b'"error"' in answer.body:
            assert b"message" in answer.body
        if not answer.closes:
            assert client.ask(HEALTH).status == 200


# Limits: the last that passes and the first that does not


@pytest.mark.parametrize(("length", "status"), [(8189, 404), (8190, 404), (8191, 414)])
def test_the_length_of_the_first_line(server: MetalakeServer, length: int, status: int) -> None:
    text = b"GET /api/" + b"a" * (length - 18) + b" HTTP/1.1"
    assert len(text) == length
    with line(server) as client:
        assert client.ask(first(text)).status == status


def test_the_length_of_all_fields(server: MetalakeServer) -> None:
    """An issuer's token may take 16 KiB; lines are counted as they are sent, with their ends."""
    with line(server) as client:
        token = b"Authorization: Bearer " + b"a" * 16 * 1024
        assert client.ask(get(token, first=b"GET /api/metalakes HTTP/1.1")).status == 401
        room = limits.FIELDS - len(HOST) - len(b"X-A: \r\n")
        assert client.ask(get(b"X-A: " + b"b" * room)).status == 200
        refused = client.ask(get(b"X-A: " + b"b" * (room + 1)))
        assert (refused.status, refused.closes) == (431, True)


@pytest.mark.parametrize("path", [NATIVE, ICEBERG])
def test_a_body_beyond_the_limit_is_refused_before_it_is_sent(server: MetalakeServer, path: str) -> None:
    size = 17 * MIB
    for more in ((), ("Expect: 100-continue",)):
        with line(server) as client:
            refused = client.ask(request("POST", path, f"Content-Length: {size}", *more))
            assert (refused.status, refused.closes) == (413, True), "no 100 either"
            require_told(refused)
            assert client.is_closed()


def test_a_body_beyond_the_limit_is_refused_on_its_way(server: MetalakeServer) -> None:
    for path, limit in ((NATIVE, 2 * MIB), (ICEBERG, 16 * MIB)):
        with line(server) as client:
            client.send(request("POST", path, CHUNKED))
            for _ in range(limit // 65536):
                client.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
            client.send(b"1\r\n \r\n")
            refused = client.answer()
            assert refused and (refused.status, refused.closes) == (413, True)
            require_told(refused)


# Cut off


SOUND = request("POST", NATIVE, "Content-Type: application/json", body=b'{"name": "cut"}')


@pytest.mark.parametrize("length", [1, 3, 20, HEALTH.index(b"\r\n") + 1, len(HEALTH) - 2, len(HEALTH) - 1])
def test_a_head_that_is_cut_is_no_request(server: MetalakeServer, length: int) -> None:
    with line(server) as client:
        client.send(HEALTH[:length])
        client.end()
        answer = client.answer()
        assert answer is None or answer.status == 400
        assert client.is_closed()


def test_a_body_that_is_cut_does_nothing(server: MetalakeServer) -> None:
    """Not even where it says all that is needed."""
    told, body = (admin(server), "Content-Type: application/json"), b'{"name": "cut_off"}'
    for head, sent in (
        (request("POST", NATIVE, *told, f"Content-Length: {len(body) + 1}"), body),
        (request("POST", NATIVE, *told, CHUNKED), chunked(body)[:-2]),
        (request("POST", NATIVE, *told, CHUNKED), chunked(body)[:-5]),
    ):
        for end in (Line.end, Line.close):
            with line(server) as client:
                client.send(head + sent)
                end(client)
                if end is Line.end:
                    answer = client.answer()
                    assert answer is None or answer.status == 400, answer
    with line(server) as client:
        assert client.ask(request("GET", f"{NATIVE}/cut_off", admin(server))).status == 404
        assert client.ask(request("POST", NATIVE, *told, body=b'{"name": "not_cut"}')).status == 200


def test_a_client_that_resets_is_no_failure(server: MetalakeServer) -> None:
    for sent in (b"", HEALTH[:9], HEALTH, SOUND[:-3], HEALTH * 50, BROKEN["nonsense"][1]):
        client = Line(server)
        client.send(sent)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()


# After a refusal


@pytest.mark.parametrize("name", ["nonsense", "a length beyond the limit", "a chunk of size 'zz'", "a field of 1 MiB"])
def test_who_still_sends_hears_the_refusal(server: MetalakeServer, name: str) -> None:
    """Closed with bytes unread, the connection would be reset before its client reads the answer."""
    with line(server) as client:
        client.send(BROKEN[name][1])
        for _ in range(16):
            client.send(b"x" * 65536)
            time.sleep(0.005)
        answer = client.answer()
        assert answer and answer.status in BROKEN[name][0]
