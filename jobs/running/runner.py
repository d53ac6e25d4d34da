"""Runs jobs one after the other: starts a supervisor for each, renews the lease, and stores how it ended.

The supervisor reads a pipe whose other end is here: if this process dies in any way, the supervisor ends the job.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from jobs.commands import Command
from jobs.models import JobRun
from jobs.running import run_rows, supervisor
from jobs.running.processes import end_marked
from jobs.running.run_rows import Output, Secrets
from metalake.errors import MetalakeError
from metalake.leases import TakenOver
from metalake.request_target import in_url

log = logging.getLogger(__name__)

BEAT = 3.0  # seconds
GRACE = 5.0  # seconds between SIGTERM and SIGKILL
PARTING = 15.0  # seconds for a supervisor to exit once its input is closed
NICENESS = 5
MARK = "METALAKE_RUN"
REASONS = {
    "time": "It ran longer than METALAKE_JOB_TIMEOUT allows.",
    "memory": "It took more memory than METALAKE_JOB_MEMORY allows.",
    "cancelled": "",
}
_running = 0
_lock = threading.Lock()


def work() -> int:
    """Execute queued runs, unless all METALAKE_JOBS slots of this process are busy; returns how many."""
    count = 0
    with _place() as is_free:
        while is_free and (run := run_rows.take()):
            execute(run)
            count += 1
    return count


@contextmanager
def _place() -> Iterator[bool]:
    global _running
    with _lock:
        is_free = _running < settings.METALAKE_JOBS
        _running += is_free
    try:
        yield is_free
    finally:
        with _lock:
            _running -= is_free


def folder_of(run_id: int) -> Path:
    return settings.METALAKE_HOME / "jobs" / str(run_id)


def execute(run: JobRun) -> None:
    """Execute a run to its end. Failures are stored in the run, not raised."""
    folder = folder_of(run.pk)
    try:
        _execute(run, folder)
    except TakenOver:
        log.info("run %s is not this process's any more; its own was ended", run.pk)
    except MetalakeError as refusal:
        _fail(run, refusal.message)
    except Exception as failure:
        log.exception("run %s could not be watched", run.pk)
        _fail(run, f"The server failed ({type(failure).__name__}); its log says more.")
    finally:
        end_marked(MARK, [run.pk])
        shutil.rmtree(folder, ignore_errors=True)


def _fail(run: JobRun, error: str) -> None:
    try:
        run_rows.finish(run, JobRun.Status.FAILED, None, error, None)
    except (TakenOver, DatabaseError):
        log.warning("the end of run %s was not noted here; its lease is", run.pk)


def _execute(run: JobRun, folder: Path) -> None:
    working = folder / "work"
    shutil.rmtree(folder, ignore_errors=True)
    working.mkdir(mode=0o700, parents=True)
    command, secrets = run_rows.prepare(run, str(working))
    for name, target in command.links.items():
        (working / name).symlink_to(target)
    watched = Watched(run, folder)
    try:
        watched.start(command, secrets)
        watched.watch()
    finally:
        watched.end()
    watched.note()


class Watched:
    """A run with its supervisor."""

    def __init__(self, run: JobRun, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.log = folder / "log"
        self.report: dict[str, Any] = {}
        self.is_cancelled = False
        self.renewed_at = time.monotonic()
        self.stored = -1
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )

    def start(self, command: Command, secrets: Secrets) -> None:
        asked = {
            "command": command.arguments,
            "environment": command.environment | _of_run(self.run, secrets),
            "folder": str(self.folder / "work"),
            "log": str(self.log),
            "limit": settings.METALAKE_JOB_LOG,
            "memory": settings.METALAKE_JOB_MEMORY,
            "seconds": settings.METALAKE_JOB_TIMEOUT,
            "grace": GRACE,
            "niceness": NICENESS,
            "secrets": [secret for secret in secrets if secret],
        }
        self._tell(json.dumps(asked))

    def _tell(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it died, which its output shows

    def watch(self) -> None:
        """Watch until the run ends. Raises TakenOver if another process has it, or if its lease expired."""
        assert self.process.stdout is not None
        output, rest = self.process.stdout.fileno(), b""
        beat_at = 0.0
        while not {"ended", "failed"} & set(self.report):
            ready, _, _ = select.select([output], [], [], max(0.0, beat_at - time.monotonic()))
            if ready:
                more = os.read(output, 4096)
                if not more:
                    return
                *lines, rest = (rest + more).split(b"\n")
                for line in lines:
                    self.report |= json.loads(line)
            if time.monotonic() >= beat_at:
                self._beat()
                beat_at = time.monotonic() + BEAT

    def _beat(self) -> None:
        try:
            status = run_rows.renew(self.run)
            self._store()
        except DatabaseError:
            close_old_connections()
            if time.monotonic() - self.renewed_at > run_rows.LEASE.total_seconds():
                raise TakenOver from None
            return
        self.renewed_at = time.monotonic()
        if status == JobRun.Status.CANCELLING and not self.is_cancelled:
            self.is_cancelled = True
            self._tell("cancel")

    def _store(self) -> None:
        output = self.output()
        if output is not None and output.total != self.stored:
            run_rows.store(self.run, output)
            self.stored = output.total

    def output(self) -> Output | None:
        """The output so far; None before there is any."""
        try:
            sizes, _, content = self.log.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        head, tail, total = (json.loads(sizes)[name] for name in ("head", "tail", "total"))
        return Output(content[:head], content[head : head + tail], total)

    def end(self) -> None:
        """Stop the supervisor, and the job with it."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(PARTING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def note(self) -> None:
        """Store how the run ended."""
        status, error = JobRun.Status.FAILED, ""
        code, reason = self.report.get("ended"), self.report.get("reason")
        if "failed" in self.report:
            error = f"It could not be started: {self.report['failed']}."
        elif code is None:
            error = "The process that supervises it was ended, and its own with it."
        elif reason:
            error = REASONS[reason]
            status = JobRun.Status.CANCELLED if reason == "cancelled" else JobRun.Status.FAILED
        elif code == 0:
            status = JobRun.Status.SUCCEEDED
        else:
            error = f"It ended with {code}." if code > 0 else f"It was ended by signal {-code}."
        self._finish(status, code, error)

    def _finish(self, status: str, code: int | None, error: str) -> None:
        """Store it, retrying for up to LEASE while the database is down."""
        until = time.monotonic() + run_rows.LEASE.total_seconds()
        while True:
            try:
                run_rows.finish(self.run, status, code, error, self.output())
                return
            except DatabaseError:
                close_old_connections()
                if time.monotonic() > until:
                    raise
                time.sleep(BEAT)


def _of_run(run: JobRun, secrets: Secrets) -> dict[str, str]:
    """The environment variables that describe the server and the run to the job."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.METALAKE_HOST, settings.METALAKE_HOST)  # noqa: S104
    url = settings.METALAKE_JOB_URL or f"http://{in_url(host)}:{settings.METALAKE_PORT}"
    own = {"METALAKE_URL": url, "METALAKE_METALAKE": run.metalake.name, "METALAKE_TOKEN": secrets.own}
    return own | {MARK: str(run.pk)} | ({"METALAKE_SYSTEM_TOKEN": secrets.system} if secrets.system else {})
