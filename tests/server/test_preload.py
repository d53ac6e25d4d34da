"""What the parent of a server's processes loads for all of them, and what it must not have begun."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.catalogs.races import COLUMNS
from tests.catalogs.racing import ICEBERG, NATIVE, Client
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake

pytestmark = [pytest.mark.slow, pytest.mark.server]

LATE = """
import django; django.setup()
import metalake.wsgi
from server import preload
preload.load()
import sys, threading
from django.db import connection
from django.urls import resolve
before = set(sys.modules)
for path in ("/api/metalakes/demo", "/iceberg/demo/v1/config", "/health", "/login", "/admin/"):
    resolve(path)
ours = ("metalake.", "server.", "authz.", "access.", "catalogs.", "frontend.", "iceberg_rest.")
late = {name for name in set(sys.modules) - before if name.startswith(ours)}
early = {name for name in ("pyarrow", "pyiceberg.io.pyarrow", "redis", "botocore") if name in sys.modules}
print(sorted(late), sorted(early), threading.active_count(), connection.connection)
"""


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def test_paths_are_known_before_the_fork_and_nothing_that_it_breaks_is_begun(metalake_server: MetalakeServer) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE],
        cwd=REPOSITORY,
        env=metalake_server.environment | {"DJANGO_SETTINGS_MODULE": "metalake.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[] [] 1 None"


def test_the_parent_of_a_server_has_no_connection_thread_or_arrow(start_metalake: StartMetalake) -> None:
    server = start_metalake(METALAKE_WORKERS="2")
    assert server.process is not None
    parent = psutil.Process(server.process.pid)
    assert parent.num_threads() == 1
    assert not [
        file.path for file in parent.open_files() if "sqlite3" in file.path and not file.path.endswith("server")
    ]
    client = Client(server.url)
    assert client.send("POST", f"{NATIVE}/schemas", {"name": "s"}).status == 200
    assert client.send("POST", f"{ICEBERG}/namespaces/s/tables", {"name": "t", "schema": COLUMNS}).status == 200
    assert client.send("GET", f"{ICEBERG}/namespaces/s/tables/t").status == 200
    for pid in (parent.pid, *server.processes()):
        assert "libarrow" not in maps(pid), "files of this machine need none of it"


def test_what_is_frozen_is_no_garbage_s_business() -> None:
    from server import preload

    try:
        preload.freeze()
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
