"""The Dockerfile, docker-compose.yml and nginx's configuration, as far as they run without a container engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import yaml
from django.core.management import get_commands

from tests import processes
from tests.architecture.rooms import CLIENTS, ROOMS
from tests.parts import not_offered
from tests.ports import free_port
from tests.servers import ADMIN_PASSWORD, REPOSITORY, MetalakeServer, StartMetalake
from tests.waiting import eventually


class Step(NamedTuple):
    """A line of the Dockerfile: RUN, COPY and the like, and what follows."""

    word: str
    text: str

    @property
    def words(self) -> list[str]:
        listed: list[str] = json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        return listed


LINES = [line for line in (REPOSITORY / "Dockerfile").read_text().splitlines() if line and line[0] != "#"]
STEPS = [Step(*line.split(" ", 1)) for line in LINES]
LAST = {step.word: step for step in STEPS}
COPIED = {source for step in STEPS if step.word == "COPY" and "--from" not in step.text for source in step.words[:-1]}
TOLD = dict(word.split("=", 1) for word in LAST["ENV"].words)
HEALTHCHECK = Step("CMD", LAST["HEALTHCHECK"].text.partition(" CMD ")[2]).words
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES, OURS = ("node1", "node2"), ("node1", "node2", "worker", "ring")
SETTINGS = {name: str(value) for name, value in SERVICES["node1"]["environment"].items()}
NGINX = (REPOSITORY / "containers" / "nginx.conf").read_text()
EXAMPLE = dict(re.findall(r"^(\w+)=(.*)$", (REPOSITORY / ".env.example").read_text(), re.MULTILINE))
FILLED = re.compile(r"(?<!\$)\$\{(\w+):([?-])([^}]*)\}")  # by docker compose
SECRET = re.compile("PASSWORD|SECRET|KEY|TOKEN|URL")
DEBIANS = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def test_the_image_holds_the_whole_code_and_runs_as_an_account_without_rights() -> None:
    assert {"requirements.txt", "LICENSE", "manage.py", *ROOMS, *CLIENTS} == COPIED
    assert all((REPOSITORY / source).exists() for source in COPIED)
    ignored = {*(REPOSITORY / ".dockerignore").read_text().splitlines()}
    assert not ignored & COPIED and {".*", "var"} <= ignored
    user = LAST["USER"].text
    assert re.fullmatch(r"(\d\d+):\1", user) and STEPS.index(LAST["USER"]) > STEPS.index(LAST["RUN"])
    assert {*LAST["RUN"].text.partition(f"chown {user} ")[2].split()} == {*places_of("node1")}
    assert not [name for name in TOLD if SECRET.search(name)] and "ARG" not in LAST


def test_what_containers_are_told_is_known() -> None:
    code = "".join(file.read_text() for room in ("metalake", "server") for file in (REPOSITORY / room).rglob("*.py"))
    told = {name for name in (*SETTINGS, *TOLD) if name.startswith("METALAKE_")}
    assert told <= {*re.findall(r'"(METALAKE_\w+)"', code)}
    for name in (*NODES, "worker"):
        service = SERVICES[name]
        assert service["environment"] == SERVICES["node1"]["environment"] and "entrypoint" not in service
        (command,) = service.get("command", LAST["CMD"].words)
        assert command in get_commands() and service["stop_grace_period"] == "40s"


def test_no_secret_has_a_default() -> None:
    asked = FILLED.findall((REPOSITORY / "docker-compose.yml").read_text())
    assert {name for name, how, _ in asked if how == "?"} == {*EXAMPLE}
    secrets = {name for name, _, _ in asked if SECRET.search(name)}
    assert len(secrets) == 4 and not any(EXAMPLE[name] for name in secrets)
    assert "/.env" in (REPOSITORY / ".gitignore").read_text().splitlines()


def places_of(name: str) -> dict[str, str]:
    """The volumes of a service: where it has them, and their names."""
    return {place: volume for volume, place in (each.split(":") for each in SERVICES[name]["volumes"])}


def test_nodes_share_what_they_have_to_share() -> None:
    ring = str(Path(SETTINGS["METALAKE_SECRET_KEYS_FILE"]).parent)
    for name in (*NODES, "worker"):
        assert places_of(name) == {TOLD["METALAKE_HOME"]: name, SETTINGS["METALAKE_WAREHOUSE"]: "lake", ring: "ring"}
    assert places_of("ring") == {ring: "ring"}
    assert {volume for name in OURS for volume in places_of(name).values()} < {*COMPOSE["volumes"]}
    assert {name for name, service in SERVICES.items() if service["image"] == "metalake"} == {*OURS}


def test_nginx_knows_the_nodes_and_they_know_it() -> None:
    port = TOLD["METALAKE_PORT"]
    assert LAST["EXPOSE"].text == port
    assert re.findall(r"^\s+server (\S+) max_fails", NGINX, re.MULTILINE) == [f"{node}:{port}" for node in NODES]
    (listens,), (published,) = re.findall(r"listen (\d+);", NGINX), SERVICES["nginx"]["ports"]
    assert published.startswith("127.0.0.1:") and published.endswith(f":{listens}")
    assert SETTINGS["METALAKE_TRUSTED_PROXIES"] == SERVICES["nginx"]["networks"]["outer"]["ipv4_address"]
    assert SETTINGS["METALAKE_JOB_URL"] == f"http://nginx:{listens}"
    assert SETTINGS["METALAKE_ALLOWED_HOSTS"].endswith(",nginx")


def test_the_settings_and_the_key_ring_are_taken(tmp_path: Path) -> None:
    """With the command that makes the ring, run twice: a ring that is there stays."""
    here = lambda text: FILLED.sub(lambda found: "a1b2c3" * 9 * (found[2] == "?"), text).replace("/srv", str(tmp_path))  # noqa: E731
    own = {name: here(value) for name, value in SETTINGS.items()} | {"METALAKE_HOME": str(tmp_path / "home")}
    (tmp_path / "metalake").mkdir()
    make = [*SERVICES["ring"]["entrypoint"], here(SERVICES["ring"]["command"][0]).replace("$$", "$")]
    rings = []
    for _ in range(2):
        subprocess.run(make, check=True)
        rings.append(Path(own["METALAKE_SECRET_KEYS_FILE"]).read_text())
    assert rings[0] == rings[1]
    read = "import django; django.setup(); from catalogs import keyring; print(keyring.newest().id)"
    own["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
    done = subprocess.run([sys.executable, "-c", read], cwd=REPOSITORY, env=own, capture_output=True, text=True)
    assert done.stdout == "first\n", done.stderr


def healthy(port: int, python: str) -> bool:
    command = [python, *HEALTHCHECK[1:]]
    return subprocess.run(command, env={"METALAKE_PORT": str(port)}, capture_output=True, check=False).returncode == 0


def test_the_image_knows_whether_it_is_healthy(metalake_server: MetalakeServer) -> None:
    assert healthy(metalake_server.port, sys.executable) and not healthy(free_port(), sys.executable)


class Build:
    """The steps of the image in a folder, as nobody, or as this account where it is not root."""

    def __init__(self, root: Path) -> None:
        self.root, self.where = root, root
        uid = 65534 if os.getuid() == 0 else os.getuid()
        self.user = f"{uid}:{uid}" if os.getuid() == 0 else f"{uid}:{os.getgid()}"
        self.as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
        self.environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.environment |= {"PATH": DEBIANS, "HOME": str(root), "TMPDIR": str(root)}
        subprocess.run(["chown", self.user, root], check=True)

    def here(self, text: str) -> str:
        return re.sub(r"(?<![\w.])/(opt|srv|var)/", rf"{self.root}/\1/", text).replace(LAST["USER"].text, self.user)

    def run(self, *command: str) -> None:
        command = (*self.as_user, *command)
        done = subprocess.run(command, cwd=self.where, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

    def step(self, step: Step) -> None:
        if step.word == "WORKDIR":
            self.run("mkdir", "-p", self.here(step.text))
            self.where = Path(self.here(step.text))
        elif step.word == "RUN":
            self.run("sh", "-c", self.here(step.text))
        elif step.word == "COPY" and (source := step.words[0]).startswith("--from="):
            assert STEPS[0].text.endswith(f" AS {source.removeprefix('--from=')}")
            assert Path(self.here(step.words[1])) == self.where / step.words[2]  # it is there already
        elif step.word == "COPY":
            for source in step.words[:-1]:
                subprocess.run(["cp", "-r", REPOSITORY / source, self.where / step.words[-1]], check=True)
            subprocess.run(["chown", "-R", self.user, self.where], check=True)
        elif step.word == "ENV":
            self.environment |= {name: self.here(value) for name, value in TOLD.items()}


@pytest.fixture
def build() -> Iterator[Build]:
    with tempfile.TemporaryDirectory(prefix="metalake-image-") as folder:
        yield Build(Path(folder))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_step_of_the_image_runs_in_a_fresh_folder(build: Build) -> None:
    for step in STEPS:
        build.step(step)
    port, python = free_port(), str(build.where / LAST["ENTRYPOINT"].words[0])
    own = {"METALAKE_HOST": "127.0.0.1", "METALAKE_PORT": str(port), "METALAKE_ADMIN_PASSWORD": ADMIN_PASSWORD}
    command = [*build.as_user, *LAST["ENTRYPOINT"].words, *LAST["CMD"].words]
    ready, log = lambda: healthy(port, python), build.root / "log"
    server = processes.start("it", command, log, ready, 120, cwd=build.where, env=build.environment | own)
    try:
        there = {path.name for path in build.where.iterdir()}
        assert there == {*COPIED, ".venv", "__pycache__"}, "it wrote beside its code"
        server.send_signal(signal.SIGTERM)
        assert server.wait(40) == 0
    finally:
        processes.kill(server)


@contextmanager
def nginx_before(server: MetalakeServer, folder: Path) -> Iterator[str]:
    """The URL of a real nginx whose second node is away."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:{DEBIANS}")
    if program is None:
        not_offered("nginx: apt install nginx-light")
    port = free_port()
    nodes = {"listen 8080": f"listen 127.0.0.1:{port}", "node1:8090": f"127.0.0.1:{server.port}"}
    conf = NGINX
    for name, here in (nodes | {"node2:8090": f"127.0.0.1:{free_port()}"}).items():
        conf = conf.replace(name, here)
    kept = "".join(f"{part}_temp_path {folder};" for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (file := folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log stderr; events {{}} http {{ {kept} {conf} }}"
    )
    command = [program, "-p", str(folder), "-c", str(file)]
    subprocess.run([*command, "-t"], check=True)
    ready = lambda: processes.answers(f"http://127.0.0.1:{port}/health")  # noqa: E731
    nginx = processes.start("nginx", [*command, "-g", "daemon off;"], folder / "log", ready)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        processes.kill(nginx)


@pytest.mark.long
def test_nginx_passes_on_what_came(start_metalake: StartMetalake, tmp_path: Path) -> None:
    server = start_metalake(METALAKE_TRUSTED_PROXIES="127.0.0.1")
    with nginx_before(server, tmp_path) as url, requests.Session() as as_admin, requests.Session() as page:
        as_admin.auth = ("admin", ADMIN_PASSWORD)
        odd = as_admin.get(f"{url}/api/metalakes/demo/catalogs/a%2Fb%3Ac")
        assert odd.status_code == 404 and "a/b:c" in odd.json()["message"]
        large = as_admin.post(f"{url}/api/metalakes", json={"name": "x" * 4_000_000})
        assert large.status_code == 413 and "may take 2097152 bytes" in large.text
        of_an_issuer = {"Authorization": f"Bearer {'x' * 16_000}"}
        assert requests.get(f"{url}/api/metalakes", headers=of_an_issuer).json()["type"] == "UnauthorizedException"
        page.get(f"{url}/login")
        form = {"username": "admin", "password": ADMIN_PASSWORD, "csrfmiddlewaretoken": page.cookies["csrftoken"]}
        signed_in = page.post(f"{url}/login", data=form, headers={"Origin": url}, allow_redirects=False)
        assert signed_in.status_code == 302
        server.restart()
        assert eventually(lambda: processes.answers(f"{url}/health/ready"))
