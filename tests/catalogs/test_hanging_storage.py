"""A storage that does not answer holds its own share of a server, and nobody who needs it not."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from catalogs.services import catalogs, purge, schemas, tables
from catalogs.services.alterations import Alteration
from catalogs.table_stores import TableDraft
from formats.iceberg import files, storage
from metalake.errors import Invalid, ProviderBusy, ProviderTimeout, ProviderUnavailable
from metalake.lineage import Address
from metalake.metrics import LOOKED_UP
from providers import circuit_breaker, remote
from providers.metadata_files import METADATA
from tests.catalogs.callers import Caller
from tests.waiting import eventually

KEYS = {"s3.access-key-id": "AKIA", "s3.secret-access-key": "sesame", "s3.region": "us-east-1"}
COLUMN = {"name": "id", "type": "long"}
LONG = 200  # seconds, in which a busy machine has loaded what speaks with a storage
ICEBERG = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


class Silence:
    """Takes every connection and never says a word on it, but while it is not `is_silent`."""

    is_silent = True

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        try:
            while True:
                connection = self.listener.accept()[0]
                if self.is_silent:
                    self.taken.append(connection)
                    continue
                with connection:  # whatever is asked for is there
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except OSError:
            return

    def end(self) -> None:
        """Whoever waits is told so by the end of its connection."""
        for each in (self.listener, *self.taken):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def silence() -> Iterator[Silence]:
    it = Silence()
    yield it
    it.end()


# The attack


def send(url: str, method: str = "GET", body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    credential = base64.b64encode(b"admin:correct horse battery").decode()
    headers = {"Authorization": f"Basic {credential}", "Content-Type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=100) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


@pytest.mark.timeout(400)
def test_eight_creations_on_a_silent_storage_keep_nobody_else_waiting(
    start_metalake: Callable[..., Any], silence: Silence
) -> None:
    server = start_metalake(METALAKE_WORKERS="1", METALAKE_THREADS="8")
    api, rest = f"{server.url}/api/metalakes", f"{server.url}/iceberg/lakes/v1/stuck/namespaces"
    assert send(api, "POST", {"name": "lakes", "properties": {}})[0] == 200
    stuck = {"s3.endpoint": silence.url, "warehouse": "s3://lake/tables", **KEYS}
    silence.is_silent = False
    for name, properties in (("stuck", stuck), ("innocent", {})):
        catalog = {"name": name, "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
        assert send(f"{api}/lakes/catalogs", "POST", catalog)[0] == 200
    silence.is_silent = True
    assert send(f"{api}/lakes/catalogs/stuck/schemas", "POST", {"name": "s"})[0] == 200

    def create(number: int) -> tuple[int, dict[str, Any]]:
        if number % 2:
            asked = {"name": f"t{number}", "columns": [COLUMN], "properties": {}}
            return send(f"{api}/lakes/catalogs/stuck/schemas/s/tables", "POST", asked)
        return send(f"{rest}/s/tables", "POST", {"name": f"t{number}", "schema": ICEBERG})

    answers: list[tuple[int, dict[str, Any]]] = []
    over = threading.Event()

    def keep_creating(number: int) -> None:
        while not over.is_set():
            answers.append(create(number))
            over.wait(0.2)

    with ThreadPoolExecutor(8) as clients:
        try:
            attackers = [clients.submit(keep_creating, number) for number in range(8)]
            assert eventually(lambda: bool(silence.taken), LONG), answers
            assert eventually(lambda: any("others wait for it" in json.dumps(body) for _, body in answers))
            table = {"name": "t", "columns": [COLUMN], "properties": {}}
            assert send(f"{api}/lakes/catalogs/innocent")[0] == 200
            assert send(f"{api}/lakes/catalogs/innocent/schemas", "POST", {"name": "s"})[0] == 200
            assert send(f"{api}/lakes/catalogs/innocent/schemas/s/tables", "POST", table)[0] == 200
        finally:
            over.set()
            silence.end()
        for attacker in attackers:
            attacker.result(100)
    assert {status for status, _ in answers} <= {502, 503, 504}
    assert all("error" in body or body["type"] for _, body in answers)


# One call


@pytest.fixture
def actor(admin: Caller, settings: Any) -> Actor:
    circuit_breaker.forget_all()
    METADATA._entries.clear()
    return actor_of(User.objects.get(username="admin"))


@pytest.fixture
def stuck(actor: Actor, silence: Silence) -> Address:
    """A schema of a catalog whose storage is silent."""
    properties = {"s3.endpoint": silence.url, "warehouse": "s3://lake/tables", **KEYS}
    silence.is_silent = False
    catalogs.create_catalog(actor, "demo", "stuck", "relational", "lakehouse-iceberg", None, properties)
    silence.is_silent = True
    schemas.create_schema(actor, Address(metalake="demo", catalog="stuck", schema="s"), None, {})
    return Address(metalake="demo", catalog="stuck", schema="s", leaf="t")


def counted(verb: str, outcome: str) -> float:
    found = 0.0
    for metric in REGISTRY.collect():
        for sample in metric.samples:
            labels = sample.labels
            if sample.name == "metalake_remote_calls_total" and labels["provider"] == "storage":
                found += sample.value if (labels["verb"], labels["outcome"]) == (verb, outcome) else 0
    return found


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits longer than a moment."""
    real = remote.reach
    monkeypatch.setattr(remote, "reach", lambda *asked, **how: real(*asked, **(how | {"total": 0.2})))


