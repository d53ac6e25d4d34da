"""/health/ready says what is wrong with the database and the disks, in words, and waits for neither."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from server import readiness
from tests.waiting import eventually

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a disk that is well may take seconds to say so."""
    monkeypatch.setattr(readiness, "PATIENCE", 60.0)


def ready() -> tuple[int, dict[str, tuple[str, str]]]:
    """The status, and of each check its own and the reason."""
    answer = Client().get("/health/ready")
    body = answer.json()
    assert (body["status"] == "UP") == (answer.status_code == 200)
    found = {each["name"]: (each["status"], each["details"].get("reason", "")) for each in body["checks"]}
    for secret in ("/", "127.0.0.1", "crowd"):
        assert secret not in str(body["checks"]), body
    return answer.status_code, found


@contextmanager
def connecting(**how: Any) -> Iterator[None]:
    """New connections are made this way."""
    if connection.vendor == "sqlite":
        pytest.skip("not offered: SQLite is no server")
    before = {name: connection.settings_dict[name] for name in how}
    connection.settings_dict.update(how)
    try:
        yield
    finally:
        connection.settings_dict.update(before)


def run_sql(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_all_is_well() -> None:
    assert ready() == (200, {"database": ("UP", ""), "home": ("UP", "")})


def test_a_database_that_hangs_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and says nothing; whoever asks again meanwhile waits with the first."""
    plainly = connection.settings_dict["OPTIONS"] | {"sslmode": "disable"}  # else it connects once more without TLS
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        connecting(HOST="127.0.0.1", PORT=silent.getsockname()[1], OPTIONS=plainly),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(readiness, "PATIENCE", 1.0)
            for _ in range(2):
                assert ready() == (503, {"database": ("DOWN", readiness.SILENT), "home": ("UP", "")})
        silent.setblocking(False)
        taken = []
        with pytest.raises(BlockingIOError):
            while True:
                taken.append(silent.accept()[0])
        assert len(taken) == 1
        for each in taken:
            each.close()
        assert eventually(lambda: ready()[1]["database"] == ("DOWN", "no connection"))  # closed, as a proxy would
    assert eventually(lambda: ready()[0] == 200)


def test_a_database_that_is_away_is_said_to_be(caplog: pytest.LogCaptureFixture) -> None:
    """By its cause to whoever asks, in the database's words in the log, once."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert ready()[0] == 200
    with connecting(HOST="127.0.0.1", PORT=port):
        for _ in range(2):
            assert ready()[1]["database"] == ("DOWN", "no connection")
    assert len([line for line in caplog.messages if "database is DOWN" in line and "Connection refused" in line]) == 1
    assert ready()[0] == 200
    assert any("database is UP again" in line for line in caplog.messages)


def test_a_database_with_too_many_clients_is_said_to_have_them() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("not offered: SQLite is no server")
    run_sql("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
    try:
        with connecting(USER="crowd"):
            assert ready()[1]["database"] == ("DOWN", "too many connections")
    finally:
        run_sql("DROP ROLE crowd")


def test_a_store_without_its_migrations_is_said_to_lack_them() -> None:
    newest = MigrationRecorder.Migration.objects.filter(app="catalogs").order_by("-id").first()
    assert newest is not None
    newest.delete()
    try:
        assert ready()[1]["database"] == ("DOWN", readiness.UNPREPARED)
    finally:
        newest.save(force_insert=True)
    assert ready()[0] == 200


def test_a_store_that_is_ahead_is_ready() -> None:
    """As that of a node whose newer neighbour has migrated."""
    ahead = MigrationRecorder.Migration.objects.create(app="catalogs", name="9999_of_tomorrow")
    try:
        assert ready()[0] == 200
    finally:
        ahead.delete()


def test_a_full_disk_is_said_to_be(settings: Any, tmp_path: Path) -> None:
    """Here no file may grow over a byte."""
    settings.METALAKE_HOME = tmp_path
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(readiness.Failed) as told:
            readiness.look_at_folder(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told.value.details == {"reason": "nothing can be written there: ENOSPC: No space left on device"}
    assert not list(tmp_path.iterdir())


def test_a_folder_that_takes_no_files_is_said_so(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.METALAKE_WAREHOUSE = f"file://{tmp_path}/file"
    status, found = ready()
    assert (status, found["warehouse"][0]) == (503, "DOWN")
    assert found["warehouse"][1].startswith("nothing can be written there")
    settings.METALAKE_WAREHOUSE = f"file://{tmp_path}/to/be/made"
    assert ready()[1]["warehouse"] == ("UP", "")
    assert not (tmp_path / "to").exists()


def test_little_space_is_no_reason_to_go_away(settings: Any) -> None:
    settings.METALAKE_MIN_FREE = 2**62
    assert ready() == (200, {"database": ("UP", ""), "home": ("LOW", "little space is left")})
