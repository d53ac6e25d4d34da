"""Thousands of requests with something wrong in them: each is answered whole or not at all, and no body becomes one.

The seed is fixed, so that what failed once fails again; METALAKE_TEST_SEED sets another.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

from tests.server.http.sockets import HEALTH, chunked, line, request
from tests.servers import MetalakeServer

SEED = int(os.environ.get("METALAKE_TEST_SEED", "11"))
CONNECTIONS, EACH = 1500, 5

NATIVE, ICEBERG = "/api/metalakes", "/iceberg/demo/v1/config?warehouse=lake"
PIECES = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"%", b"\xff", b"0\r\n\r\n", b"\r\n\r\n", b"\x16\x03\x01",
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Content-Length: 99999999999\r\n", b"Connection: close\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
    b"Expect: 100-continue\r\n", b"Host: other.example\r\n", b"Upgrade: h2c\r\n", b" HTTP/1.1\r\n", b"HTTP/1.0",
    b";a=b", b"+", b"-1", b"ffffffffffffffff", b"/../", b"//", b"#", b"http://a.example/", b"GET", b"HEAD", b"\xc3\xbc",
]  # fmt: skip


def seeds(chance: random.Random, name: str) -> bytes:
    """A sound request; a body holds another one, which nobody asked."""
    told = f"X-Request-Id: {name}"
    inner = request("GET", "/health", f"X-Request-Id: in-{name}")
    return chance.choice(
        (
            request("GET", "/health", told),
            request("HEAD", "/health", told),
            request("GET", ICEBERG, told, "Accept: application/json"),
            request("OPTIONS", NATIVE, told),
            request("CLOSE", NATIVE, told),
            request("POST", NATIVE, told, body=inner),
            request("POST", NATIVE, told, "Content-Type: application/json", body=inner),
            request("POST", NATIVE, told, "Transfer-Encoding: chunked") + chunked(inner),
            request("POST", NATIVE, told, "Transfer-Encoding: chunked") + chunked(inner[:9], inner[9:]),
            request("PUT", "/iceberg/demo/v1/lake/x", told, "Transfer-Encoding: chunked") + chunked(b"", inner),
        )
    )


def mutated(chance: random.Random, sent: bytes) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        here, there = sorted((chance.randrange(len(sent) + 1), chance.randrange(len(sent) + 1)))
        there = min(there, here + 12)
        change: Callable[[], bytes] = chance.choice(
            (
                lambda: sent[:here] + bytes([chance.randrange(256)]) + sent[here + 1 :],  # noqa: B023
                lambda: sent[:here] + sent[there:],  # noqa: B023
                lambda: sent[:there] + sent[here:],  # noqa: B023
                lambda: sent[:here] + chance.choice(PIECES) + sent[here:],  # noqa: B023
                lambda: sent[:here] + chance.choice(PIECES) + sent[there:],  # noqa: B023
                lambda: at_a_line(chance, sent),  # noqa: B023
                lambda: sent[:here] + sent[here:there].swapcase() + sent[there:],  # noqa: B023
            )
        )
        sent = change() or b"\r"
    return sent


def at_a_line(chance: random.Random, sent: bytes) -> bytes:
    """A whole header line more, where one could be."""
    start = chance.choice([found.end() for found in re.finditer(rb"\r\n", sent)] or [0])
    return sent[:start] + chance.choice([piece for piece in PIECES if piece.endswith(b"\r\n")]) + sent[start:]


# What may be answered, by a reader that knows nothing but how messages end


def heads(sent: bytes) -> Iterator[bytes]:
    """The heads that RFC 9112 sees, as far as nobody can doubt where each message ends."""
    while sent:
        head, end, rest = sent.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        yield head
        if not end:
            return
        length = body_of(head, rest)
        if length is None:
            return
        sent = rest[length:]


def body_of(head: bytes, rest: bytes) -> int | None:
    """How many bytes the body takes; None where the head is odd or the body is not all there."""
    _, *lines = head.split(b"\r\n")
    fields = [re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*", line) for line in lines]
    if not all(fields) or b"\n" in head.replace(b"\r\n", b""):
        return None
    pairs = [(field[1].lower(), field[2]) for field in fields if field]
    lengths = [value for name, value in pairs if name == b"content-length"]
    codings = [value.lower() for name, value in pairs if name == b"transfer-encoding"]
    if codings:
        return None if lengths or codings != [b"chunked"] else end_of_chunks(rest)
    if not lengths:
        return 0
    if len(lengths) > 1 or not re.fullmatch(rb"[0-9]{1,9}", lengths[0]) or int(lengths[0]) > len(rest):
        return None
    return int(lengths[0])


def end_of_chunks(rest: bytes) -> int | None:
    at = 0
    while size := re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?\r\n").match(rest, at):
        at = size.end() + int(size[1], 16)
        if not int(size[1], 16):
            end = re.compile(rb"(?:[^\r\n]+\r\n)*\r\n").match(rest, at)
            return end.end() if end else None
        if rest[at : at + 2] != b"\r\n":
            return None
        at += 2
    return None


# The attack


def attack(server: MetalakeServer, number: int) -> int:
    """How many answers came."""
    chance = random.Random(f"{SEED} {number}")
    sent = b"".join(mutated(chance, seeds(chance, f"{number}-{each}")) for each in range(EACH)) + HEALTH
    might = list(heads(sent))
    asked = {name[1] for head in might if (name := re.search(rb"(?i)\r\nx-request-id:[ \t]*([^\r\n]*)", head))}
    answers = 0
    with line(server) as client:
        try:
            at = sorted(chance.randrange(len(sent)) for _ in range(chance.choice((0, 0, 1, 5))))
            for start, end in pairwise((0, *at, len(sent))):
                client.send(sent[start:end])
            client.end()
            for head in might:
                method = head.partition(b" ")[0]
                while (answer := client.answer(method)) and answer.status == 100:
                    pass
                if answer is None:
                    break
                answers += 1
                assert answer.status < 500 or answer.status in (501, 505), answer
                told = answer.headers["x-request-id"].encode("latin-1")
                assert not told.startswith(b"in-") or told in asked, f"a body was answered as {told!r}"
                if answer.closes:
                    break
            assert client.is_closed() or (answer and answer.closes and method == b"HEAD")  # refused with a body
        except AssertionError as failure:
            raise AssertionError(f"seed {SEED}, connection {number}: {failure}; sent {sent!r}") from None
    return answers


def test_no_change_of_a_request_makes_another_of_it(server: MetalakeServer) -> None:
    with ThreadPoolExecutor(4) as clients:
        answers = sum(clients.map(partial(attack, server), range(CONNECTIONS)))
    assert answers > CONNECTIONS
