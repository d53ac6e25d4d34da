"""Outside systems whose answers are long, or lie about how long they are: what this process holds of them at once."""

from __future__ import annotations

import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hive_metastore.ThriftHiveMetastore import Processor
from hive_metastore.ttypes import FieldSchema, StorageDescriptor, Table
from pyiceberg.io import FileIO
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from formats.iceberg import storage
from metalake.errors import OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable
from outside.calls import pages
from outside.nesting import _there
from providers.deadline import until
from providers.glue.provider import GlueProvider
from providers.hive import tables
from providers.hive.provider import HiveProvider
from providers.network import response_budget, s3, timed_sockets
from providers.network.storage import open_storage
from providers.remote_objects import Page
from tests.providers.hive.test_errors import reply, serving

LIST_OF_TEXTS, LIST_OF_STRUCTS = b"\x0f\x00\x00\x0b", b"\x0f\x00\x00\x0c"


def hive_at(port: int) -> HiveProvider:
    return HiveProvider(port, {"metastore.uris": f"thrift://127.0.0.1:{port}"})


def glue_at(port: int) -> GlueProvider:
    keys = {"aws-access-key-id": "AKIA", "aws-secret-access-key": "sesame", "warehouse": "s3://lake/warehouse"}
    return GlueProvider(1, keys | {"aws-region": "eu-west-1", "aws-glue-endpoint": f"http://127.0.0.1:{port}"})


def number(of: int) -> bytes:
    return struct.pack(">i", of)


def tells(content: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(2**16)
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**16):  # else the rest of a request resets the connection
            pass

    return answer


@contextmanager
def peak() -> Iterator[list[int]]:
    """The most bytes that were allocated in the block, once it has ended."""
    found: list[int] = []
    tracemalloc.start()
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        reply("get_all_databases", LIST_OF_TEXTS + number(1_000_000)),
        reply("get_all_databases", LIST_OF_TEXTS + number(1) + number(15 * 2**20)),
        reply("get_all_databases", LIST_OF_TEXTS + number(1) + number(2**31 - 1)),
        reply("get_all_databases", LIST_OF_STRUCTS + number(2**31 - 1)),
    ],
    ids=["many names", "long name", "longer name", "other things"],
)
def test_what_an_answer_says_of_its_length_takes_no_memory(content: bytes) -> None:
    with serving(tells(content)) as port, peak() as most, pytest.raises(ProviderUnavailable):
        hive_at(port).schemas.list()
    assert most[0] < 2**20


def test_a_limit_is_named_where_an_announced_length_exceeds_it() -> None:
    content = reply("get_all_databases", LIST_OF_TEXTS + number(1) + number(2**25))
    with serving(tells(content)) as port, pytest.raises(ProviderUnavailable, match="METALAKE_MAX_ANSWER"):
        hive_at(port).schemas.list()


def test_things_of_one_byte_count_as_what_they_take(settings: Any) -> None:
    """A table of one byte takes 330 in memory, so that bytes alone would be no limit."""
    settings.METALAKE_MAX_ANSWER = 2**20
    flood = reply("get_table", b"\x0c\x00\x00\x0f\x00\x08\x0c" + number(500_000) + bytes(500_000))
    with (
        serving(tells(flood)) as port,
        peak() as most,
        pytest.raises(ProviderUnavailable, match="METALAKE_MAX_ANSWER") as refused,
    ):
        hive_at(port).tables.load(["flights"], "delays")
    assert most[0] < 4 * 2**20 and not refused.value.retryable


