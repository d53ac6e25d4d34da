"""Hands large requests to a process of their own, since parsing megabytes of JSON blocks all threads of a process.

The process that accepted a connection sends it, with the bytes it has read, over a socket pair that all processes
inherit. The other process reads the rest, responds and closes the connection.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


class Handover:
    """The socket pair, created before the fork; any number of processes may use either end."""

    def __init__(self) -> None:
        self.into, self.out_of = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.into.setblocking(False)
        self.out_of.setblocking(False)

    def give(self, client: int, read: bytes) -> bool:
        """Send a copy of a connection's descriptor and the bytes read; False if that fails."""
        try:
            with os.fdopen(os.memfd_create("request"), "wb") as file:
                file.write(read)
                file.flush()
                socket.send_fds(self.into, [b"?"], [client, file.fileno()])
        except OSError:  # too many are waiting, or too many files are open
            return False
        return True

    def take(self) -> tuple[socket.socket, bytes] | None:
        """The next connection and the bytes read from it; None if another process was faster."""
        with suppress(BlockingIOError):
            _, files, _, _ = socket.recv_fds(self.out_of, 1, 2)
            client, request = files
            with os.fdopen(request, "rb") as file:
                file.seek(0)
                return socket.socket(fileno=client), file.read()
        return None
