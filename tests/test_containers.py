"""The Dockerfile, docker-compose.yml and nginx's configuration, as far as they run without a container engine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from django.core.management import get_commands

from tests import processes
from tests.architecture.rooms import CLIENTS, ROOMS
from tests.dockerfile import Image, Step
from tests.parts import not_offered
from tests.ports import free_port
from tests.servers import ADMIN_PASSWORD, REPOSITORY, MetalakeServer, StartMetalake
from tests.waiting import eventually

IMAGE = Image.read(REPOSITORY / "Dockerfile")
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "metalake"}
NODES = {name: service for name, service in OURS.items() if "command" not in service}
SETTINGS: dict[str, str] = {name: str(value) for name, value in NODES["node1"]["environment"].items()}
NGINX = (REPOSITORY / "containers" / "nginx.conf").read_text()
EXAMPLE = (REPOSITORY / ".env.example").read_text()
GIVEN = re.compile(r"(?<!\$)\$\{(\w+)(:[?-])?([^}]*)\}")  # what docker compose fills in
OWN_FOLDERS = re.compile(r"(?<![\w.])/(opt|srv|var)/")  # absolute places of the image
DEBIANS = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def filled(text: str, given: dict[str, str]) -> str:
    """As docker compose fills it in."""
    return GIVEN.sub(lambda found: given.get(found[1]) or (found[3] if found[2] == ":-" else ""), text)


# -- What the files say of the repository and of one another


def test_the_image_holds_the_whole_code_and_nothing_else() -> None:
    packages = {*ROOMS, *CLIENTS}
    assert {*IMAGE.copied} == {"requirements.txt", "LICENSE", "manage.py", *packages}
    assert all((REPOSITORY / source).exists() for source in IMAGE.copied)
    ignored = {line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line[0] != "#"}
    assert not ignored & {*IMAGE.copied} and {".*", "var"} <= ignored
    assert "--require-hashes -r requirements.txt" in IMAGE.all("RUN")[0].text


def test_the_image_runs_as_an_account_without_rights() -> None:
    user = IMAGE.last("USER").text
    assert re.fullmatch(r"(\d+):\1", user) and not user.startswith("0:")
    assert IMAGE.steps.index(IMAGE.last("USER")) > IMAGE.steps.index(IMAGE.last("RUN"))
    written = {IMAGE.environment["METALAKE_HOME"], *places_of("node1")}
    assert written == {*IMAGE.last("RUN").text.partition(f"chown {user} ")[2].split()}
    secret = re.compile("PASSWORD|SECRET|KEY|TOKEN|URL")
    assert not [name for name in IMAGE.environment if secret.search(name)] and not IMAGE.all("ARG")


def test_what_containers_are_told_is_known() -> None:
    known = set()
    for file in (REPOSITORY / "metalake").rglob("*.py"):
        known |= set(re.findall(r'"(METALAKE_\w+)"', file.read_text()))
    told = {*SETTINGS, *IMAGE.environment}
    assert {name for name in told if name.startswith("METALAKE_")} <= known
    assert all(service["environment"] == NODES["node1"]["environment"] for service in (*NODES.values(), OURS["worker"]))
    for service in (NODES["node1"], NODES["node2"], OURS["worker"]):
        commands = service.get("command", IMAGE.last("CMD").words)
        assert commands[0] in get_commands() and len(commands) == 1
    assert int(NODES["node1"]["stop_grace_period"].removesuffix("s")) > 30


def test_no_secret_has_a_default() -> None:
    asked = {found[1]: found[2] for found in GIVEN.finditer((REPOSITORY / "docker-compose.yml").read_text())}
    example = dict(re.findall(r"^(\w+)=(.*)$", EXAMPLE, re.MULTILINE))
    assert {name for name, how in asked.items() if how == ":?"} == {*example}
    secrets = {name for name in asked if re.search("PASSWORD|SECRET|KEY|TOKEN", name)}
    assert len(secrets) == 4 and all(asked[name] == ":?" and example[name] == "" for name in secrets)
    assert "/.env" in (REPOSITORY / ".gitignore").read_text().splitlines()


def places_of(name: str) -> dict[str, str]:
    """The volumes of a service: where it has them, and their names."""
    return {place: volume for volume, place in (each.split(":") for each in OURS[name]["volumes"])}


def test_nodes_share_what_they_have_to_share() -> None:
    home, ring = IMAGE.environment["METALAKE_HOME"], str(Path(SETTINGS["METALAKE_SECRET_KEYS_FILE"]).parent)
    shared = {SETTINGS["METALAKE_WAREHOUSE"]: "lake", ring: "ring"}
    for name in (*NODES, "worker"):
        assert places_of(name) == {home: name, **shared}
    assert places_of("ring") == {ring: "ring"}
    assert {volume for name in OURS for volume in places_of(name).values()} < {*COMPOSE["volumes"]}
    assert len(NODES) == 2 and {"inner", "outer"} == {*NODES["node1"]["networks"]}
    assert SERVICES["postgres"]["networks"] == SERVICES["redis"]["networks"] == ["inner"]


def test_nginx_knows_the_nodes_and_they_know_it() -> None:
    port = IMAGE.environment["METALAKE_PORT"]
    assert IMAGE.last("EXPOSE").text == port
    assert re.findall(r"^\s+server (\S+) max_fails", NGINX, re.MULTILINE) == [f"{node}:{port}" for node in NODES]
    (listens,), (published,) = re.findall(r"listen (\d+);", NGINX), SERVICES["nginx"]["ports"]
    assert published.startswith("127.0.0.1:") and published.endswith(f":{listens}")
    assert SETTINGS["METALAKE_TRUSTED_PROXIES"] == SERVICES["nginx"]["networks"]["outer"]["ipv4_address"]
    assert SETTINGS["METALAKE_JOB_URL"] == f"http://nginx:{listens}"
    assert SETTINGS["METALAKE_ALLOWED_HOSTS"].split(",")[-1] == "nginx"


# -- What runs


def test_the_settings_and_the_key_ring_are_taken(tmp_path: Path) -> None:
    """With the command that makes the ring, run twice: a ring that is there stays."""
    given = dict.fromkeys(re.findall(r"^(\w+)=", EXAMPLE, re.MULTILINE), "a1b2c3" * 9)
    own = {name: filled(value, given).replace("/srv/", f"{tmp_path}/") for name, value in SETTINGS.items()}
    own |= {"METALAKE_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    (tmp_path / "metalake").mkdir()
    (command,) = OURS["ring"]["command"]
    make = [*OURS["ring"]["entrypoint"], command.replace("$$", "$").replace("/srv/", f"{tmp_path}/")]
    rings = []
    for _ in range(2):
        subprocess.run(make, check=True)
        rings.append(Path(own["METALAKE_SECRET_KEYS_FILE"]).read_text())
    assert rings[0] == rings[1]
    read = "import django; django.setup(); from catalogs import keyring; print(keyring.newest().id)"
    own["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
    command = [shutil.which("python3", path=str(REPOSITORY / ".venv" / "bin")) or "python3", "-c", read]
    done = subprocess.run(command, cwd=REPOSITORY, env=own, capture_output=True, text=True)
    assert done.stdout == "first\n", done.stderr


def healthy(port: int, where: Path = REPOSITORY) -> bool:
    own = {"METALAKE_PORT": str(port), "PATH": os.environ["PATH"]}
    return subprocess.run(IMAGE.healthcheck, cwd=where, env=own, capture_output=True, check=False).returncode == 0


def test_the_image_knows_whether_it_is_healthy(metalake_server: MetalakeServer) -> None:
    assert healthy(metalake_server.port) and not healthy(free_port())


@contextmanager
def folder_of_nobody() -> Iterator[tuple[Path, list[str], str]]:
    """A folder, what runs a command as its owner, and who that is: nobody, or this account where it is not root."""
    folder = Path(tempfile.mkdtemp(prefix="metalake-image-"))
    try:
        if os.getuid():
            yield folder, [], f"{os.getuid()}:{os.getgid()}"
        else:
            folder.chmod(0o755)
            shutil.chown(folder, 65534, 65534)
            yield folder, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], "65534:65534"
    finally:
        shutil.rmtree(folder)


class Build:
    """The steps of the image in a folder, as an account without rights."""

    def __init__(self, root: Path, as_user: list[str], user: str) -> None:
        self.root, self.as_user, self.user, self.where = root, as_user, user, root
        self.environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.environment |= {"PATH": DEBIANS, "HOME": str(root), "TMPDIR": str(root)}

    def here(self, text: str) -> str:
        return OWN_FOLDERS.sub(rf"{self.root}/\1/", text).replace(IMAGE.last("USER").text, self.user)

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
        elif step.word == "COPY" and "from" in step.flags:
            (copied, name), (stage, *_) = step.words, IMAGE.all("FROM")
            assert stage.text.endswith(f" AS {step.flags['from']}") and Path(self.here(copied)) == self.where / name
            assert (self.where / name).is_dir()
        elif step.word == "COPY":
            for source in step.words[:-1]:
                subprocess.run(["cp", "-r", REPOSITORY / source, self.where / step.words[-1]], check=True)
            subprocess.run(["chown", "-R", self.user, self.where], check=True)
        elif step.word == "ENV":
            self.environment |= {name: self.here(value) for name, value in IMAGE.environment.items()}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_step_of_the_image_runs_in_a_fresh_folder() -> None:
    with folder_of_nobody() as (root, as_user, user):
        build, port = Build(root, as_user, user), free_port()
        for step in IMAGE.steps:
            build.step(step)
        told = {"METALAKE_HOST": "127.0.0.1", "METALAKE_PORT": str(port), "METALAKE_ADMIN_PASSWORD": ADMIN_PASSWORD}
        own, command = build.environment | told, [*as_user, *IMAGE.command]
        ready = lambda: healthy(port, build.where)  # noqa: E731
        server = processes.start("the image", command, root / "log", ready, 120, cwd=build.where, env=own)
        try:
            there = {path.name for path in build.where.iterdir()}
            assert there == {*IMAGE.copied, ".venv", "__pycache__"}, "it wrote beside its code"
            server.send_signal(signal.SIGTERM)
            assert server.wait(40) == 0
        finally:
            processes.kill(server)


@pytest.mark.long
def test_nginx_passes_on_what_came(start_metalake: StartMetalake, tmp_path: Path) -> None:
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:{DEBIANS}")
    if program is None:
        not_offered("nginx: apt install nginx-light")
    port = free_port()
    server = start_metalake(METALAKE_TRUSTED_PROXIES="127.0.0.1")
    conf = NGINX.replace("/tmp/", f"{tmp_path}/").replace("listen 8080", f"listen 127.0.0.1:{port}")
    conf = conf.replace("node1:8090", f"127.0.0.1:{server.port}").replace("node2:8090", f"127.0.0.1:{free_port()}")
    (file := tmp_path / "nginx.conf").write_text(conf)
    command = [program, "-p", str(tmp_path), "-c", str(file)]
    subprocess.run([*command, "-t"], check=True)
    url = f"http://127.0.0.1:{port}"
    ready = lambda: processes.answers(f"{url}/health")  # noqa: E731
    nginx = processes.start("nginx", [*command, "-g", "daemon off;"], tmp_path / "log", ready)
    try:
        as_admin = requests.Session()
        as_admin.auth = ("admin", ADMIN_PASSWORD)
        odd = as_admin.get(f"{url}/api/metalakes/demo/catalogs/a%2Fb%3Ac")
        assert odd.status_code == 404 and "a/b:c" in odd.json()["message"]
        large = as_admin.post(f"{url}/api/metalakes", json={"name": "x" * 4_000_000})
        assert large.status_code == 413 and "may take 2097152 bytes" in large.text
        long = requests.get(f"{url}/api/version", headers={"Authorization": f"Bearer {'x' * 16_000}"})
        assert long.status_code in (200, 401)
        page = requests.Session()
        page.get(f"{url}/login")
        form = {"username": "admin", "password": ADMIN_PASSWORD, "csrfmiddlewaretoken": page.cookies["csrftoken"]}
        signed_in = page.post(f"{url}/login", data=form, headers={"Origin": url}, allow_redirects=False)
        assert signed_in.status_code == 302
        server.restart()
        assert eventually(lambda: processes.answers(f"{url}/health/ready"))
    finally:
        processes.kill(nginx)
