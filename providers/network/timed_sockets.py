"""Sockets with a timeout for the whole response: a socket's own timeout restarts with each byte received."""

from __future__ import annotations

from math import inf
from socket import socket
from ssl import SSLSocket
from time import monotonic
from typing import Any

ANSWER_SECONDS = 25.0  # from sending a request to the last byte of its response


class _Timed:
    """A mixin: reads and writes raise TimeoutError after `until`, a value of time.monotonic()."""

    until = inf

    def _limit(self) -> None:
        left = self.until - monotonic()
        if left <= 0:
            raise TimeoutError("The answer took too long.")
        if left < (self.gettimeout() or inf):  # type: ignore[attr-defined]
            self.settimeout(left)  # type: ignore[attr-defined]

    def recv_into(self, *given: Any, **named: Any) -> int:
        self._limit()
        count: int = super().recv_into(*given, **named)  # type: ignore[misc]
        return count

    def send(self, *given: Any, **named: Any) -> int:
        self._limit()
        count: int = super().send(*given, **named)  # type: ignore[misc]
        return count

    def sendall(self, *given: Any, **named: Any) -> None:
        self._limit()
        super().sendall(*given, **named)  # type: ignore[misc]


class TimedSocket(_Timed, socket):
    pass


class TimedTLSSocket(_Timed, SSLSocket):
    """Created by an SSLContext with this `sslsocket_class`."""


def timed(connection: socket) -> TimedSocket:
    """Move the connection to a timed socket; the original is detached."""
    seconds = connection.gettimeout()
    limited = TimedSocket(fileno=connection.detach())
    limited.settimeout(seconds)
    limited.until = monotonic() + ANSWER_SECONDS
    return limited
