"""Large requests have a process of their own: reading megabytes of JSON lets no other thread of a process run.

The process that accepted a connection passes it on, with what it has read of the request, by a pair of sockets that
all of them have from before the fork. The other one reads on, answers and ends the connection.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


class Handover:
    """Made before the fork; either end serves any number of processes."""

    def __init__(self) -> None:
        self.into, self.out_of = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.into.setblocking(False)
        self.out_of.setblocking(False)

    def give(self, client: int, read: bytes) -> bool:
        """A copy of a connection's file, which stays open over there; False where it cannot be given."""
        try:
            with os.fdopen(os.memfd_create("request"), "wb") as file:
                file.write(read)
                file.flush()
                socket.send_fds(self.into, [b"?"], [client, file.fileno()])
        except OSError:  # too many that wait, or too many open files
            return False
        return True

    def take(self) -> tuple[socket.socket, bytes] | None:
        """None where another process was quicker."""
        with suppress(BlockingIOError):
            _, files, _, _ = socket.recv_fds(self.out_of, 1, 2)
            client, kept = files
            with os.fdopen(kept, "rb") as file:
                file.seek(0)
                return socket.socket(fileno=client), file.read()
        return None
