"""A real Trino beside the tests: the last server that Maven Central has, 821 MB once, 500 MB unpacked.

A newer one, from its jars, is in tests/trino_483.py.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests import processes
from tests.confined import confined
from tests.hms import HiveMetastore
from tests.jars import JarsMissing, cache, fetched, only_one
from tests.parts import needs, newer_java
from tests.ports import free_port

VERSION = "476"
SERVER = f"io/trino/trino-server/{VERSION}/trino-server-{VERSION}.tar.gz"
SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
PLUGINS = ("hive", "iceberg")

CONFIG = """coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
plugin.dir={server}/plugin
query.max-memory=512MB
query.max-memory-per-node=400MB
memory.heap-headroom-per-node=200MB
"""
NODE = "node.environment=test\nnode.id=one\nnode.data-dir={data}\nnode.internal-address=127.0.0.1\n"
JVM = """-server
-Xmx1G
-XX:+UseSerialGC
-XX:TieredStopAtLevel=1
-Djava.io.tmpdir={data}
-Djna.tmpdir={data}
-Djdk.attach.allowAttachSelf=true
--enable-native-access=ALL-UNNAMED
--add-modules=jdk.incubator.vector
"""


class TrinoError(Exception):
    """Trino refused a statement."""


class Trino:
    """A running Trino; see `sql`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/v1/info", timeout=5).json()["starting"] is False
        except (requests.RequestException, ValueError):
            return False

    def sql(self, statement: str) -> list[list[Any]]:
        """Its rows. Raises TrinoError."""
        rows: list[list[Any]] = []
        user = {"X-Trino-User": "tests"}
        answer = requests.post(f"{self.url}/v1/statement", statement.encode(), headers=user, timeout=60).json()
        while True:
            rows += answer.get("data") or []
            if "error" in answer:
                raise TrinoError(f"{answer['error']['errorName']}: {answer['error']['message']}")
            if "nextUri" not in answer:
                return rows
            answer = requests.get(answer["nextUri"], headers=user, timeout=60).json()

    def attach(self, name: str, url: str, warehouse: str, token: str) -> None:
        """A catalog of the Iceberg REST wire, on this machine's files, for the user of a personal token."""
        settings = {
            "iceberg.catalog.type": "rest",
            "iceberg.rest-catalog.uri": url,
            "iceberg.rest-catalog.warehouse": warehouse,
            "iceberg.rest-catalog.nested-namespace-enabled": "true",
            "iceberg.rest-catalog.security": "OAUTH2",
            "iceberg.rest-catalog.oauth2.token": token,
            "fs.hadoop.enabled": "true",
        }
        self._create_catalog(name, "iceberg", settings)

    def attach_hive(self, name: str, hms: HiveMetastore) -> None:
        """A catalog of Trino's Hive connector on a metastore."""
        settings = {"hive.metastore.uri": hms.uri, "fs.hadoop.enabled": "true"}
        self._create_catalog(name, "hive", settings)

    def attach_hive_iceberg(self, name: str, hms: HiveMetastore) -> None:
        """A catalog of Trino's Iceberg connector on a metastore."""
        settings = {"hive.metastore.uri": hms.uri, "fs.hadoop.enabled": "true"}
        self._create_catalog(name, "iceberg", settings | {"iceberg.catalog.type": "hive_metastore"})

    def _create_catalog(self, name: str, connector: str, settings: dict[str, str]) -> None:
        given = ", ".join(f"\"{key}\" = '{value}'" for key, value in settings.items())
        self.sql(f"CREATE CATALOG {name} USING {connector} WITH ({given})")


def unpacked() -> Path:
    """The server's folder in the cache, with the plugins that are used here; raises JarsMissing."""
    folder = cache() / "-".join(["trino-server", VERSION, *PLUGINS])
    with only_one(folder.with_suffix(".unpacking")):
        if not folder.exists():
            packed = fetched(SERVER, SHA256)
            with tempfile.TemporaryDirectory(dir=cache()) as place, tarfile.open(packed) as archive:
                archive.extractall(place, filter="data")  # all of it: plugins are linked to one another
                whole = Path(place) / f"trino-server-{VERSION}"
                for plugin in (whole / "plugin").iterdir():
                    if plugin.name not in PLUGINS:
                        shutil.rmtree(plugin)
                whole.rename(folder)
            packed.unlink()
    return folder


@pytest.fixture(scope="module")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """Trino, ready in some 20 s; no catalog is attached."""
    with running_trino(tmp_path_factory.mktemp("trino")) as started:
        yield started


@contextmanager
def running_trino(
    folder: Path,
    catalogs: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    places: Sequence[Path] = (),
) -> Iterator[Trino]:
    """Trino in a process group of its own, with its settings in `folder`; the test skips where it cannot be had.

    `catalogs` are its files, by the name of the catalog, and it has no others then; else SQL attaches them. With
    `places`, of warehouses, it can change nothing but those and `folder`.
    """
    needs("java 24")
    try:
        server = unpacked()
    except JarsMissing as missing:
        pytest.skip(f"needs Trino: {missing}")
    port = free_port()
    (etc := folder / "etc").mkdir()
    (data := folder / "data").mkdir()
    managed = CONFIG + f"catalog.management={'dynamic' if catalogs is None else 'static'}\n"
    for name, said in (("config.properties", managed), ("node.properties", NODE), ("jvm.config", JVM)):
        (etc / name).write_text(said.format(port=port, server=server, data=data))
    write_catalogs(etc / "catalog", catalogs or {})
    started = Trino(f"http://127.0.0.1:{port}")
    command = [str(part) for part in (server / "bin" / "launcher", "run", "-etc-dir", etc, "-data-dir", data)]
    if places:
        needs("confinement")
        command = confined([folder, *places], *command, as_user=False)  # it writes beside the server
    own = {"JAVA_HOME": str(home := newer_java()), "PATH": f"{home}/bin:{os.environ['PATH']}"} | dict(environment or {})
    process = processes.start(
        "Trino", command, folder / "trino.log", started.is_ready, 180, cwd=folder, env=os.environ | own
    )
    try:
        yield started
    finally:
        processes.kill(process)


def write_catalogs(folder: Path, catalogs: Mapping[str, str]) -> list[Path]:
    """The files of catalogs, as Trino looks for them."""
    folder.mkdir()
    for name, text in catalogs.items():
        (folder / f"{name}.properties").write_text(text)
    return [folder / f"{name}.properties" for name in catalogs]
