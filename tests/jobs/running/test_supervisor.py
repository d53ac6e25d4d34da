"""The program that starts a job's process: whatever dies, nothing of the job is left, and its log stays small."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.running import supervisor
from jobs.running.processes import end_marked
from jobs.running.supervisor import Log
from tests.waiting import eventually

NESTS = """
import os, subprocess, sys, time
if len(sys.argv) < 2:
    subprocess.Popen([sys.executable, __file__, "child"])
    subprocess.Popen([sys.executable, __file__, "daemon"], start_new_session=True)
    if os.fork() == 0 and os.fork() == 0:
        os.setsid()
        time.sleep(600)
print("up", flush=True)
time.sleep(600)
"""


class Supervised:
    def __init__(self, folder: Path, command: list[str], **more: Any) -> None:
        self.log = folder / "log"
        (folder / "work").mkdir(exist_ok=True)
        self.mark = str(int.from_bytes(os.urandom(6)))
        asked = {
            "command": command, "environment": {"PATH": "/usr/bin:/bin", "TEST_RUN": self.mark}, "log": str(self.log),
            "folder": str(folder / "work"), "limit": 4096, "memory": 1 << 40, "seconds": 600, "grace": 5,
            "niceness": 0, "secrets": ["mlk_secret"],
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.tell(json.dumps(asked | more))

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def says(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        said: dict[str, Any] = json.loads(self.process.stdout.readline() or "{}")
        return said

    def marked(self) -> list[int]:
        mine = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("TEST_RUN") == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    mine.append(process.pid)
            except psutil.Error:
                pass
        return mine

    def is_up(self, number: int) -> bool:
        return len(self.marked()) >= number and self.log.exists()


Start = Callable[..., Supervised]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[Supervised] = []

    def begin(*command: str, **more: Any) -> Supervised:
        begun.append(Supervised(tmp_path, list(command), **more))
        return begun[-1]

    yield begin
    for each in begun:
        each.process.kill()
        each.process.wait()
        end_marked("TEST_RUN", [int(each.mark)])


@pytest.fixture
def nests(tmp_path: Path, start: Start) -> Supervised:
    """A job of five processes, some of which have left its group and its parents."""
    program = tmp_path / "nests.py"
    program.write_text(NESTS)
    supervised = start(sys.executable, str(program))
    assert "started" in supervised.says()
    assert eventually(lambda: supervised.is_up(4))
    return supervised


def test_who_watches_dies(nests: Supervised) -> None:
    """However it dies, its end of the pipe is closed."""
    assert nests.process.stdin is not None
    nests.process.stdin.close()
    assert eventually(lambda: nests.process.poll() is not None)
    assert not nests.marked()


def test_a_cancellation(nests: Supervised) -> None:
    nests.tell("cancel")
    assert nests.says() == {"ended": -signal.SIGTERM, "reason": "cancelled"}
    assert not nests.marked()


def test_one_that_will_not_end(start: Start) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    stubborn = start(sys.executable, "-c", code, grace=0.2)
    stubborn.says()
    assert eventually(lambda: b"up" in (stubborn.log.read_bytes() if stubborn.log.exists() else b""))
    stubborn.tell("cancel")
    assert stubborn.says() == {"ended": -signal.SIGKILL, "reason": "cancelled"}


def test_its_first_process_dies(nests: Supervised) -> None:
    first = min(psutil.Process(nests.process.pid).children(), key=lambda each: each.create_time())
    first.send_signal(signal.SIGKILL)
    assert nests.says() == {"ended": -signal.SIGKILL, "reason": ""}
    assert not nests.marked()


def test_the_supervisor_dies(nests: Supervised) -> None:
    """The first process dies with it; whoever watches ends the others by their mark."""
    first = min(psutil.Process(nests.process.pid).children(), key=lambda each: each.create_time()).pid
    nests.process.kill()
    nests.process.wait()
    assert eventually(lambda: first not in nests.marked())
    end_marked("TEST_RUN", [int(nests.mark)])
    assert not nests.marked()


def test_what_it_leaves_behind_ends_with_it(start: Start) -> None:
    leaves = start("/bin/sh", "-c", "sleep 600 & setsid sleep 600 & echo done")
    leaves.says()
    assert leaves.says() == {"ended": 0, "reason": ""}
    assert not leaves.marked()


def test_a_gigabyte_of_output(start: Start) -> None:
    huge = start("/bin/sh", "-c", "echo begins; head -c 1000000000 /dev/zero; echo; echo ends; echo mlk_secret >&2")
    huge.says()
    assert huge.says() == {"ended": 0, "reason": ""}
    sizes, _, content = huge.log.read_bytes().partition(b"\n")
    assert json.loads(sizes) == {"head": 1024, "tail": 3072, "total": 1_000_000_000 + 7 + 1 + 5 + 7}
    assert content.startswith(b"begins\n") and content.endswith(b"\nends\n******\n") and len(content) == 4096
    assert sum(path.stat().st_size for path in huge.log.parent.rglob("*") if path.is_file()) < 8192


def test_secrets_are_masked_wherever_they_are_cut() -> None:
    text = b"a mlk_secret b mlk_secre mlk_mlk_secret"
    for size in range(1, len(text) + 1):
        log = Log("", 4096, ["mlk_secret"])
        for at in range(0, len(text), size):
            log.write(text[at : at + size])
        log.write(b"", is_last=True)
        assert log.head + bytes(log.tail) == b"a ****** b mlk_secre mlk_******", size
        assert log.total == len(log.head + log.tail)


def test_a_line_without_an_end_is_shown() -> None:
    log = Log("", 4096, ["mlk_secret"])
    log.write(b"Password for ml")
    assert log.head == b"Password for "
    log.write(b"x: ")
    assert log.head == b"Password for mlx: "


def test_a_program_that_is_none(start: Start) -> None:
    assert start("/no/such/program").says() == {"failed": "No such file or directory"}
