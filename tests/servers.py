"""Fixtures for what runs beside a test: Metalake as a process of its own, a browser."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import psutil
import pytest

from tests import processes
from tests.jars import only_one
from tests.parts import chromium, needs
from tests.ports import free_port
from tests.shared import shared_folder
from tests.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REPOSITORY = Path(__file__).resolve().parent.parent
ADMIN_PASSWORD = "correct horse battery"
STORE = "metalake.sqlite3"  # in the home of a server that is told of no other
BROWSER_PATIENCE = 60_000  # ms that a browser waits for what a page is to show: on a machine that does much else, too
MARKS = {
    "postgres": "postgres",
    "migrated_postgres_url": "postgres",
    "redis_url": "redis",
    "browser": "browser",
    "metalake_server": "server",
    "start_metalake": "server",
    "metalake_worker": "server",
    "hms": "hms",
    "old_hms": "hms",
    "any_hms": "hms",
    "start_hms": "hms",
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

SERVE = ("manage.py", "serve")


@dataclass
class MetalakeServer:
    """A process group of its own, with its own METALAKE_HOME and port: `manage.py serve`, or another program."""

    home: Path
    port: int
    environment: dict[str, str]
    admin_password: str = ADMIN_PASSWORD
    program: tuple[str, ...] = SERVE  # what Python runs
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def start(self, timeout: float = 60) -> None:
        """Start and wait until /health/ready answers, and all processes have begun.

        Raises AssertionError with the end of the log if it does not answer.
        """
        assert self.process is None, "already running"
        command = [sys.executable, *self.program]
        self.process = processes.start(
            "the server", command, self.log, self.is_ready, timeout, cwd=REPOSITORY, env=self.environment
        )

        several = int(self.environment.get("METALAKE_WORKERS", "1"))
        if several > 1 and self.program == SERVE:  # the first that is ready answers for all
            assert eventually(lambda: (len(self.doors()), len(self.processes())) == (several, several + 1))

    def processes(self) -> list[int]:
        """The ids of those that answer requests."""
        assert self.process is not None
        return [child.pid for child in children_of(self.process.pid)]

    def doors(self) -> list[int]:
        """The ids of those that take connections."""
        assert self.process is not None
        return [door.pid for door in doors_of(self.process.pid)]

    def is_ready(self) -> bool:
        return processes.answers(f"{self.url}/health/ready")

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
        if self.process is not None:
            processes.kill(self.process)
            self.process = None

    def restart(self) -> None:
        """Stop it if it runs and start it again: same home, port and database."""
        self.stop()
        self.start()


def children_of(parent: int) -> list[psutil.Process]:
    return sorted(psutil.Process(parent).children(), key=lambda child: child.pid)


def doors_of(parent: int) -> list[psutil.Process]:
    """The children of a server that take connections: the one for large requests lets them go first."""
    return [child for child in children_of(parent) if child.nice() == psutil.Process(parent).nice()]


class StartMetalake(Protocol):
    def __call__(self, *, migrated: bool = True, **environment: str) -> MetalakeServer: ...


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
        "METALAKE_WORKERS": "1",  # a test that needs several says so
        "METALAKE_SQL_TIMEOUT": "60",  # its process lets others go first, and the suite uses the whole machine
        "PYTHONUNBUFFERED": "1",
    }
    return inherited | own | overrides


def prepare(home: Path, **overrides: str) -> MetalakeServer:
    """A server that is not started yet; the benchmarks use it too."""
    home.mkdir(parents=True, exist_ok=True)
    port = int(overrides.get("METALAKE_PORT") or free_port())
    environment = _server_environment(home, port, **overrides)
    return MetalakeServer(home, port, environment, environment["METALAKE_ADMIN_PASSWORD"])


def on_a_migrated_store(server: MetalakeServer) -> MetalakeServer:
    """Put a migrated, empty store in its new home, unless it has a database elsewhere: that saves 2 s of its start.

    The static files are those that another server has collected: a second more. Passwords are hashed in no time.
    """
    server.environment.setdefault("DJANGO_SETTINGS_MODULE", "tests.served")
    (server.home / "static").symlink_to(_collected_files())
    if not server.environment.get("METALAKE_DATABASE_URL"):
        shutil.copy(_migrated_store(), server.home / STORE)
    return server


@contextmanager
def running_metalake(home: Path, **environment: Any) -> Iterator[MetalakeServer]:
    """A server on a migrated store until the end of the block."""
    server = on_a_migrated_store(prepare(home, **environment))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@cache
def made_once() -> Path:
    """The folder for what is made once in a run of the suite, whichever of its processes asks first."""
    folder = shared_folder()
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="metalake-store-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _collected_files() -> Path:
    folder = made_once()
    home, whole = folder / "collecting", folder / "static"
    with only_one(folder / "static.lock"):
        if not whole.exists():
            program = "import django; django.setup(); from server import static_files; static_files.prepare()"
            environment = prepare(home).environment | {"DJANGO_SETTINGS_MODULE": "metalake.settings"}
            subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, env=environment, check=True)
            (home / "static").rename(whole)
    return whole


@cache
def _migrated_store() -> Path:
    folder = made_once()
    home, whole = folder / "migrating", folder / STORE
    with only_one(folder / "store.lock"):
        if not whole.exists():
            migrate(prepare(home))
            (home / STORE).rename(whole)
    return whole


def migrate(server: MetalakeServer) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=REPOSITORY, env=server.environment, check=True)


@pytest.fixture(scope="session")
def metalake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetalakeServer]:
    """One Metalake on SQLite for all tests that share it: use names of your own, and do not stop it."""
    with running_metalake(tmp_path_factory.mktemp("metalake")) as server:
        yield server


@pytest.fixture
def start_metalake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartMetalake]:
    """Start a Metalake of the test's own: start_metalake(METALAKE_DATABASE_URL=..., ...); all stop with the test.

    With `migrated` false its first start finds no store at all.
    """
    servers: list[MetalakeServer] = []

    def start(*, migrated: bool = True, **environment: str) -> MetalakeServer:
        server = prepare(tmp_path_factory.mktemp("metalake"), **environment)
        if migrated:
            on_a_migrated_store(server)
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
        command, log = [sys.executable, "manage.py", "worker"], server.home / "worker.log"
        workers.append(processes.start("the worker", command, log, cwd=REPOSITORY, env=server.environment))
        return workers[-1]

    yield start
    for worker in workers:
        processes.kill(worker)


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


@contextmanager
def without_complaints(page: Page) -> Iterator[None]:
    """Fail when a script or the content security policy complains meanwhile."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    yield
    refused = ("Failed to load resource", "Response Status Error Code")  # as the browser and htmx note a status
    complaints = [text for text in complaints if not text.startswith(refused)]
    assert not complaints, f"the page complained: {complaints}"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page, signed in nowhere; the test fails when a script or the content security policy complains."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(BROWSER_PATIENCE)
    page = context.new_page()
    with without_complaints(page):
        yield page
        context.close()
