"""Servers that are no database, or a hostile one, and a way to a database that cuts connections."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select

HOST = "127.0.0.1"
OK = b"\x00\x00\x00\x02\x00\x00\x00"
Talk = Callable[[socket.socket, bytearray], None]


@contextmanager
def listening(talk: Talk) -> Iterator[tuple[int, bytearray]]:
    """The port of a server that talks to each client like this, and all that it was sent."""
    listener, received = socket.create_server((HOST, 0)), bytearray()

    def handle(client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            client.settimeout(5)
            talk(client, received)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=handle, args=[listener.accept()[0]], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], received
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def heard(client: socket.socket, received: bytearray) -> bytes:
    data = client.recv(65_536)
    received += data
    if not data:
        raise EOFError
    return data


def silent(client: socket.socket, received: bytearray) -> None:
    while True:
        heard(client, received)


def web_server(client: socket.socket, received: bytearray) -> None:
    heard(client, received)
    client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def dripping(client: socket.socket, received: bytearray) -> None:
    for byte in packet(0, b"\x0a" + b"8" * 200):
        client.sendall(bytes([byte]))
        time.sleep(0.05)


# MySQL: "Protocol Basics", "Connection Phase"


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def greeting(plugin: bytes) -> bytes:
    capabilities = 0x008FF7FF & ~0x0800  # all of MySQL 8.0 without TLS
    low, high = struct.pack("<H", capabilities & 0xFFFF), struct.pack("<H", capabilities >> 16)
    parts = (b"\x0a8.0.40\0", b"\1\0\0\0", b"saltsalt\0", low, b"\x2d\x02\x00", high, b"\x15", b"\0" * 10, b"s" * 12)
    return packet(0, b"".join(parts) + b"\0" + plugin + b"\0")


def mysql(plugin: bytes, *answers: bytes, endless: bytes = b"") -> Talk:
    """A server that greets, gives these answers one by one, then `endless` to everything."""

    def talk(client: socket.socket, received: bytearray) -> None:
        client.sendall(greeting(plugin))
        for answer in answers:
            client.sendall(packet(heard(client, received)[3] + 1, answer))
        while endless:
            client.sendall(packet(heard(client, received)[3] + 1, endless))
        silent(client, received)

    return talk


def with_tls(port: int, certificate: Path) -> Talk:
    """A way to a PostgreSQL server that speaks TLS, which the suite's own does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    def talk(client: socket.socket, received: bytearray) -> None:
        with socket.create_connection((HOST, port)) as database:
            started = heard(client, received)
            if started[4:8] == struct.pack("!I", 80_877_103):
                client.sendall(b"S")
                client = context.wrap_socket(client, server_side=True)
            else:
                database.sendall(started)
            ends = {client: database, database: client}
            while True:
                for end in select(list(ends), [], [])[0]:
                    data = end.recv(65_536)
                    if not data:
                        return
                    ends[end].sendall(data)

    return talk


def postgresql(code: int) -> Talk:
    """A server without TLS that asks for this authentication (PostgreSQL, "Message Formats")."""

    def talk(client: socket.socket, received: bytearray) -> None:
        if heard(client, received)[4:8] == struct.pack("!I", 80_877_103):
            client.sendall(b"N")
            heard(client, received)
        client.sendall(b"R" + struct.pack("!II", 8, code))
        silent(client, received)

    return talk


@contextmanager
def cutting(port: int, word: str, *, after: bool, again: bool = True) -> Iterator[int]:
    """A way to a database that ends a connection once this word is sent, before or `after` it is done there.

    Without `again` nobody can connect then.
    """
    is_cut = threading.Event()

    def talk(client: socket.socket, received: bytearray) -> None:
        if is_cut.is_set() and not again:
            return
        with socket.create_connection((HOST, port)) as database:
            answers = threading.Event()
            answers.set()
            threading.Thread(target=answer, args=[database, client, answers], daemon=True).start()
            while is_cut.is_set() or word.encode() not in (request := heard(client, received)):
                database.sendall(heard(client, received) if is_cut.is_set() else request)
            is_cut.set()
            answers.clear()
            if after:
                database.sendall(request)
                time.sleep(0.2)
            database.shutdown(socket.SHUT_RDWR)
        time.sleep(0.1)  # until the database knows

    def answer(database: socket.socket, client: socket.socket, answers: threading.Event) -> None:
        with suppress(OSError):
            while (data := database.recv(65_536)) and answers.is_set():
                client.sendall(data)

    with listening(talk) as (own, _):
        yield own
