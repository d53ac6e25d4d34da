"""Starts a job's process and leaves none behind: run as `python -I -S supervisor.py`, with a pipe as standard input.

The first input line is the job as JSON; a line `cancel` ends it, and so does the end of the input, which means that the
watching process died. It is the subreaper of the job's orphans (prctl(2), PR_SET_CHILD_SUBREAPER), and the job's first
process dies with it (PR_SET_PDEATHSIG). Its output is JSON lines. It loads only the standard library, and inherits
nothing from the server.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
PAGE = resource.getpagesize()
TICK, STORED_EVERY, LOOKED_EVERY, DRAINED = 0.2, 1.0, 0.5, 2.0  # seconds
INPUT = 0
MASK = b"******"


def prctl(option: int, value: int) -> None:
    """Call prctl(2) on Linux; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Log:
    """The head and the tail of the output, in memory and in one file, with secrets masked."""

    def __init__(self, path: str, limit: int, secrets: list[str]) -> None:
        self.path = path
        self.secrets = [secret.encode() for secret in secrets]
        self.head_size = limit // 4
        self.tail_size = limit - self.head_size
        self.head, self.tail, self.held_back = b"", bytearray(), b""
        self.total, self.is_stored = 0, True

    def write(self, written: bytes, *, is_last: bool = False) -> None:
        text = self.held_back + written
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        cut = len(text) if is_last else len(text) - self._begun(text)
        self.held_back, text = text[cut:], text[:cut]
        self.total += len(text)
        room = self.head_size - len(self.head)
        if room > 0:
            self.head, text = self.head + text[:room], text[room:]
        self.tail += text
        if len(self.tail) > 2 * self.tail_size:
            del self.tail[: -self.tail_size]
        self.is_stored = False

    def _begun(self, text: bytes) -> int:
        """The length in bytes of the longest suffix of the text that may be the beginning of a secret."""
        return max(
            (
                size
                for secret in self.secrets
                for size in range(1, min(len(secret), len(text) + 1))
                if text.endswith(secret[:size])
            ),
            default=0,
        )

    def store(self) -> None:
        """Replace the file atomically; a full disk loses the newest lines, but does not stop the job."""
        if self.is_stored:
            return
        tail = bytes(self.tail[-self.tail_size :])
        sizes = {"head": len(self.head), "tail": len(tail), "total": self.total}
        try:
            with open(f"{self.path}.new", "wb") as file:
                file.write(json.dumps(sizes).encode() + b"\n" + self.head + tail)
            os.replace(f"{self.path}.new", self.path)
            self.is_stored = True
        except OSError:
            pass


class Job:
    """A job's first process with all its descendants."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.log = Log(asked["log"], asked["limit"], asked["secrets"])
        self.reason, self.code = "", None  # type: str, int | None
        self.kill_at = 0.0
        began = time.monotonic()
        self.deadline, self.store_at, self.look_at = began + asked["seconds"], began, began
        self.process = subprocess.Popen(  # noqa: S603 (the command is a list; no shell reads it)
            asked["command"],
            cwd=asked["folder"],
            env=asked["environment"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=self._before,  # there are no threads
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.output, False)

    def _before(self) -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.nice(self.asked["niceness"])

    def watch(self) -> None:
        """Watch until the first process has ended, then kill all others."""
        with selectors.DefaultSelector() as ready:
            ready.register(self.output, selectors.EVENT_READ)
            ready.register(INPUT, selectors.EVENT_READ)
            while self.code is None:
                for key, _ in ready.select(TICK):
                    if key.fd == INPUT:
                        self._hear()
                    elif not self._read():
                        ready.unregister(self.output)
                self._look(time.monotonic())
        self.end_all()
        until = time.monotonic() + DRAINED
        while self._read() and time.monotonic() < until:
            pass
        self.log.write(b"", is_last=True)
        self.log.store()

    def _hear(self) -> None:
        line = os.read(INPUT, 4096)
        if not line:  # the watcher died
            self.end_all()
            os._exit(1)
        self._stop("cancelled")

    def _read(self) -> bool:
        """Read a chunk of output; whether more may come."""
        try:
            written = os.read(self.output, 1 << 16)
        except BlockingIOError:
            return self.code is None
        self.log.write(written)
        return bool(written)

    def _look(self, now: float) -> None:
        self._reap()
        if now >= self.deadline:
            self._stop("time")
        if self.kill_at and now >= self.kill_at:
            self.end_all()
        if now >= self.look_at:
            self.look_at = now + LOOKED_EVERY
            if sum(map(memory_of, descendants())) > self.asked["memory"]:
                self._stop("memory", grace=0)
        if now >= self.store_at:
            self.store_at = now + STORED_EVERY
            self.log.store()

    def _stop(self, reason: str, grace: float | None = None) -> None:
        """Send SIGTERM, and kill it after a grace period in seconds; only the first reason counts."""
        if self.reason:
            return
        self.reason = reason
        self.kill_at = time.monotonic() + (self.asked["grace"] if grace is None else grace)
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
        except (ProcessLookupError, PermissionError):
            pass

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.process.pid:
                self.code = self.process.returncode = os.waitstatus_to_exitcode(status)

    def end_all(self) -> None:
        """Kill all descendants, until there are none (at most 200 rounds)."""
        for _ in range(200):
            below = descendants()
            if not below:
                return
            for pid in below:
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass
            self._reap()
            time.sleep(0.01)


def descendants() -> list[int]:
    """The ids of this process's descendants, from /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = file.read().rpartition(b")")[2].split()[1]
            except OSError:
                continue
            children.setdefault(int(parent), []).append(int(name))
    below, waiting = list[int](), [os.getpid()]
    while waiting:
        more = children.get(waiting.pop(), [])
        below += more
        waiting += more
    return below


def memory_of(pid: int) -> int:
    """A process's resident memory in bytes."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def say(**what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def asked_for() -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(INPUT, 1 << 16)
        if not more:
            os._exit(1)
        line += more
    asked: dict[str, Any] = json.loads(line)
    return asked


def main() -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        job = Job(asked_for())
    except (OSError, ValueError) as failure:
        say(failed=getattr(failure, "strerror", None) or str(failure))
        return
    say(started=job.process.pid)
    job.watch()
    say(ended=job.code, reason=job.reason)


if __name__ == "__main__":
    main()
