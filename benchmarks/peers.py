"""Catalogs to compare with, each started with a folder of its own and asked over the Iceberg REST API.

Iceberg's own REST fixture 1.11.0 (Java 17, a SQLite store, no rights), Nessie 0.99.0 (Java 21, in memory, no rights),
and the bare application: Metalake's own server with nothing behind its door but stored bytes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from tests import processes
from tests.jars import JarsMissing, fetched, jars
from tests.ports import free_port

NESSIE = (
    "org/projectnessie/nessie/nessie-quarkus/0.99.0/nessie-quarkus-0.99.0-runner.jar",
    "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417",
)


class Missing(Exception):
    """A peer cannot be started here; says what it lacks."""


@dataclass
class Side:
    """One catalog: where its namespaces are, and with whose authorization it is asked."""

    name: str
    url: str
    base: str
    authorization: str = ""
    folder: Path | None = None
    _connection: HTTPConnection | None = field(default=None, repr=False)

    @property
    def namespaces(self) -> str:
        return f"{self.base}/namespaces"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by name in lower case, and content; over one connection, while the other side lets it be."""
        content = None if body is None else orjson.dumps(body)
        try:
            answer = self._send(method, path, content)
        except (RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection = None
            answer = self._send(method, path, content)
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()

    def _send(self, method: str, path: str, content: bytes | None) -> HTTPResponse:
        if self._connection is None:
            self._connection = HTTPConnection(urlsplit(self.url).netloc, timeout=120)
        self._connection.request(method, path, content, {"Content-Type": "application/json", **self.headers})
        return self._connection.getresponse()

    def must(self, method: str, path: str, body: Any = None) -> Any:
        status, _, content = self.ask(method, path, body)
        assert status < 300, (self.name, method, path, status, content[:500])
        return orjson.loads(content) if content else None


def java(least: int) -> str:
    """A Java of at least this version. Raises Missing."""
    homes = [Path(os.environ["JAVA_HOME"])] if "JAVA_HOME" in os.environ else []
    for program in [Path("/usr/bin/java"), *(home / "bin/java" for home in [*homes, *Path("/usr/lib/jvm").glob("*")])]:
        if program.exists():
            printed = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
            version = re.search(r'version "(\d+)', printed)
            if version and int(version[1]) >= least:
                return str(program)
    raise Missing(f"no Java {least} or newer is here (JAVA_HOME may name one)")


def fixture(stack: ExitStack) -> Side:
    """Iceberg's REST fixture. Raises Missing."""
    program, folder, port = java(17), _folder("fixture"), free_port()
    try:
        classpath = ":".join(map(str, jars("iceberg-fixture")))
    except JarsMissing as missing:
        raise Missing(str(missing)) from None
    settings = {
        "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
        "CATALOG_REST_PORT": str(port),
        "REST_PORT": str(port),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:file:{folder}/catalog.db",
        "CATALOG_JDBC_USER": "u",
        "CATALOG_JDBC_PASSWORD": "p",
    }
    command = [program, "-Xmx512m", "-cp", classpath, "org.apache.iceberg.rest.RESTCatalogServer"]
    url = f"http://127.0.0.1:{port}"
    _start(stack, "Iceberg's fixture", command, folder, f"{url}/v1/config", settings)
    return Side("fixture", url, "/v1", folder=folder)


def bare(stack: ExitStack, pages: dict[str, bytes]) -> Side:
    """Metalake's server with nothing behind its door but these bytes, by path and query; other paths are 404."""
    folder, port = _folder("bare"), free_port()
    for number, (path, content) in enumerate(pages.items()):
        (folder / f"{number}.path").write_text(path)
        (folder / f"{number}.bytes").write_bytes(content)
    command = [sys.executable, "-m", "benchmarks.bare_door", str(folder)]
    settings = {
        "METALAKE_HOME": str(folder),
        "METALAKE_PORT": str(port),
        "METALAKE_DATABASE_URL": "",
        "METALAKE_LOG_LEVEL": "ERROR",
        "METALAKE_WORKERS": "0",
    }
    _start(stack, "the bare application", command, folder, f"http://127.0.0.1:{port}/health", settings)
    return Side("bare", f"http://127.0.0.1:{port}", "")


def nessie(stack: ExitStack, s3: str, bucket: str) -> Side:
    """Nessie, which keeps its files in an S3. Raises Missing."""
    program, folder, port = java(21), _folder("nessie"), free_port()
    try:
        jar = fetched(*NESSIE)
    except JarsMissing as missing:
        raise Missing(str(missing)) from None
    options = "nessie.catalog.service.s3.default-options"
    given = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.http.access-log.enabled": "false",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(free_port()),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "wh",
        "nessie.catalog.warehouses.wh.location": f"s3://{bucket}/nessie",
        f"{options}.endpoint": s3,
        f"{options}.path-style-access": "true",
        f"{options}.region": "us-east-1",
        f"{options}.auth-type": "STATIC",
        f"{options}.access-key": "urn:nessie-secret:quarkus:my.key",
        "my.key.name": "a",
        "my.key.secret": "b",
    }
    command = [program, "-Xmx512m", *(f"-D{name}={value}" for name, value in given.items()), "-jar", str(jar)]
    url = f"http://127.0.0.1:{port}"
    _start(stack, "Nessie", command, folder, f"{url}/iceberg/v1/config", {})
    return Side("nessie", url, "/iceberg/v1/main")


def _folder(name: str) -> Path:
    folder = Path(os.environ["METALAKE_HOME"]) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _start(stack: ExitStack, what: str, command: list[str], folder: Path, url: str, settings: dict[str, str]) -> None:
    """Raises Missing if it does not answer within a minute."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METALAKE_")} | settings
    where = folder if command[1:2] != ["-m"] else None
    try:
        process = processes.start(
            what, command, folder / "log", lambda: processes.answers(url), 60, env=environment, cwd=where
        )
    except (AssertionError, OSError) as failure:
        raise Missing(str(failure)) from None
    stack.callback(processes.kill, process)
