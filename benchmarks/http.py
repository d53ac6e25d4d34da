"""An HTTP client to measure with: keep-alive sockets, one thread each, prebuilt requests."""

from __future__ import annotations

import socket
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

LEAD = 2.0  # seconds


@dataclass
class Load:
    """The same GET over and over; `run` returns requests per second, `latencies` are the milliseconds of each.

    With `stays`, each run uses the same connections, so that all of them are with the same processes of the server.
    """

    url: str
    authorization: str = ""
    connections: int = 4
    stays: bool = False
    latencies: list[float] = field(default_factory=list)
    opened: list[socket.socket] = field(default_factory=list)

    def run(self, seconds: float) -> float:
        """Raises AssertionError if an answer is not 200."""
        self.latencies = []
        stop = time.perf_counter() + seconds
        failures: list[str] = []
        if not self.opened:
            self.opened = [_connect(self.url) for _ in range(self.connections)]
        threads = [threading.Thread(target=self._ask, args=(each, stop, failures)) for each in self.opened]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
        if not self.stays:
            self.close()
        assert not failures, failures[0]
        return len(self.latencies) / took

    def close(self) -> None:
        while self.opened:
            self.opened.pop().close()

    def _ask(self, connection: socket.socket, stop: float, failures: list[str]) -> None:
        """Send the request on one connection until the moment `stop` or the first failure."""
        request, latencies = _request(self.url, self.authorization), []
        while (started := time.perf_counter()) < stop:
            connection.sendall(request)
            status, _ = _read_answer(connection)
            if status != 200:
                failures.append(f"{self.url} answered {status}")
                return
            latencies.append((time.perf_counter() - started) * 1000)
        self.latencies += latencies


@dataclass
class Crowd:
    """Users who send the same request at preset times, however long the answers take (open loop)."""

    url: str
    authorizations: Sequence[str]
    expected: Container[int] = (200,)
    answered: Counter[int] = field(default_factory=Counter)  # by status, in the last run

    def run(self, arrivals: Sequence[float]) -> list[float]:
        """Milliseconds from when each request was due until its answer. The users take turns at the arrivals, which are
        seconds after LEAD; during LEAD each of them connects and asks once.

        Raises AssertionError if an answer's status is not expected.
        """
        self.answered.clear()
        users = len(self.authorizations)
        with ThreadPoolExecutor(users) as pool:
            started = time.perf_counter() + LEAD
            due = [started + arrival for arrival in arrivals]
            futures = [pool.submit(self._ask, self.authorizations[n], due[n::users]) for n in range(users)]
            return [latency for future in futures for latency in future.result()]

    def _ask(self, authorization: str, due: Sequence[float]) -> list[float]:
        """Send one user's requests at their moments; returns the milliseconds from each moment to its answer."""
        request, latencies = _request(self.url, authorization), []
        connection = _connect(self.url)
        try:
            connection.sendall(request)
            _, ends = _read_answer(connection)
            for moment in due:
                time.sleep(max(0.0, moment - time.perf_counter()))
                if ends:  # the server closes, so connect anew, which counts in the next answer's time
                    connection.close()
                    connection = _connect(self.url)
                connection.sendall(request)
                status, ends = _read_answer(connection)
                assert status in self.expected, f"{self.url} answered {status}"
                self.answered[status] += 1
                latencies.append((time.perf_counter() - moment) * 1000)
        finally:
            connection.close()
        return latencies


def _request(url: str, authorization: str) -> bytes:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: {authorization}\r\n\r\n".encode()


def _connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _read_answer(connection: socket.socket) -> tuple[int, bool]:
    """The status, 0 if there was no answer, and whether the server closes the connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        some = connection.recv(65536)
        if not some:
            return 0, True
        received += some
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:"))
    left = length - len(body)
    while left > 0:
        left -= len(connection.recv(min(left, 1 << 20)))
    return int(lines[0].split()[1]), b"connection: close" in head.lower()


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()
