"""What settings work out themselves; how bad ones stop the start is in test_serve."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from metalake import settings
from metalake.timeouts import Limits, on_postgresql


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert settings.is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example", "127.0.0.1.example"])
def test_not_loopback(host: str) -> None:
    assert not settings.is_loopback(host)


@pytest.mark.parametrize(
    ("listens_on", "given", "answers_to"),
    [
        ("127.0.0.1", [], {"127.0.0.1", "localhost", "[::1]"}),
        ("127.9.9.9", [], {"127.0.0.1", "localhost", "[::1]", "127.9.9.9"}),
        ("fd00::7", [], {"127.0.0.1", "localhost", "[::1]", "[fd00::7]"}),
        ("0.0.0.0", [], {"127.0.0.1", "localhost", "[::1]"}),
        ("::", [], {"127.0.0.1", "localhost", "[::1]"}),
        ("0.0.0.0", ["lake.example", " .lake.corp", "fd00::7", "[fd00::8]", "10.0.0.1"],
         {"lake.example", ".lake.corp", "[fd00::7]", "[fd00::8]", "10.0.0.1"}),
        ("0.0.0.0", ["*"], {"*"}),
    ],
)  # fmt: skip
def test_the_hosts_that_it_answers_to(
    monkeypatch: pytest.MonkeyPatch, listens_on: str, given: list[str], answers_to: set[str]
) -> None:
    monkeypatch.setattr(settings, "METALAKE_HOST", listens_on)
    assert set(settings.hosts(given)) == answers_to


@pytest.mark.parametrize("given", ["http://lake.example", "lake.example:8090", "[::1]:8090", "lake.example/x", "a b"])
def test_a_host_that_no_request_can_name_is_refused(given: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"METALAKE_ALLOWED_HOSTS: .* without scheme, port and path"):
        settings.hosts([given])


def test_processes_that_start_together_agree_on_the_secret_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "METALAKE_HOME", tmp_path)
    with ThreadPoolExecutor(8) as pool:
        keys = {future.result() for future in [pool.submit(settings.secret_key) for _ in range(8)]}
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == ("secret_key", 0o600)


@pytest.mark.parametrize("made_before", [False, True])
def test_a_sqlite_store_is_for_its_own_account_alone(tmp_path: Path, made_before: bool) -> None:
    """In a folder that others may enter, whatever the umask; one of before is closed to them, too."""
    tmp_path.chmod(0o755)
    store = tmp_path / "metalake.sqlite3"
    if made_before:
        with closing(sqlite3.connect(store)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE t (n)")
            for file in tmp_path.iterdir():
                file.chmod(0o644)
            settings.keep_private(store)
            assert modes_in(tmp_path) == {"metalake.sqlite3": 0o600, "-wal": 0o600, "-shm": 0o600}
    settings.keep_private(store)
    with closing(sqlite3.connect(store)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE u (n)")
        assert modes_in(tmp_path) == {"metalake.sqlite3": 0o600, "-wal": 0o600, "-shm": 0o600}
    assert tmp_path.stat().st_mode & 0o777 == 0o755, "whose folder it is has opened it"


def modes_in(folder: Path) -> dict[str, int]:
    files = {file.name.removeprefix("metalake.sqlite3") or file.name: file for file in folder.iterdir()}
    return {name: file.stat().st_mode & 0o777 for name, file in files.items()}


def test_a_secret_key_that_is_given_is_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "METALAKE_HOME", tmp_path)
    monkeypatch.setenv("METALAKE_SECRET_KEY", "given")
    assert settings.secret_key() == "given"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("", ""),
        ("/srv/lake/", "file:///srv/lake"),
        ("file:/srv/lake", "file:///srv/lake"),
        ("s3://lake/tables", "s3://lake/tables"),
        ("/home/metalake/warehouse/lake", "file:///home/metalake/warehouse/lake"),
    ],
)
def test_the_warehouse(monkeypatch: pytest.MonkeyPatch, given: str, place: str) -> None:
    monkeypatch.setattr(settings, "METALAKE_HOME", Path("/home/metalake"))
    assert settings.warehouse(given) == place


@pytest.mark.parametrize("given", ["lake", "/", "s3:/lake", "/srv/../etc", "/home/metalake", "/home/metalake/static"])
def test_a_warehouse_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setattr(settings, "METALAKE_HOME", Path("/home/metalake"))
    with pytest.raises(ImproperlyConfigured, match="METALAKE_WAREHOUSE: "):
        settings.warehouse(given)


def test_what_a_database_is_told_of_limits() -> None:
    told = on_postgresql(Limits(lock=0.25, statement=60, idle=30, silence=30, connect=5), {})
    assert told["options"] == (
        "-c lock_timeout=250 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=30000"
    )
    assert (told["connect_timeout"], told["tcp_user_timeout"], told["keepalives_idle"]) == (5, 30_000, 10)


def test_what_the_url_of_a_database_says_of_limits_wins() -> None:
    given = {"options": "-c lock_timeout=7s", "keepalives_idle": 1, "sslmode": "require"}
    told = on_postgresql(Limits(lock=1, statement=60, idle=30, silence=30, connect=5), given)
    assert told["options"].endswith(" -c lock_timeout=7s")  # the last one counts
    assert (told["keepalives_idle"], told["sslmode"], told["connect_timeout"]) == (1, "require", 5)


@pytest.mark.parametrize("given", ["0", "-1", "soon", "nan", "inf", ""])
def test_a_limit_that_is_no_time_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("METALAKE_LOCK_TIMEOUT", given)
    with pytest.raises(ImproperlyConfigured, match="METALAKE_LOCK_TIMEOUT is a number of seconds"):
        settings.seconds("METALAKE_LOCK_TIMEOUT", 10)


@pytest.mark.parametrize(("workers", "processes"), [("1", 1), ("2", 3)])
def test_all_processes_of_a_server_share_the_memory_for_metadata(workers: str, processes: int) -> None:
    """The one for large requests keeps metadata, too."""
    said = "from django.conf import settings; from providers.metadata_files import METADATA; print(METADATA.max_bytes)"
    given = {"METALAKE_WORKERS": workers, "METALAKE_METADATA_CACHE": "3000000"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METALAKE_")}
    environment |= given | {"METALAKE_HOME": os.environ["METALAKE_HOME"], "DJANGO_SETTINGS_MODULE": "metalake.settings"}
    done = subprocess.run([sys.executable, "-c", said], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == 3_000_000 // processes
