"""The server by itself, before a small application: who waits, who is turned away, and what a failure leaves behind."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any, cast

import pytest
import uvloop

from metalake.blocking import all_of, may_block
from server.http import limits
from server.http.connection import Connection
from server.http.handover import Handover
from server.http.http_server import HttpServer
from tests.waiting import eventually

READ, OTHER = "/iceberg/r", "/page"


class Answer(list[bytes]):
    def close(self) -> None:
        pass


class Place:
    """A server in a thread of its own, and an application that does what the path's last part says."""

    def __init__(self, handover: Handover | None = None, takes_over: bool = False) -> None:
        self.go = threading.Event()
        self.threads: list[str] = []
        self.loop = uvloop.new_event_loop()
        self.server = HttpServer(self.application, self.loop, handover=None if takes_over else handover)
        self.server.open()
        if handover and takes_over:
            self.loop.add_reader(handover.out_of, self.take_over, handover)
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        accepting = self.loop.create_server(lambda: Connection(self.server), sock=listener)
        self.accepting = self.loop.run_until_complete(accepting)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def take_over(self, handover: Handover) -> None:
        if taken := handover.take():
            client, read = taken
            client.setblocking(False)
            made = self.loop.connect_accepted_socket(lambda: Connection(self.server, read), client)
            self.taken = self.loop.create_task(made)

    def _run(self) -> None:
        looking = self.loop.create_task(self._look())
        self.loop.run_forever()
        looking.cancel()
        self.loop.run_until_complete(self._end(looking))
        # What is left in a loop closes files whose numbers others have meanwhile, when Python collects its garbage.
        self.loop.close()

    async def _end(self, looking: asyncio.Task[None]) -> None:
        """Close every connection, once no thread of the server does anything more."""
        self.accepting.close()
        while not self.server.is_idle:
            for connection in list(self.server.connections):
                connection.transport.abort()
            await asyncio.sleep(0.01)
        await asyncio.wait([looking])

    async def _look(self) -> None:
        while True:
            self.server.check_deadlines()
            await asyncio.sleep(0.02)

    def application(self, environment: dict[str, Any], start: Callable[..., object]) -> Answer:
        self.threads.append(threading.current_thread().name.split()[0])
        act = environment["PATH_INFO"].rpartition("/")[2]
        if act.startswith("wait"):
            self.go.wait(30)
        if act == "wait-list":
            all_of(cast(Any, Rows()))
        elif act == "storage":
            may_block()
        elif act == "list":
            all_of(cast(Any, Rows()))
        elif act == "fail":
            raise SystemExit
        body = environment["wsgi.input"].read() or b"x" * (30_000_000 if act == "much" else 1)
        start("200 OK", [("Content-Type", "text/plain")])
        return Answer([body])

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response, response.read()

    def send(self, text: str) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        client.sendall(text.encode())
        return client

    def hold(self, path: str, how_many: int) -> list[socket.socket]:
        """Clients whose requests take until `go`."""
        return [self.send(f"GET {path}/wait HTTP/1.1\r\nHost: h\r\n\r\n") for _ in range(how_many)]


class Rows(list[int]):
    """More of them than a short read may have, as a query gives them."""

    def __getitem__(self, some: Any) -> Any:
        return range(some.stop)


@contextmanager
def opened(handover: Handover | None = None, takes_over: bool = False, **changed: int) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changed.items():
            patch.setattr(limits, name, value)
        place = Place(handover, takes_over)
        try:
            yield place
        finally:
            place.go.set()
            place.loop.call_soon_threadsafe(place.loop.stop)
            place.thread.join(10)
            assert place.loop.is_closed()


@pytest.fixture
def place() -> Iterator[Place]:
    with opened() as place:
        yield place


def is_busy(answer: tuple[int, HTTPResponse, bytes]) -> None:
    """503 in the shapes of both wires, and the connection stays."""
    status, response, body = answer
    told = json.loads(body)
    assert (status, response.headers["Retry-After"]) == (503, "1")
    assert (told["code"], told["error"]["type"]) == (1007, "ServiceUnavailableException")
    assert "Connection" not in response.headers