def test_of_eight_long_answers_at_once_two_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_budget, "LIGHT", 64 * 2**10)
    monkeypatch.setattr(response_budget, "PATIENCE", 0.05)
    names, go = 60_000, threading.Event()
    content = reply("get_all_databases", LIST_OF_TEXTS + number(names))
    content += b"".join(number(5) + b"%05d" % each for each in range(names))

    def stops_before_the_end(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(content)
        go.wait(30)

    def ask(port: int) -> str:
        try:
            hive_at(port).schemas.list()
        except ProviderBusy:
            return "busy"
        except ProviderUnavailable:  # the answer lacks its last byte
            pass
        return "answered"

    def ask_all(ports: list[int]) -> list[str]:
        with ThreadPoolExecutor(8) as threads:
            asked: list[Future[str]] = [threads.submit(ask, port) for port in ports]
            done = as_completed(asked)
            told = [next(done).result() for _ in range(len(ports) - response_budget.PLACES)]
            go.set()
            return [*told, *(each.result() for each in done)]

    with ExitStack() as stack:
        ports = [stack.enter_context(serving(stops_before_the_end)) for _ in range(8)]
        with peak() as of_one:
            go.set()
            ask(ports[0])
        go.clear()
        with peak() as of_eight:
            told = ask_all(ports)
        assert [each == "busy" for each in told] == [True] * 6 + [False] * 2
        assert of_eight[0] < 4 * of_one[0], "two, and the beginnings of six"
        go.clear()
        assert ask_all([ports[0]] * 3)[:1] == ["busy"]
    assert not response_budget._places, "places are given back"


class Warehouse:
    """A metastore of tables with very long comments, which its clients ask for by name."""

    names = [f"t{each:03}" for each in range(120)]

    def get_all_tables(self, database: str) -> list[str]:
        return self.names

    def get_tables_by_type(self, database: str, pattern: str, kind: str) -> list[str]:
        return []

    def get_table_objects_by_name(self, database: str, names: list[str]) -> list[Table]:
        storage = StorageDescriptor(cols=[FieldSchema("carrier", "string", "x" * 30_000)], parameters={})
        return [Table(dbName=database, tableName=name, sd=storage, parameters={}, partitionKeys=[]) for name in names]


def speaks(connection: socket.socket) -> None:
    end = TSocket()
    end.setHandle(connection)
    protocol = TBinaryProtocol(TBufferedTransport(end))
    try:
        while True:
            Processor(Warehouse()).process(protocol, protocol)
    except TTransportException:
        return


def test_a_page_of_heavy_tables_is_shorter() -> None:
    with serving(speaks) as port:
        provider, found, page = hive_at(port), list[list[str]](), None
        while not found or page:
            part = provider.tables.list(["flights"], page, whole=True)
            found.append([table.name for table in part.items])
            page = part.next
    assert [len(names) for names in found] == [50, 50, 20]
    assert [name for names in found for name in names] == Warehouse.names


def test_listings_that_are_kept_have_so_many_names_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_listings", {})
    monkeypatch.setattr(tables, "TABLES", 50)
    monkeypatch.setattr(tables, "MOST_NAMES", 250)
    with serving(speaks) as port:
        for database in ("a", "b", "c"):
            hive_at(port).tables.list([database])
    assert [database for _, database in tables._listings] == ["b", "c"]


@pytest.mark.parametrize("body", [b'{"DatabaseList": "' + b"x" * 2**21, b'{"DatabaseList": [' + b"{}," * 2**13])
def test_an_answer_of_glue_is_only_so_long(body: bytes, settings: Any) -> None:
    settings.METALAKE_MAX_ANSWER = 2**19
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: 99999999\r\n\r\n"
    with serving(tells(head + body)) as port:
        provider = glue_at(port)
        with pytest.raises(ProviderUnavailable, match="METALAKE_MAX_ANSWER") as refused:
            provider.schemas.list()
        assert not refused.value.retryable
        with pytest.raises(OutcomeUnknown, match="METALAKE_MAX_ANSWER"):
            provider.schemas.create(["flights"], provider.schemas.draft(None, {}))


JSON = b"Content-Type: application/x-amz-json-1.1\r\n"
DRIPS = {
    "head": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "heads": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n" + JSON + b"\r\n" + b" " * 70_000, b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + JSON + b"\r\n", b"1\r\n \r\n"),
    "no length": (b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\n", b" "),
}


def drips(beginning: bytes, more: bytes, asked: list[bytes]) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        asked.append(connection.recv(2**16))
        connection.sendall(beginning)
        connection.settimeout(0.02)
        while True:
            connection.sendall(more)
            with suppress(TimeoutError):
                if not connection.recv(2**16):
                    return

    return answer


def s3_at(port: int) -> FileIO:
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}
    return open_storage(1, {"s3.endpoint": f"http://127.0.0.1:{port}", **keys})


@pytest.mark.parametrize("drip", DRIPS)
def test_an_answer_that_drips_comes_to_an_end(drip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes soon after the last one; it is asked for once."""
    monkeypatch.setattr(timed_sockets, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(response_budget, "LIGHT", 2**16)
    asked: list[bytes] = []
    with serving(drips(*DRIPS[drip], asked)) as port:
        provider, io = glue_at(port), s3_at(port)
        with pytest.raises(ProviderTimeout, match=f"127.0.0.1:{port} was not whole after 0.2 seconds"):
            provider.schemas.list()
        with pytest.raises(OutcomeUnknown, match="was not whole"):
            provider.schemas.create(["flights"], provider.schemas.draft(None, {}))
        with pytest.raises(ProviderTimeout):
            storage.is_empty(io, "s3://lake/t")
        assert len(asked) == 3
        with pytest.raises(ProviderUnavailable):
            storage.read_bytes(io, "s3://lake/t/a", 10**6)
        assert not response_budget._places


@pytest.mark.parametrize("flood", [b"<a/>" * 2**13, b"<a>" * 2**13, b"<a " + b"b='' " * 2**13])
def test_lists_of_s3_weigh_what_their_parts_take(flood: bytes, settings: Any) -> None:
    settings.METALAKE_MAX_ANSWER = 2**19
    asked: list[int] = []

    def answer(connection: socket.socket) -> None:
        asked.append(1)
        tells(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(flood) + flood)(connection)

    with serving(answer) as port, pytest.raises(ProviderUnavailable, match="METALAKE_MAX_ANSWER") as refused:
        storage.is_empty(s3_at(port), "s3://lake/t")
    assert len(asked) == 1 and not refused.value.retryable


def test_a_folder_whose_listing_does_not_end_is_not_empty() -> None:
    asked: list[bytes] = []
    content = b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    content += b"<Contents><Key>t/</Key></Contents></ListBucketResult>"

    def answer(connection: socket.socket) -> None:
        while request := connection.recv(2**16):
            asked.append(request)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)

    with serving(answer) as port:
        assert not storage.is_empty(s3_at(port), "s3://lake/t")
    assert len(asked) == s3.MOST_PAGES and b"max-keys=100" in asked[0]


@pytest.mark.parametrize("length", [b"Transfer-Encoding: chunked", b"Content-Length: -1"])
def test_a_file_of_unknown_length_is_refused(length: bytes) -> None:
    content = b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    with serving(tells(content)) as port, pytest.raises(ProviderUnavailable, match="does not say how long"):
        storage.read_bytes(s3_at(port), "s3://lake/a", 10)


def test_a_place_is_taken_where_it_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="outside of places_returned"):
        response_budget.ResponseBudget("airport:9083").add(response_budget.LIGHT + 1)
    monkeypatch.setattr(response_budget, "LIGHT", 10)
    text = b"\x0c\x00\x00\x0b\x00\x01" + number(7) + b"default\x00\x00"
    with serving(tells(reply("get_database", text))) as port:
        hive_at(port).test_connection()
    assert not response_budget._places


class Rounds:
    """A provider whose pages lead back to one of themselves."""

    catalog_id, label = 99, "The airport"

    def call(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"items": [], "next": {None: "1", "1": "2", "2": "3", "3": "2"}[arguments["page"]]}


def test_pages_that_go_round_come_to_an_end() -> None:
    somebody: Any = SimpleNamespace(id=1)
    found = pages(somebody, cast(Any, None), cast(Any, Rounds()), "list_tables")
    with pytest.raises(ProviderUnavailable, match="The airport does not come to the end of list_tables"):
        list(found)
    turning: Any = SimpleNamespace(schemas=SimpleNamespace(list=lambda page=None: Page([], "1")))
    with until(0.0), pytest.raises(ProviderTimeout):
        list(_there(turning))
