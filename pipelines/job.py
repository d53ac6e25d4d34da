"""What every job has in common: what its environment tells it, its arguments, how it fails, how far it is, and Spark.

A run of a template is told all of it; one that is started by hand, with spark-submit, sets METALAKE_URL,
METALAKE_METALAKE and METALAKE_TOKEN itself, and writes its results with that token, too.
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
SHOWN_EVERY, SENT_EVERY = 10.0, 2.0  # seconds between two lines where no terminal is, and two reports to the server
_TOKEN = re.compile(r"mlk_[A-Za-z0-9_-]+")  # which Java may show in an address
_LIMITED = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class Job:
    """One run: its server, and the tokens of caller and results' writer. `run` is a template run's id, or empty."""

    url: str
    metalake: str
    token: str = field(repr=False)
    system_token: str = field(repr=False)
    run: str = ""

    @classmethod
    def from_environment(cls, given: Mapping[str, str] = os.environ) -> Job:
        """Raises Failure naming a variable that is missing."""
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
        """A Spark session with the catalog `system`, as its writer, with the jars of METALAKE_SPARK_JARS if set.

        Raises Failure, also where the metalake has no such catalog.
        """
        jars = [each for each in os.environ.get("METALAKE_SPARK_JARS", "").split(",") if each]
        # Results are published past Spark, so it may not remember what it read of a table before.
        fresh = {f"spark.sql.catalog.{SYSTEM}.cache-enabled": "false", "spark.sql.session.timeZone": "UTC"}
        return metalake_session(
            self.url, self.metalake, self.system_token, only=(SYSTEM,), jars=jars or None, settings=fresh | settings
        )


def run(body: Callable[[Job, dict[str, str]], None], defaults: Mapping[str, str], given: Sequence[str]) -> int:
    """Run a job's body with its arguments; its exit code (metalake_client.failures.Exit). An error is one line.

    `defaults` has each argument with its value where none is given.
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
    """Have Spark's workers run this Python, which has what a job imports: they would run the `python3` of the PATH."""
    python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        if running := SparkContext._active_spark_context:  # it was started by others
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
    """The number of an argument. Raises Failure."""
    if not _LIMITED.fullmatch(text) or not least <= int(text) <= most:
        raise Failure(f"--{name} is a whole number from {least} to {most}, not {text[:80]!r}.", Exit.USAGE)
    return int(text)


def moment(name: str, text: str) -> datetime:
    """The moment of an argument, in UTC where it names no zone. Raises Failure."""
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
        """Show what `done` counts, while Spark is at work."""
        ended = Event()

        def look() -> None:
            while not ended.wait(1.0):
                try:
                    self.at(done())
                except Failure:
                    return  # what it asks next tells why

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
        """Raises Failure where the server refuses it, so that a run that was ended ends."""
        body = {"done": min(self.done, self.total or self.done), "total": self.total, "stage": self.name}
        path = ("metalakes", self.job.metalake, "jobs", "runs", self.job.run, "progress")
        try:
            self.job.client.call("PUT", *path, body=body)
        except Failure as failure:
            if failure.exit_code is not Exit.UNREACHABLE:  # a server that restarts loses a report of many
                raise