def test_a_full_line_of_one_kind_leaves_the_other_kind_alone(settings: Any) -> None:
    settings.METALAKE_THREADS = 2
    with opened(MOST_OTHERS=1) as place:
        clients = place.hold(OTHER, 3)
        assert eventually(lambda: len(place.server.others.since) == 2 and len(place.server.others.line) == 1)
        is_busy(place.ask(OTHER))
        assert place.ask(READ)[0] == 200
        is_busy(place.ask(f"{READ}/storage"))  # it would have to wait with the others
        assert place.ask(READ, "HEAD")[0] == 200
        assert place.ask(OTHER, "HEAD")[2] == b""
        place.go.set()
        assert all(client.recv(100).startswith(b"HTTP/1.1 200") for client in clients)
        assert place.ask(OTHER)[0] == 200


def test_a_read_that_must_wait_begins_again_among_the_others(place: Place) -> None:
    assert place.ask(f"{READ}/storage", body=b"sent")[2] == b"sent"
    assert place.threads == ["reads", "answers"]
    assert place.ask(f"{OTHER}/storage")[0] == 200
    assert place.threads[2:] == ["answers"]


def test_what_nobody_catches_is_a_500_and_the_thread_goes_on(place: Place) -> None:
    for _ in range(20):
        status, _, body = place.ask(f"{READ}/fail")
        assert (status, json.loads(body)["code"]) == (500, 1002)
    assert place.ask(READ)[0] == 200