@pytest.mark.django_db
def test_who_waits_for_a_storage_is_told_when_time_is_up(
    stuck: Address, actor: Actor, admin: Caller, hasty: None
) -> None:
    before = counted("write_file", "ProviderUnavailable"), counted("read_file", "ProviderTimeout")
    draft = TableDraft(ICEBERG, None, None, {})
    with pytest.raises(ProviderUnavailable, match="did not answer in time"):
        tables.create_table(actor, stuck, draft)
    with pytest.raises(ProviderTimeout, match="did not answer in time"):
        tables.register_table(actor, stuck, "s3://lake/tables/x/metadata/v1.metadata.json")
    after = counted("write_file", "ProviderUnavailable"), counted("read_file", "ProviderTimeout")
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1]


@pytest.mark.django_db
def test_a_storage_that_keeps_failing_is_spared_and_asked_again_with_other_settings(
    stuck: Address, actor: Actor, monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> None:
    silence.end()  # now nothing listens

    def broken(*_: object, **__: object) -> bytes:
        raise ProviderUnavailable("The storage did not answer.", kind="storage")

    monkeypatch.setattr(files, "read_metadata", broken)
    catalog = catalogs.load_catalog(actor, "demo", "stuck")
    for _ in range(circuit_breaker.FAILURES):
        with pytest.raises(ProviderUnavailable, match="did not answer"):
            tables.register_table(actor, stuck, "s3://lake/tables/x/v1.metadata.json")
    with pytest.raises(ProviderBusy, match="kept failing"):
        tables.register_table(actor, stuck, "s3://lake/tables/x/v1.metadata.json")
    with pytest.raises(ProviderBusy, match="kept failing"):  # a purge is spared, too, and tried again later
        purge.purge_table(
            {"catalog_id": catalog.pk, "metadata_location": "s3://lake/tables/x", "table_uuid": os.urandom(16).hex()}
        )
    assert LOOKED_UP.get_sample_value("metalake_storage_breaker_open", {"catalog": str(catalog.pk)}) == 1
    assert not circuit_breaker.line_of(catalog.pk).is_open
    circuit_breaker.forget(catalog.pk)
    assert not circuit_breaker.storage_line_of(catalog.pk).is_open


@pytest.mark.django_db(transaction=True)
def test_other_settings_are_tried_at_once(stuck: Address, actor: Actor) -> None:
    pk = catalogs.load_catalog(actor, "demo", "stuck").pk
    for _ in range(circuit_breaker.FAILURES):
        circuit_breaker.storage_line_of(pk).note(answered=False, error="nothing")
    assert circuit_breaker.storage_line_of(pk).is_open
    catalogs.alter_catalog(actor, "demo", "stuck", Alteration(properties=(("s3.region", "eu-west-1"),)))
    assert not circuit_breaker.storage_line_of(pk).is_open


@pytest.mark.django_db
def test_files_of_this_machine_and_what_is_kept_in_memory_take_no_other_thread(
    actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "reach", lambda *_, **__: pytest.fail("a call to a storage"))
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="s"), None, {})
    ident = Address(metalake="demo", catalog="lake", schema="s", leaf="t")
    made = tables.create_table(actor, ident, TableDraft(ICEBERG, None, None, {}))
    tables.load_iceberg_table(actor, ident)
    METADATA._entries.clear()
    assert tables.load_iceberg_table(actor, ident).metadata == made.metadata


