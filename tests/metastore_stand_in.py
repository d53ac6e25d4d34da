"""A Hive metastore of many tables in a little memory, which answers as late as it is told, and only what readers ask.

Of a table it knows its name, a comment and when it was made; all else is as in every other one.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from hive_metastore import ThriftHiveMetastore as wire
from hive_metastore.ttypes import Database, FieldSchema, NoSuchObjectException, SerDeInfo, StorageDescriptor, Table
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TMemoryBuffer, TTransportException

HOST = "127.0.0.1"
CHUNK = 64 * 2**10
MADE = 1_700_000_000
COLUMNS = [(f"column_{number:02}", kind) for number in range(4) for kind in ("bigint", "string", "timestamp")]
NAME, COMMENT = "N" * 40, "C" * 20  # in the pattern; names and comments are as long
LIST, END = struct.pack(">bhbi", 15, 0, 12, 0)[:4], b"\0"  # a result whose field 0 is a list of structs


def padded(name: str) -> str:
    """The name of a table here: all are as long."""
    return name + "_" * (len(NAME) - len(name))


@dataclass
class StandIn:
    """Its tables: comment and second of creation by name, by database. It may change while it answers."""

    databases: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    seconds: float = 0.0  # for an answer
    of_table: float = 0.0  # for each table in an answer, too
    down: bool = False  # it takes requests and ends the connection
    when: dict[int, Callable[[], object]] = field(default_factory=dict)  # what happens before the answer of this number
    answers: Counter[str] = field(default_factory=Counter)
    port: int = 0

    @property
    def uri(self) -> str:
        return f"thrift://{HOST}:{self.port}"

    def fill(self, databases: int, tables: int) -> None:
        """So many databases with so many tables in each."""
        for number in range(databases):
            names = (padded(f"table_{each:06}_of_{number:04}") for each in range(tables))
            self.databases[f"database_{number:04}"] = dict.fromkeys(names, ("", MADE))

    def die(self) -> None:
        self.down = True

    def put(self, database: str, table: str, comment: str = "", made: int = MADE) -> None:
        self.databases.setdefault(database, {})[padded(table)] = (comment, made)

    def drop(self, database: str, table: str) -> None:
        del self.databases[database][padded(table)]

    # The wire

    def serve(self, connection: socket.socket) -> None:
        """Answer one connection until it ends."""
        transport = TBufferedTransport(_socket(connection), CHUNK)
        protocol = TBinaryProtocolAccelerated(transport)
        with connection, suppress(TTransportException, OSError, EOFError):
            while not self.down:
                method, _, number = protocol.readMessageBegin()
                asked = getattr(wire, f"{method}_args")()
                asked.read(protocol)
                protocol.readMessageEnd()
                connection.sendall(self._message(method, number, asked))

    def _message(self, method: str, number: int, asked: Any) -> bytes:
        self.when.pop(self.answers.total(), lambda: None)()
        if self.down:
            raise EOFError
        self.answers[method] += 1
        body = getattr(self, f"_{method}")(asked)
        tables = len(asked.tbl_names) if method == "get_table_objects_by_name" else 0
        if wait := self.seconds + self.of_table * tables:
            time.sleep(wait)
        buffer = TMemoryBuffer()
        TBinaryProtocol(buffer).writeMessageBegin(method, TMessageType.REPLY, number)
        return bytes(buffer.getvalue()) + body

    def _get_all_databases(self, asked: Any) -> bytes:
        return _written(wire.get_all_databases_result(success=sorted(self.databases)))

    def _get_database(self, asked: Any) -> bytes:
        if asked.name not in self.databases:
            return _written(wire.get_database_result(o1=NoSuchObjectException(asked.name)))
        made = Database(asked.name, None, f"file:///warehouse/{asked.name}.db", {}, ownerName="hive", ownerType=1)
        return _written(wire.get_database_result(success=made))

    def _get_all_tables(self, asked: Any) -> bytes:
        return _written(wire.get_all_tables_result(success=sorted(self.databases.get(asked.db_name, ()))))

    def _get_tables_by_type(self, asked: Any) -> bytes:
        return _written(wire.get_tables_by_type_result(success=[]))

    def _get_table(self, asked: Any) -> bytes:
        there = self.databases.get(asked.dbname, {}).get(asked.tbl_name)
        if there is None:
            return _written(wire.get_table_result(o2=NoSuchObjectException(asked.tbl_name)))
        return struct.pack(">bh", 12, 0) + _table(asked.dbname, asked.tbl_name, *there) + END

    def _get_table_objects_by_name(self, asked: Any) -> bytes:
        there = self.databases.get(asked.dbname, {})
        tables = [_table(asked.dbname, name, *there[name]) for name in asked.tbl_names if name in there]
        return LIST + struct.pack(">i", len(tables)) + b"".join(tables) + END


def _socket(connection: socket.socket) -> TSocket:
    made = TSocket()
    made.setHandle(connection)
    return made


def _written(result: Any) -> bytes:
    buffer = TMemoryBuffer()
    result.write(TBinaryProtocolAccelerated(buffer))
    return bytes(buffer.getvalue())


_patterns: dict[str, bytes] = {}


def _table(database: str, name: str, comment: str, made: int) -> bytes:
    """A table in thrift's bytes, made from those of a pattern, since the stand-in shares the machine with readers."""
    pattern = _patterns.get(database) or _patterns.setdefault(database, _written(_pattern(database)))
    content = pattern.replace(NAME.encode(), name.encode()).replace(COMMENT.encode(), f"{comment:20.20}".encode())
    return content if made == MADE else content.replace(struct.pack(">i", MADE), struct.pack(">i", made))


def _pattern(database: str) -> Table:
    storage = StorageDescriptor(
        [FieldSchema(f"{name}_{kind}", kind, None) for name, kind in COLUMNS],
        f"file:///warehouse/{database}.db/{NAME}",
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        False,
        -1,
        SerDeInfo(None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"serialization.format": "1"}),
        [],
        [],
        {},
    )
    made = Table(NAME, database, "hive", MADE, 0, 0, storage, [], tableType="EXTERNAL_TABLE")
    made.parameters = {"EXTERNAL": "TRUE", "comment": COMMENT, "transient_lastDdlTime": "1700000000"}
    return made


@contextmanager
def running(stand_in: StandIn) -> Iterator[StandIn]:
    """Serve it in threads of this process, on a free port."""
    listener = socket.create_server((HOST, 0), backlog=64)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=stand_in.serve, args=[connection], daemon=True).start()

    stand_in.port = listener.getsockname()[1]
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield stand_in
    finally:
        listener.close()


def main(databases: int, tables: int, seconds: float, of_table: float) -> None:
    """Serve one in this process until standard input ends; print its URI."""
    stand_in = StandIn(seconds=seconds, of_table=of_table)
    stand_in.fill(databases, tables)
    with running(stand_in):
        print(stand_in.uri, flush=True)  # noqa: T201
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