def test_who_rests_for_longest_makes_room() -> None:
    with opened(MOST_CONNECTIONS=5) as place:
        first = place.send("")
        assert eventually(lambda: len(place.server.connections) == 1)
        slow = place.send("GET /iceberg/r HTTP/1.1\r\n")
        held = place.hold(OTHER, 1)
        assert eventually(lambda: len(place.server.connections) == 3 and len(place.server.others.since) == 1)
        others = [place.send("") for _ in range(3)]
        assert first.recv(10) == b""
        slow.sendall(b"Host: h\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        place.go.set()
        assert held[0].recv(100).startswith(b"HTTP/1.1 200")
        assert len(place.server.connections) <= 5
        assert others


def test_bodies_together_have_a_limit_and_are_given_back() -> None:
    with opened(MOST_MEMORY=1000) as place:
        half = place.send("POST /iceberg/r HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n" + "x" * 800)
        assert eventually(lambda: place.server.memory.bodies == 800)
        status, response, body = place.ask(READ, "POST", b"y" * 300)
        assert (status, response.headers["Retry-After"], b"Try again" in body) == (503, "1", True)
        assert place.ask(READ)[0] == 200
        half.close()
        assert eventually(lambda: place.server.memory.bodies == 0)
        assert place.ask(READ, "POST", b"y" * 300)[2] == b"y" * 300
        assert eventually(lambda: place.server.memory.bodies == 0)


def test_bodies_that_all_began_while_there_was_room_have_the_same_limit() -> None:
    with opened(MOST_MEMORY=1000) as place:
        head = "POST /iceberg/r HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n"
        first, second = place.send(head), place.send(head)
        assert eventually(lambda: sum(each.reader.has_head for each in list(place.server.connections)) == 2)
        first.sendall(b"x" * 600)
        assert eventually(lambda: place.server.memory.bodies == 600)
        second.sendall(b"y" * 600)
        assert second.recv(100).startswith(b"HTTP/1.1 503")
        assert place.server.memory.bodies == 600, "given back before it has gone"
        first.sendall(b"x" * 300)
        assert first.recv(100).startswith(b"HTTP/1.1 200")


def test_who_does_not_take_an_answer_loses_it_and_who_is_slow_gets_it() -> None:
    with opened(STEP=1) as place:
        never = place.send(f"GET {READ}/much HTTP/1.1\r\nHost: h\r\n\r\n")
        slow = place.send(f"GET {READ}/much HTTP/1.1\r\nHost: h\r\n\r\n")
        got = 0
        while got < 30_000_000:
            some = slow.recv(400_000)
            assert some, got
            got += len(some)
            if got < 3_000_000:
                threading.Event().wait(0.3)
        assert eventually(lambda: len(place.server.connections) == 1)
        got = 0
        while some := never.recv(1_000_000):
            got += len(some)
        assert got < 30_000_000
        assert eventually(lambda: place.server.memory.others == 0)


def test_a_closing_door_answers_what_comes_and_says_so(place: Place) -> None:
    held = place.hold(READ, 1)
    resting = place.send(f"GET {READ} HTTP/1.1\r\nHost: h\r\n\r\n")
    assert b"Connection: close" not in resting.recv(1000)
    assert eventually(lambda: len(place.server.reads.since) == 1)
    place.loop.call_soon_threadsafe(setattr, place.server, "is_closing", True)
    assert eventually(lambda: place.server.is_closing)
    resting.sendall(f"GET {READ} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    assert b"Connection: close" in resting.recv(1000)
    place.go.set()
    assert b"Connection: close" in held[0].recv(1000)
    assert eventually(lambda: place.server.is_idle)


def test_each_request_has_a_line_where_the_operator_wants_it(
    place: Place, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    place.ask(READ)
    settings.METALAKE_ACCESS_LOG = True
    with caplog.at_level("INFO", "metalake.access"):
        place.ask(f"{READ}?a=%2F")
        assert eventually(lambda: len(caplog.records) == 1)
        place.send("no request\r\n\r\n").recv(1000)
        assert eventually(lambda: len(caplog.records) == 2)
        place.ask("/invitations/a-secret?x=1")
        assert eventually(lambda: len(caplog.records) == 3)
    told, unreadable, link = (vars(record) for record in caplog.records)
    assert link["target"] == "/invitations/…?x=1"
    assert (told["method"], told["target"], told["status"], told["bytes"]) == ("GET", f"{READ}?a=%2F", 200, 1)
    assert (told["address"], unreadable["status"]) == ("127.0.0.1", 400)


# Large requests


@pytest.fixture
def pair() -> Iterator[tuple[Place, Place]]:
    """A server that hands large requests over, and the one that takes them."""
    handover = Handover()
    with opened(handover, LARGE=1000) as place, opened(handover, takes_over=True) as other:
        yield place, other


def head_of(method: str, path: str, *lines: str) -> str:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: h", *lines, "", ""])


def test_a_large_body_is_read_and_answered_by_the_other_process(pair: tuple[Place, Place]) -> None:
    place, other = pair
    body = b"x" * 3_000_000
    status, response, told = place.ask(READ, "POST", body)
    assert (status, told == body, response.headers["Connection"]) == (200, True, "close")
    assert (place.threads, other.threads) == ([], ["answers"])
    status, response, told = place.ask(READ, "POST", b"x" * 1000)
    assert (status, told, response.headers["Connection"]) == (200, b"x" * 1000, None)
    assert place.threads == ["answers"]
    assert eventually(lambda: not other.server.connections and other.server.memory.total == 0)


def test_each_part_of_a_harvest_is_answered_by_the_other_process(pair: tuple[Place, Place]) -> None:
    place, other = pair
    path = "/api/metalakes/m/catalogs/c/refreshes/7"
    assert place.ask(f"{path}/parts", "POST", b"x")[2] == b"x"
    assert (place.threads, other.threads) == ([], ["answers"])
    assert place.ask(f"{path}/missing", "POST", b"x")[2] == b"x"
    assert (place.threads, other.threads) == (["answers"], ["answers"])


def test_a_large_body_in_chunks_moves_once_it_is_large(pair: tuple[Place, Place]) -> None:
    place, other = pair
    client = place.send(head_of("POST", READ, "Transfer-Encoding: chunked"))
    for _ in range(10):
        client.sendall(b"c8\r\n" + b"x" * 200 + b"\r\n")
    client.sendall(b"0\r\n\r\n")
    answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\n" + b"x" * 2000)
    assert other.threads == ["answers"]


def test_who_asks_first_is_told_once_by_the_other_process(pair: tuple[Place, Place]) -> None:
    place, other = pair
    client = place.send(head_of("POST", READ, "Content-Length: 2000", "Expect: 100-continue"))
    assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"x" * 2000)
    assert read_all(client).startswith(b"HTTP/1.1 200")
    assert other.threads == ["answers"]


def test_a_long_list_is_made_by_the_other_process_and_what_comes_behind_it_is_answered(
    pair: tuple[Place, Place],
) -> None:
    place, other = pair
    client = place.send(head_of("GET", READ) + head_of("GET", f"{READ}/list") + head_of("GET", READ) * 2)
    answer = read_all(client)
    assert answer.count(b"HTTP/1.1 200 OK") == 4
    assert answer.count(b"Connection: close") == 1
    assert (place.threads, other.threads) == (["reads"] * 2, ["reads", "answers", "reads", "reads"])


def test_where_nobody_takes_them_they_stay() -> None:
    handover = Handover()
    with opened(handover, LARGE=1000) as place:
        waiting = []
        while not place.threads:  # as many as wait for the other process, and one more
            waiting.append(place.send(head_of("POST", READ, "Content-Length: 2000") + "x" * 2000))
            assert len(waiting) < 5000
            time.sleep(0.001)
        assert len(waiting) > 1
        assert place.ask(READ, "POST", b"x" * 2000)[0] == 200  # after all that were sent at once and found no place
        place.threads.clear()
        assert place.ask(READ, "POST", b"x" * 2000)[2] == b"x" * 2000
        assert place.ask(f"{READ}/list")[0] == 200
        # One of those that waited may be answered as late as these.
        assert place.threads[0] == place.threads[-1] == "answers" and place.threads.count("reads") == 1


def test_a_closing_server_hands_nothing_over(pair: tuple[Place, Place]) -> None:
    place, other = pair
    place.loop.call_soon_threadsafe(setattr, place.server, "is_closing", True)
    assert eventually(lambda: place.server.is_closing)
    assert place.ask(READ, "POST", b"x" * 2000)[2] == b"x" * 2000
    assert other.threads == []


def test_what_came_while_a_list_was_found_to_be_long_goes_with_it(pair: tuple[Place, Place]) -> None:
    place, other = pair
    client = place.send(head_of("GET", f"{READ}/wait-list"))
    assert eventually(lambda: len(place.server.reads.since) == 1)
    client.sendall(head_of("GET", READ).encode())
    assert eventually(lambda: any(each.ahead for each in list(place.server.connections)))
    other.go.set()
    place.go.set()
    assert read_all(client).count(b"HTTP/1.1 200 OK") == 2
    assert (place.threads, other.threads) == (["reads"], ["reads", "answers", "reads"])


def test_a_server_that_begins_to_close_keeps_what_grows_large(pair: tuple[Place, Place]) -> None:
    place, other = pair
    client = place.send(head_of("POST", READ, "Transfer-Encoding: chunked") + "c8\r\n" + "x" * 200 + "\r\n")
    assert eventually(lambda: any(each.reader.size for each in list(place.server.connections)))
    place.loop.call_soon_threadsafe(setattr, place.server, "is_closing", True)
    assert eventually(lambda: place.server.is_closing)
    client.sendall((b"c8\r\n" + b"x" * 200 + b"\r\n") * 9 + b"0\r\n\r\n")
    assert read_all(client).endswith(b"\r\n\r\n" + b"x" * 2000)
    assert (place.threads, other.threads) == (["answers"], [])


def read_all(client: socket.socket) -> bytes:
    got = b""
    while some := client.recv(100_000):
        got += some
    return got
