"""A MariaDB server of the suite's own, from Debian's package, which can change nothing outside its folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.confined import confined, give
from tests.jars import only_one
from tests.names import own_name
from tests.parts import needs
from tests.ports import free_port
from tests.shared import shared_folder

# Nothing here outlives the tests, so nothing needs to survive a power cut.
OPTIONS = [
    "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
    "--skip-name-resolve", "--innodb-log-file-size=16M", "--performance-schema=OFF", "--character-set-server=utf8mb4",
    "--innodb-flush-method=nosync", "--sync-frm=0",
]  # fmt: skip
USER, PASSWORD = "suite", "of the suite"


@dataclass
class MariaDB:
    """A running server; `execute` works as an account that may do everything."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:mysql://127.0.0.1:{self.port}"

    def properties(self, user: str = USER, password: str = PASSWORD) -> dict[str, str]:
        """The properties of a catalog on it."""
        return {"jdbc-url": self.jdbc_url, "jdbc-user": user, "jdbc-password": password}

    def connect(self, user: str = USER, password: str = PASSWORD, **options: Any) -> Any:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, autocommit=True, **options
        )

    def execute(self, *statements: str) -> list[Any]:
        """Run statements; the rows of the last one."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def create_database(self, prefix: str = "flights") -> str:
        """An empty database with a name that no other test uses; returns the name."""
        name = own_name(prefix)
        self.execute(f"CREATE DATABASE {name}")
        return name

    def start(self) -> None:
        """Start it in some 3 s. Raises AssertionError with the end of its log when it does not start."""
        data, log = self.folder / "data", self.folder / "mariadb.log"
        give(self.folder)
        made = subprocess.run(
            confined([self.folder], "mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db",
                     "--auth-root-authentication-method=normal", f"--tmpdir={self.folder}"),
            capture_output=True, text=True, check=False, cwd=self.folder,
        )  # fmt: skip
        assert made.returncode == 0, made.stdout + made.stderr
        (accounts := self.folder / "accounts.sql").write_text(
            "".join(
                f"CREATE USER IF NOT EXISTS {USER}@'{host}' IDENTIFIED BY '{PASSWORD}';\n"
                f"GRANT ALL ON *.* TO {USER}@'{host}' WITH GRANT OPTION;\n"
                for host in ("%", "localhost")
            )
        )
        own = [f"--datadir={data}", f"--socket={self.folder / 's'}", f"--pid-file={self.folder / 'pid'}"]
        own += [f"--port={self.port}", f"--init-file={accounts}", f"--tmpdir={self.folder}"]
        command = confined([self.folder], "mariadbd", "--no-defaults", *own, *OPTIONS)
        self.process = processes.start("MariaDB", command, log, self.is_ready, cwd=self.folder)

    def is_ready(self) -> bool:
        with suppress(Exception), self.connect():
            return True
        return False

    def kill(self) -> None:
        if self.process is not None:
            processes.kill(self.process)


@contextmanager
def running_mariadb() -> Iterator[MariaDB]:
    """A server of its own, which ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="metalake-mariadb-"))
    server = MariaDB(folder, free_port())
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A MariaDB server, shared by all tests of a run: keep to databases of your own, and do not stop it."""
    needs("mariadb")
    shared = shared_folder()
    if shared is None:
        with running_mariadb() as server:
            yield server
        return
    with only_one(shared / "mariadb.lock"):
        known = shared / "mariadb.port"
        if not known.exists():
            (folder := shared / "mariadb").mkdir()
            server = MariaDB(folder, free_port())
            server.start()
            assert server.process is not None
            (shared / "mariadb.pid").write_text(str(server.process.pid))
            known.write_text(str(server.port))
    yield MariaDB(shared / "mariadb", int(known.read_text()))
