"""Fixtures for what runs beside a test: Metalake as a process of its own, PostgreSQL, Redis, a browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psycopg
import pytest

from tests.parts import chromium, needs
from tests.ports import free_port
from tests.postgres import PostgresServer, running_postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REPOSITORY = Path(__file__).resolve().parent.parent
ADMIN_PASSWORD = "correct horse battery"
MARKS = {
    "postgres": "postgres",
    "redis_url": "redis",
    "browser": "browser",
    "metalake_server": "server",
    "start_metalake": "server",
    "metalake_worker": "server",
    "hms": "hms",
    "old_hms": "hms",
    "any_hms": "hms",
    "start_hms": "hms",
    "spark": "spark",
    "iceberg_spark": "spark",
}
# Chromium as root, with no connection but those the test asks for.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.hookimpl(tryfirst=True)  # before -m selects by them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by the servers that its fixtures start, so that -m "not browser" needs no marks by hand."""
    for item in items:
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])


# -- Metalake itself


@dataclass
class MetalakeServer:
    """`manage.py serve` in a process group of its own, with its own METALAKE_HOME and port."""

    home: Path
    port: int
    environment: dict[str, str]
    admin_password: str = ADMIN_PASSWORD
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def start(self, timeout: float = 60) -> None:
        """Start and wait until /health/ready answers; raises AssertionError with the end of the log if it does not."""
        assert self.process is None, "already running"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=REPOSITORY,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout
        while not self.is_ready():
            ended = self.process.poll()
            if ended is not None or time.monotonic() > deadline:
                self.kill()
                what = f"ended with {ended}" if ended is not None else f"was not ready within {timeout:.0f} s"
                raise AssertionError(f"the server {what}:\n{self.log_tail()}")
            time.sleep(0.05)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def stop(self, timeout: float = 30) -> None:
        """Ask the server to finish (SIGTERM) and wait for it; SIGKILL after the timeout."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        self.kill()  # whatever is left of the group

    def kill(self) -> None:
        """SIGKILL to every process of the server, as a crash of the machine would."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None

    def restart(self) -> None:
        """Stop it if it runs and start it again: same home, port and database."""
        self.stop()
        self.start()

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class StartMetalake(Protocol):
    def __call__(self, **environment: str) -> MetalakeServer: ...


def _server_environment(home: Path, port: int, **overrides: str) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("METALAKE_", "PYTEST_")) and name != "DJANGO_SETTINGS_MODULE"
    }
    own = {
        "METALAKE_HOME": str(home),
        "METALAKE_HOST": "127.0.0.1",
        "METALAKE_PORT": str(port),
        "METALAKE_ADMIN_PASSWORD": ADMIN_PASSWORD,
        "PYTHONUNBUFFERED": "1",
    }
    return inherited | own | overrides


def prepare(home: Path, **overrides: str) -> MetalakeServer:
    """A server that is not started yet; the benchmarks use it too."""
    home.mkdir(parents=True, exist_ok=True)
    port = int(overrides.get("METALAKE_PORT") or free_port())
    environment = _server_environment(home, port, **overrides)
    return MetalakeServer(home, port, environment, environment["METALAKE_ADMIN_PASSWORD"])


@pytest.fixture(scope="session")
def metalake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetalakeServer]:
    """One Metalake on SQLite for all tests that share it: use names of your own, and do not stop it."""
    server = prepare(tmp_path_factory.mktemp("metalake"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def start_metalake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartMetalake]:
    """Start a Metalake of the test's own: start_metalake(METALAKE_DATABASE_URL=..., ...); all stop with the test."""
    servers: list[MetalakeServer] = []

    def start(**environment: str) -> MetalakeServer:
        server = prepare(tmp_path_factory.mktemp("metalake"), **environment)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def metalake_worker() -> Iterator[Callable[[MetalakeServer], subprocess.Popen[bytes]]]:
    """Start `manage.py worker` beside a server, in its environment; the worker logs to worker.log in the home."""
    workers: list[subprocess.Popen[bytes]] = []

    def start(server: MetalakeServer) -> subprocess.Popen[bytes]:
        with (server.home / "worker.log").open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=REPOSITORY,
                env=server.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        worker.wait()


# -- PostgreSQL and Redis


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; `postgres.create_database()` gives the URL of an empty database."""
    if given := os.environ.get("METALAKE_TEST_POSTGRES"):  # make test starts one for all
        yield PostgresServer(given)
        return
    needs("postgres")
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database of the test's own."""
    url = postgres.create_database()
    yield url
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis server that keeps nothing on disk."""
    needs("redis")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([*command, "--dir", str(folder), "--logfile", "log"], stdin=subprocess.DEVNULL)
    try:
        wait_for_redis(process, port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def wait_for_redis(process: subprocess.Popen[bytes], port: int) -> None:
    from redis import Redis
    from redis.exceptions import ConnectionError as NotYet

    deadline = time.monotonic() + 10
    with Redis(port=port) as client:
        while True:
            try:
                client.ping()
                return
            except NotYet:
                assert process.poll() is None, "redis-server ended at once"
                assert time.monotonic() < deadline, "redis-server did not answer within 10 s"
                time.sleep(0.02)


# -- A browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium, started once a file."""
    needs("chromium")
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, which Django would take for asynchronous code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        chrome = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        yield chrome
        chrome.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page, signed in nowhere; the test fails when a script or the content security policy complains."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(10_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    complaints = [text for text in complaints if not text.startswith("Failed to load resource")]
    assert not complaints, f"the page complained: {complaints}"
