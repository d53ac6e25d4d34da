"""What a Hive catalog says of metastores that are wrong, gone, or go in the middle of a call."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from metalake.errors import (
    Invalid,
    MetalakeError,
    NotFound,
    OutcomeUnknown,
    ProviderTimeout,
    ProviderUnavailable,
    Unsupported,
)
from providers.base import Provider
from providers.hive import client as hive_client
from providers.hive.provider import HiveProvider
from providers.registry import provider_class
from providers.remote_objects import Levels
from tests.cases import each
from tests.hms import HiveMetastore
from tests.ports import free_port
from tests.providers.behaviours import asked, create

HOST = "127.0.0.1"


def provider_at(*ports: int) -> HiveProvider:
    return HiveProvider(1, {"metastore.uris": ",".join(f"thrift://{HOST}:{port}" for port in ports)})


@pytest.fixture(autouse=True)
def no_idle_connections() -> Iterator[None]:
    hive_client._idle.close_all()
    yield
    hive_client._idle.close_all()


# Settings


def test_it_is_registered() -> None:
    assert provider_class("hive") is HiveProvider and issubclass(HiveProvider, Provider)


@each(
    "properties, error, said",
    [
        ({}, Invalid, "metastore.uris"),
        ({"metastore.uri": "thrift://hive:9083"}, Invalid, "did you mean 'metastore.uris'"),
        ({"metastore.uris": "http://hive:9083"}, Invalid, "'metastore.uris'.*thrift://"),
        ({"metastore.uris": "thrift://hive:9083,"}, Invalid, "divided by commas"),
        ({"metastore.uris": "thrift://169.254.169.254:80"}, Invalid, "never connects"),
        ({"metastore.uris": "thrift://hive", "cache-ttl": "soon"}, Invalid, "'cache-ttl'"),
        ({"metastore.uris": "thrift://hive", "list-all-tables": "some"}, Invalid, "'list-all-tables'"),
        ({"metastore.uris": "thrift://hive", "kerberos.principal": "x@Y"}, Unsupported, "Kerberos"),
        ({"metastore.uris": "thrift://hive", "impersonation-enable": "True"}, Unsupported, "Kerberos"),
        (
            {"metastore.uris": "thrift://hive", "gravitino.bypass.hive.metastore.sasl.enabled": "true"},
            Unsupported,
            "Kerberos",
        ),
    ],
)
def test_wrong_settings_are_named(properties: dict[str, str], error: type[MetalakeError], said: str) -> None:
    with pytest.raises(error, match=said):
        HiveProvider.check(properties)


def test_settings_of_others_are_kept() -> None:
    uris = "thrift://hive-1:9083, thrift://hive-2"
    more = {"client.pool-size": "4", "impersonation-enable": "false", "gravitino.bypass.hive.x": "y"}
    HiveProvider.check({"metastore.uris": uris, **more})
    provider = HiveProvider(1, {"metastore.uris": uris, **more})
    assert [(each.host, each.port) for each in provider.endpoints] == [("hive-1", 9083), ("hive-2", 9083)]


# What is no metastore


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server whose every connection is given to `answer`, each in a thread; its port."""
    listener = socket.create_server((HOST, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

    def handle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def says(content: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(content)
        connection.recv(1000)

    return answer


def waits(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.recv(1000)


def hangs_up(connection: socket.socket) -> None:
    connection.recv(1000)


def reply(method: str, body: bytes) -> bytes:
    """A thrift answer with whatever as its body."""
    buffer = TMemoryBuffer()
    TBinaryProtocol(buffer).writeMessageBegin(method, TMessageType.REPLY, 0)
    return bytes(buffer.getvalue()) + body


GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "sasl": b"\x04\x00\x00\x00\x13Invalid status -128",
    "tls": b"\x15\x03\x01\x00\x02\x02\x46",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "another version": b"\x80\x02\x00\x02" + bytes(60),
    "long name": b"\x80\x01\x00\x02\x7f\xff\xff\xff" + b"x" * 100,
    "nameless": reply("get_database", b"\x0c\x00\x00\x00\x00"),
    "long text": reply("get_database", b"\x0c\x00\x00\x0b\x00\x01\x7f\xff\xff\xff"),
    "large map": reply("get_database", b"\x0c\x00\x00\x0d\x00\x04\x0b\x0b\x7f\xff\xff\xff"),
    "negative": reply("get_database", b"\x0c\x00\x00\x0b\x00\x01\xff\xff\xff\xff"),
    "another answer": reply("get_table", b"\x00"),
    "no answer": reply("get_database", b"\x00"),
    "endless depth": reply("get_database", b"\x0c\x00\x00" * 3000),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_metastore_is_named_as_such(content: bytes) -> None:
    with serving(says(content)) as port:
        provider = provider_at(port)
        with pytest.raises(ProviderUnavailable) as failure:
            provider.schemas.load(["flights"])
        assert f"{HOST}:{port}" in failure.value.message or "The metastore" in failure.value.message
        with pytest.raises(MetalakeError):
            provider.test_connection()


def unknown(*_: Any, **__: Any) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "no such name")


def test_the_connection_test_says_what_is_wrong(any_hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch) -> None:
    provider_at(any_hms.port).test_connection()
    nobody = free_port()
    with pytest.raises(ProviderUnavailable, match=f"Nothing listens at {HOST}:{nobody}: the connection was refused"):
        provider_at(nobody).test_connection()
    with monkeypatch.context() as patch, pytest.raises(Invalid, match=r"Unknown host metastore\.invalid"):
        patch.setattr(socket, "getaddrinfo", unknown)
        HiveProvider(1, {"metastore.uris": "thrift://metastore.invalid"}).test_connection()
    with serving(says(GARBAGE["http"])) as port, pytest.raises(ProviderUnavailable) as failure:
        provider_at(port).test_connection()
    assert "does not speak as a metastore does: it may be no Hive metastore, or" in failure.value.message
    assert not failure.value.retryable
    with serving(hangs_up) as port, pytest.raises(ProviderUnavailable, match="ended the connection instead"):
        provider_at(port).test_connection()
    monkeypatch.setattr(hive_client, "READ_SECONDS", 0.3)
    with serving(waits) as port, pytest.raises(ProviderTimeout, match="did not answer get_database in time"):
        provider_at(port).test_connection()


def test_the_next_metastore_is_tried(hms: HiveMetastore) -> None:
    nobody, neither = free_port(), free_port()
    assert provider_at(nobody, hms.port).schemas.load(["default"]).name == "default"
    with pytest.raises(ProviderUnavailable) as failure:
        provider_at(nobody, neither).schemas.load(["default"])
    assert str(nobody) in failure.value.message and str(neither) in failure.value.message


def test_one_answer_may_take_only_so_long_and_be_only_so_large(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    def drips(connection: socket.socket) -> None:
        connection.recv(1000)
        for byte in reply("get_database", b"\x0c\x00\x00\x0b\x00\x01\x00\x00\xff\xff" + bytes(10_000)):
            connection.send(bytes([byte]))
            time.sleep(0.02)

    def floods(connection: socket.socket) -> None:
        connection.recv(1000)
        text = b"\x00\x00\x04\x00" + b"x" * 1024
        connection.sendall(reply("get_database", b"\x0c\x00\x00\x0d\x00\x04\x0b\x0b\x00\x00\xff\xff"))
        while True:
            connection.sendall(text)

    monkeypatch.setattr(hive_client, "ANSWER_SECONDS", 0.5)
    started = time.monotonic()
    with serving(drips) as port, pytest.raises(ProviderTimeout):
        provider_at(port).schemas.load(["flights"])
    assert time.monotonic() - started < 15
    monkeypatch.setattr(hive_client, "ANSWER_SECONDS", 20)
    settings.METALAKE_MAX_ANSWER = 2**20
    with serving(floods) as port, pytest.raises(ProviderUnavailable, match="METALAKE_MAX_ANSWER"):
        provider_at(port).schemas.load(["flights"])


def test_a_refusal_does_not_end_the_connection_and_a_failure_does(hms: HiveMetastore) -> None:
    provider = provider_at(hms.port)
    with pytest.raises(NotFound):
        provider.schemas.load(["nowhere"])
    assert len(list(hive_client._idle)) == 1
    first = next(iter(hive_client._idle))
    provider.schemas.load(["default"])
    assert next(iter(hive_client._idle)) is first
    first._socket.handle.shutdown(socket.SHUT_RD)
    provider.schemas.load(["default"])
    assert next(iter(hive_client._idle)) is not first


def test_an_answer_that_comes_too_late_is_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[socket.socket] = []
    was_left = threading.Event()

    def late_at_first(connection: socket.socket) -> None:
        connections.append(connection)
        is_first = len(connections) == 1
        while connection.recv(1000):
            if is_first:
                was_left.wait(20)
            name = b"first" if is_first else b"second"
            text = len(name).to_bytes(4, "big") + name
            connection.sendall(reply("get_database", b"\x0c\x00\x00\x0b\x00\x01" + text + b"\x00\x00"))

    monkeypatch.setattr(hive_client, "READ_SECONDS", 0.2)
    with serving(late_at_first) as port:
        provider = provider_at(port)
        with pytest.raises(ProviderTimeout):
            provider.schemas.load(["first"])
        was_left.set()
        monkeypatch.setattr(hive_client, "READ_SECONDS", 20.0)
        assert provider.schemas.load(["second"]).name == "second"
        assert provider.schemas.load(["second"]).name == "second"
        assert len(connections) == 2, "a good one is used again"


# Lost in the middle


class Between:
    """A way to a metastore that loses one call, before it arrives or after it was answered."""

    def __init__(self, hms: HiveMetastore) -> None:
        self.hms = hms
        self.loses = b""
        self.after = False

    def __call__(self, connection: socket.socket) -> None:
        with socket.create_connection((HOST, self.hms.port)) as metastore:
            is_lost = False
            while True:
                for readable in select.select([connection, metastore], [], [])[0]:
                    if not (part := readable.recv(2**20)):
                        return
                    if readable is metastore:  # an answer may come in many parts
                        if is_lost:
                            return
                        connection.sendall(part)
                        continue
                    is_lost = bool(self.loses) and self.loses in part
                    if is_lost and not self.after:
                        return
                    metastore.sendall(part)


@pytest.fixture
def schema(any_hms: HiveMetastore) -> Iterator[Levels]:
    name = any_hms.create_database()
    yield [name]
    with any_hms.client() as client:
        client.drop_database(name, True, True)


@pytest.mark.parametrize("applied", [False, True], ids=["not applied", "applied"])
def test_a_write_whose_answer_is_lost_is_unknown(any_hms: HiveMetastore, schema: Levels, applied: bool) -> None:
    plain = provider_at(any_hms.port)
    definition = plain.tables.draft(plain.schemas.load(schema), asked("delays")).definition
    made = plain.tables.create(schema, "delays", definition)
    part: dict[str, Any] = {"name": "year=2013", "values": ["2013"], "location": None, "parameters": {}}
    between = Between(any_hms)
    between.after = applied

    def lost(
        method: str, act: Callable[..., Any], *arguments: Any, error: type[MetalakeError] = OutcomeUnknown
    ) -> None:
        between.loses = method.encode()
        with pytest.raises(error):
            act(*arguments)
        between.loses = b""

    with serving(between) as port:
        provider = provider_at(port)
        tables = provider.tables
        lost("create_table", tables.create, schema, "airlines", definition)
        assert {one.name for one in plain.tables.list(schema).items} == {"delays"} | (
            {"airlines"} if applied else set()
        )
        lost("alter_table", tables.alter, schema, "delays", [], made.version, None, "7")
        now = plain.tables.load(schema, "delays")
        assert plain.tables.is_marked(now, "7") is applied
        again = plain.tables.alter(schema, "delays", [], now.version, marker="8")
        lost("alter_table", tables.rename, schema, "delays", schema, "late", made.identity)
        there = "late" if applied else "delays"
        assert plain.tables.load(schema, there).version
        lost("drop_table", tables.drop, schema, there, again.identity)
        assert [one.name for one in plain.tables.list(schema).items if one.name == there] == (
            [] if applied else [there]
        )
        lost("get_table", tables.create, schema, "weather", definition)
        assert plain.tables.load(schema, "weather").name == "weather", "made, though it could not be read back"
        lost("get_table", tables.alter, schema, "weather", [], "1", error=ProviderUnavailable)
        lost("get_database", tables.create, schema, "planes", definition, error=ProviderUnavailable)
        lost("get_all_tables", tables.list, schema, error=ProviderUnavailable)
        lost("get_table", provider.partitions.add, schema, "weather", part, error=ProviderUnavailable)


@pytest.mark.long
def test_a_killed_metastore_is_unavailable_until_it_is_back(start_hms: Callable[..., HiveMetastore]) -> None:
    hms = start_hms()
    provider = provider_at(hms.port)
    provider.schemas.create(["flights"], provider.schemas.draft(None, {}))
    new = provider.tables.draft(provider.schemas.load(["flights"]), asked("delays"))
    found = create(provider, ["flights"], "delays", new)
    hms.kill()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("load_table", {"table": "delays"}),
        ("alter_table", {"table": "delays", "changes": [], "version": found.version}),
        ("drop_table", {"table": "delays", "identity": found.identity}),
        ("create_schema", {"schema": ["sales"], "definition": provider.schemas.draft(None, {})}),
    ]
    for verb, arguments in calls:
        with pytest.raises(ProviderUnavailable, match="refused"):
            provider.call(verb, {"schema": ["flights"]} | arguments)
    hms.start()
    assert provider.tables.load(["flights"], "delays") == found
    with pytest.raises(NotFound):
        provider.schemas.load(["sales"])
