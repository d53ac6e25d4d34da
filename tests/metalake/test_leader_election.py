"""One process of a server leads, one server has a data folder, and whoever has such a turn loses it only by ending."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from metalake.leader_election import LEADER, Turn, WakeupPipe
from tests.catalogs.racing import NATIVE, Client
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake, prepare
from tests.shared import kill_group
from tests.waiting import eventually

TAKES = """
import os, sys, time
from pathlib import Path
from metalake.leader_election import Turn
turn = Turn(Path(sys.argv[1]))
print(turn.is_mine(), flush=True)
if sys.argv[2] == "forks" and os.fork():
    os.kill(os.getpid(), 9)
time.sleep(60)
"""


@contextmanager
def another(path: Path, what: str = "waits") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that takes the turn, and whether it got it."""
    with subprocess.Popen(
        [sys.executable, "-c", TAKES, path, what],
        cwd=REPOSITORY,
        env=os.environ | {"METALAKE_HOME": str(path.parent)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            kill_group(process.pid)


def test_a_turn_is_one_process_s_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "turn"
    mine = Turn(path)
    with another(path) as (holder, got):
        assert got == "True"
        assert not mine.is_mine()
        assert mine.whose() == str(holder.pid)
        with another(path) as (_, second):
            assert second == "False"
        holder.kill()
        holder.wait()
        assert mine.is_mine()
        assert mine.whose() == str(os.getpid())
    with another(path) as (_, third):
        assert third == "False"
    assert mine.is_mine()


def test_a_process_that_was_forked_off_keeps_no_turn(tmp_path: Path) -> None:
    with another(tmp_path / "turn", "forks") as (holder, got):
        assert got == "True"
        holder.wait()  # and the other half of it goes on
        assert Turn(tmp_path / "turn").is_mine()


def test_a_folder_that_takes_no_file_gives_no_turn(tmp_path: Path) -> None:
    assert not Turn(tmp_path / "missing" / "turn").is_mine()
    assert Turn(tmp_path / "missing" / "turn").whose() == ""


def test_a_bell_is_heard_once_however_often_and_wherever_it_was_rung() -> None:
    bell = WakeupPipe()
    assert not bell.wait(0)
    for _ in range(70_000):  # more than a pipe holds
        bell.ring()
    if not (child := os.fork()):
        bell.ring()
        os._exit(0)
    os.waitpid(child, 0)
    assert bell.wait(0)
    assert not bell.wait(0)


# A server


def leader(server: MetalakeServer) -> int:
    return int((server.home / LEADER).read_text() or 0)


def delivered(log: Path, name: str) -> bool:
    return log.exists() and f'lake.{name}"' in log.read_text()


@pytest.mark.slow
@pytest.mark.server
def test_another_process_takes_up_what_a_killed_leader_left(start_metalake: StartMetalake, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    server = start_metalake(METALAKE_WORKERS="2", METALAKE_EVENT_LOG=str(events))
    assert eventually(lambda: leader(server) in server.processes())
    first = leader(server)
    other = next(pid for pid in server.doors() if pid != first)
    client = Client(server.url, process=other)
    assert client.send("POST", f"{NATIVE}/schemas", {"name": "before"}).status == 200
    assert eventually(lambda: delivered(events, "before")), "it leads for the other, too"
    os.kill(first, signal.SIGKILL)
    assert client.send("POST", f"{NATIVE}/schemas", {"name": "after"}).status == 200
    assert eventually(lambda: delivered(events, "after"))
    assert leader(server) != first


def refusal(environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", "serve"],
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


@pytest.mark.slow
@pytest.mark.server
def test_a_second_server_on_a_data_folder_or_a_store_is_refused_until_the_first_is_gone(
    start_metalake: StartMetalake, tmp_path: Path
) -> None:
    server = start_metalake(METALAKE_WORKERS="1")
    assert server.process is not None
    again = prepare(server.home)
    elsewhere = prepare(tmp_path / "own", METALAKE_DATABASE_URL=f"sqlite:///{server.home}/metalake.sqlite3")
    for second in (again, elsewhere):
        assert second.port != server.port
        said = refusal(second.environment)
        assert f"A server runs on {server.home} already (process {server.process.pid})" in said
        assert "METALAKE_HOME of its own" in said
    command = subprocess.run(
        [sys.executable, "manage.py", "verify_history"], cwd=REPOSITORY, env=server.environment, capture_output=True
    )
    assert command.returncode == 0, "short commands go on beside a server"
    process = psutil.Process(server.process.pid)
    left = process.children()
    process.kill()  # the rest of it ends a moment later, or is killed with the group
    process.wait()
    again.start()
    again.stop()
    server.kill()
    psutil.wait_procs(left, 10)