def test_what_is_written_when_nobody_waits_any_more_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage takes the file in the end; nothing will point to it."""
    from providers.metadata_files import MetadataFiles

    gate, removed = threading.Event(), threading.Event()

    def write_late(*_: object, **__: object) -> tuple[str, bytes]:
        gate.wait(30)
        return "s3://lake/t/metadata/1.json", b"{}"

    monkeypatch.setattr(files, "write_metadata", write_late)
    monkeypatch.setattr(storage, "delete_quietly", lambda io, places: removed.set())
    real = remote.reach
    monkeypatch.setattr(remote, "reach", lambda *asked, **how: real(*asked, **(how | {"total": 0.05})))
    circuit_breaker.forget_all()
    store = MetadataFiles(7, lambda: None, ["s3://lake"], [])  # type: ignore[arg-type, return-value]
    with pytest.raises(ProviderUnavailable):
        store.write({"location": "s3://lake/t"}, None)
    gate.set()
    assert removed.wait(30)
    assert METADATA.get(7, "s3://lake/t/metadata/1.json") is None


# Connection tests, and threads that come back


@pytest.mark.django_db
def test_connection_tests_hold_a_share_of_the_threads_in_each_metalake(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit_breaker.forget_all()
    monkeypatch.setattr(circuit_breaker, "SLOW", 0.0)
    gate = threading.Event()
    provider = catalogs.provider_for("lakehouse-iceberg", 1, {"warehouse": "s3://lake/x"})
    with ThreadPoolExecutor(4) as clients:
        try:
            slow = [clients.submit(remote.trial, provider, gate.wait, metalake_id=1) for _ in range(2)]
            eventually(lambda: len(circuit_breaker.trial_line_of(1).waiting) == 2)
            with pytest.raises(ProviderBusy, match="others wait"):
                remote.trial(provider, lambda: None, metalake_id=1)
            assert remote.trial(provider, lambda: "tried", metalake_id=2) == "tried"
        finally:
            gate.set()
        assert all(each.result(30) for each in slow)
    assert remote.trial(provider, lambda: "tried", metalake_id=1) == "tried"


@pytest.mark.parametrize(
    ("given", "kept"), [({}, ("3", "10")), ({"s3.connect-timeout": "1", "s3.request-timeout": "5"}, ("1", "5"))]
)
def test_threads_that_a_storage_holds_come_back(given: dict[str, str], kept: tuple[str, str]) -> None:
    def times(properties: dict[str, str]) -> tuple[str, str]:
        found = storage.file_io(properties).properties
        return found["s3.connect-timeout"], found["s3.request-timeout"]

    assert times(given) == kept
    for odd in ("100000", "-1", "nan", "inf", "soon", "0"):
        assert times({"s3.connect-timeout": odd, "s3.request-timeout": odd}) == ("10.0", "30.0")


def test_a_pipe_of_this_machine_holds_no_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "v1.metadata.json")
    with pytest.raises(Invalid, match="not a file"):
        files.read_metadata(storage.file_io({}), f"file://{tmp_path}/v1.metadata.json")
