from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import StandIn, standing_in
from tests.names import own_name
from tests.servers import MetalakeServer


@pytest.fixture
def profiles_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's profiles are; nothing else of this machine is asked for who calls."""
    for name in ("URL", "METALAKE", "USER", "PASSWORD", "TOKEN", "PROFILE"):
        monkeypatch.delenv(f"METALAKE_{name}", raising=False)
    path = tmp_path / "folder" / "profiles.toml"
    monkeypatch.setenv("METALAKE_PROFILES", str(path))
    monkeypatch.setattr("metalake_client.profiles._keyring", lambda: None)
    return path


@pytest.fixture
def alone(profiles_file: Path, capsys: pytest.CaptureFixture[str]) -> Gcli:
    """`gcli` that knows no server."""
    return Gcli(capsys)


@pytest.fixture
def stand_in(alone: Gcli, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """What `gcli` takes for the server, with the metalake m."""
    with standing_in() as server:
        monkeypatch.setenv("METALAKE_URL", server.url)
        monkeypatch.setenv("METALAKE_METALAKE", "m")
        yield server


@pytest.fixture
def gcli(alone: Gcli, metalake_server: MetalakeServer, monkeypatch: pytest.MonkeyPatch) -> Gcli:
    """`gcli` of the administrator, in a metalake of this test's own."""
    monkeypatch.setenv("METALAKE_URL", metalake_server.url)
    monkeypatch.setenv("METALAKE_USER", "admin")
    monkeypatch.setenv("METALAKE_PASSWORD", metalake_server.admin_password)
    name = own_name("gcli")
    alone.ok("metalake", "create", "--name", name)
    monkeypatch.setenv("METALAKE_METALAKE", name)
    return alone
