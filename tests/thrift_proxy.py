"""A way to a Hive metastore on which requests, told apart by their methods, meet the faults of `tests.faults`.

Of its own it knows `broken`: the server's code fails, which thrift answers for every method; and `broken after` and
`down after`: the same, and a MetaException, once the request was applied.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import MetaException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportBase

from tests.faults import Faults

HOST = "127.0.0.1"
SAID = {"down": "Unable to talk to the database", "denied": "Permission denied: user=metalake, access=WRITE"}


class Message(TTransportBase):
    """One message of a stream, taken to its end. Raises EOFError where the stream ends before it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.content = b""
        protocol = TBinaryProtocol(self)
        self.method, _, self.number = protocol.readMessageBegin()
        protocol.skip(TType.STRUCT)
        protocol.readMessageEnd()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise EOFError
        self.content += data
        return data


class Metastore:
    """A connection to the metastore itself."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port))
        self._stream = self._socket.makefile("rb")

    def answer(self, request: Message) -> bytes:
        self._socket.sendall(request.content)
        return Message(self._stream).content

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@contextmanager
def running_proxy(metastore: int, faults: Faults) -> Iterator[int]:
    """The port of the way to the metastore at another port."""
    listener = socket.create_server((HOST, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=handle, args=[connection], daemon=True).start()

    def handle(connection: socket.socket) -> None:
        upstream = Metastore(metastore)
        try:
            with connection, connection.makefile("rb") as stream, suppress(EOFError, OSError):
                while (answer := _answer(Message(stream), upstream, faults, metastore)) is not None:
                    connection.sendall(answer)
        finally:
            upstream.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def _answer(request: Message, upstream: Metastore, faults: Faults, metastore: int) -> bytes | None:
    """None where the connection is to end instead."""
    match faults.next(request.method):
        case "":
            return upstream.answer(request)
        case "lost":
            upstream.answer(request)
        case "dropped":
            pass
        case "late":
            faults.arrive_late(lambda: _apply(request, metastore))
        case "slow" | "slow, dropped" as fault:
            return faults.slow(lambda: upstream.answer(request), arrives=fault == "slow")
        case "broken":
            return _failure(request)
        case "broken after":
            upstream.answer(request)
            return _failure(request)
        case "down" | "denied" as fault:
            return _refusal(request, SAID[fault])
        case "down after":  # as where a listener fails, which is told once all is done
            upstream.answer(request)
            return _refusal(request, SAID["down"])
        case other:
            raise AssertionError(f"a metastore knows no {other}")
    return None


def _apply(request: Message, metastore: int) -> None:
    another = Metastore(metastore)
    another.answer(request)
    another.close()


def _refusal(request: Message, said: str) -> bytes:
    """A MetaException where the method has one; else the server's code fails."""
    result = getattr(ThriftHiveMetastore, f"{request.method}_result")
    for field in result.thrift_spec:
        if field and isinstance(field[3], list) and field[3][0] is MetaException:
            return _written(request, TMessageType.REPLY, result(**{field[2]: MetaException(said)}))
    return _failure(request)


def _failure(request: Message) -> bytes:
    failure = TApplicationException(TApplicationException.INTERNAL_ERROR, f"Internal error processing {request.method}")
    return _written(request, TMessageType.EXCEPTION, failure)


def _written(request: Message, kind: int, body: ThriftHiveMetastore.create_database_result) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(request.method, kind, request.number)
    body.write(protocol)
    protocol.writeMessageEnd()
    return bytes(buffer.getvalue())
