"""Common parts of all jobs: environment, arguments, failures, progress reports and the Spark session.

Runs of a template get their whole environment from the server. For a manual spark-submit, set METALAKE_URL,
METALAKE_METALAKE and METALAKE_TOKEN; results are then written with that token too.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from threading import Event, Thread
from typing import TYPE_CHECKING

from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client
from metalake_client.spark import metalake_session
from metalake_client.spark.errors import is_sparks_error, reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEM = "system"  # the catalog of results
SHOWN_EVERY, SENT_EVERY = 10.0, 2.0  # seconds between lines without a terminal, and between reports to the server
_TOKEN = re.compile(r"mlk_[A-Za-z0-9_-]+")  # Java may show one in a URL
_LIMITED = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class Job:
    """One run: its server, the tokens of caller and results' writer, and its id (empty without a template)."""

    url: str
    metalake: str
    token: str = field(repr=False)
    system_token: str = field(repr=False)
    run: str = ""

    @classmethod
    def from_environment(cls, given: Mapping[str, str] = os.environ) -> Job:
        """Read the environment. Raises Failure naming the missing variables."""
        missing = [name for name in ("METALAKE_URL", "METALAKE_METALAKE", "METALAKE_TOKEN") if not given.get(name)]
        if missing:
            raise Failure(
                f"Set {', '.join(missing)}: a job is told by its environment where and who it is.", Exit.USAGE
            )
        token = given["METALAKE_TOKEN"]
        own = given.get("METALAKE_SYSTEM_TOKEN") or token
        return cls(given["METALAKE_URL"], given["METALAKE_METALAKE"], token, own, given.get("METALAKE_RUN", ""))

    @cached_property
    def client(self) -> Client:
        """A client that sends requests as the user who started the job."""
        return Client(self.url, token=self.token)

    @cached_property
    def writer(self) -> Client:
        """A client that sends requests as the user who writes the results."""
        return Client(self.url, token=self.system_token)

    def session(self, **settings: str) -> SparkSession:
        """A Spark session of the results' writer with the catalog `system`, and the jars of METALAKE_SPARK_JARS if set.

        Raises Failure, also if the metalake has no such catalog.
        """
        jars = [each for each in os.environ.get("METALAKE_SPARK_JARS", "").split(",") if each]
        # Results are published without Spark's involvement, so it must not cache tables.
        fresh = {f"spark.sql.catalog.{SYSTEM}.cache-enabled": "false", "spark.sql.session.timeZone": "UTC"}
        return metalake_session(
            self.url, self.metalake, self.system_token, only=(SYSTEM,), jars=jars or None, settings=fresh | settings
        )


def run(body: Callable[[Job, dict[str, str]], None], defaults: Mapping[str, str], given: Sequence[str]) -> int:
    """Run a job's body; returns the exit code (metalake_client.failures.Exit). Errors are printed in one line.

    `defaults` has all arguments with their default values.
    """
    try:
        bring_python()
        body(Job.from_environment(), arguments(defaults, given))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return int(failure.exit_code)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except Exception as problem:
        if not is_sparks_error(problem):
            raise
        reason = _TOKEN.sub("******", reason_of(problem)) or "it gives no reason."
        print(f"Spark failed: {reason}", file=sys.stderr)
        return int(Exit.FAILED)
    return int(Exit.DONE)


def bring_python() -> None:
    """Make Spark's workers use this Python, which has the job's imports, instead of `python3` from the PATH."""
    python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        if running := SparkContext._active_spark_context:  # started by someone else
            running.pythonExec = python


def arguments(defaults: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
    """Arguments of the form --name=value over the defaults. Raises Failure for any other."""
    values = dict(defaults)
    for each in given:
        name, equals, value = each.removeprefix("--").partition("=")
        if not (each.startswith("--") and equals and name in defaults):
            known = ", ".join(f"--{one}=..." for one in defaults) or "none"
            raise Failure(f"{each[:80]!r} is no argument of this job; it has {known}.", Exit.USAGE)
        values[name] = value
    return values


def whole(name: str, text: str, least: int, most: int) -> int:
    """Parse a whole-number argument from `least` to `most`. Raises Failure."""
    if not _LIMITED.fullmatch(text) or not least <= int(text) <= most:
        raise Failure(f"--{name} is a whole number from {least} to {most}, not {text[:80]!r}.", Exit.USAGE)
    return int(text)


def moment(name: str, text: str) -> datetime:
    """Parse a timestamp argument; UTC if it has no zone. Raises Failure."""
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Failure(f"--{name} is a moment like 2026-11-30T12:00:00Z, not {text[:80]!r}.", Exit.USAGE) from None


def written(at: datetime) -> str:
    """A timestamp in the API's format."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Progress:
    """A job's progress, on stderr and as the progress of its run.

    `stage` starts the next stage, whose total may be unknown. Reports are throttled.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._shown = self._sent = 0.0
        self._begin("", None)

    def stage(self, name: str, total: int | None = None) -> None:
        self._begin(name, total)
        self.at(0, now=True)

    def _begin(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done, self._began = name, total, 0, time.monotonic()

    def at(self, done: int, *, now: bool = False) -> None:
        """Report the stage's progress; `now` bypasses the throttling."""
        self.done, moment = done, time.monotonic()
        is_terminal = sys.stderr.isatty()
        if now or moment - self._shown >= (0.2 if is_terminal else SHOWN_EVERY):
            self._shown = moment
            ends = {"end": ""} if is_terminal and not now else {}
            print(f"\r\033[K{self}" if is_terminal else str(self), file=sys.stderr, flush=True, **ends)
        if self.job.run and (now or moment - self._sent >= SENT_EVERY):
            self._sent = moment
            self._send()

    @contextmanager
    def following(self, done: Callable[[], int]) -> Iterator[None]:
        """Report the count from `done` every second while Spark is working."""
        ended = Event()

        def look() -> None:
            while not ended.wait(1.0):
                try:
                    self.at(done())
                except Failure:
                    return  # the job's next request reports the cause

        thread = Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def __str__(self) -> str:
        seconds = time.monotonic() - self._began
        rate = self.done / seconds if seconds > 0.01 else 0.0
        of = "" if self.total is None else f" of {self.total:,}"
        if not self.done:
            return f"{self.name}{of and ': 0'}{of}"
        left = f", {(self.total - self.done) / rate:.0f} s left" if rate and self.total else ""
        return f"{self.name}: {self.done:,}{of}, {rate:,.0f}/s{left}"

    def _send(self) -> None:
        """Raises Failure if the server refuses the report, which stops a run that was ended."""
        body = {"done": min(self.done, self.total or self.done), "total": self.total, "stage": self.name}
        path = ("metalakes", self.job.metalake, "jobs", "runs", self.job.run, "progress")
        try:
            self.job.client.call("PUT", *path, body=body)
        except Failure as failure:
            if failure.exit_code is not Exit.UNREACHABLE:  # one report lost in a server restart does not matter
                raise
