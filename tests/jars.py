"""Jars that the tests run with Java: PySpark's own, and those of tests/jars.toml, fetched once from Maven Central.

Those of Trino 483, 460 jars, are listed in tests/trino-483.toml.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path

import pytest

MAVEN = "https://repo1.maven.org/maven2"
LOCKED: dict[str, dict[str, str]] = {
    name: jars
    for file in ("jars.toml", "trino-483.toml")
    for name, jars in tomllib.loads(Path(__file__).with_name(file).read_text()).items()
}


class JarsMissing(Exception):
    """A jar is not in the cache and could not be fetched; says from where and why."""


def pyspark_jars() -> Path:
    """The folder of the jars that PySpark carries: Spark, Hive 2.3.10 with its metastore, Derby."""
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None, "call needs('spark') first"
    return Path(found.origin).parent / "jars"


def jars(name: str) -> list[Path]:
    """The jars of one table of jars.toml, from the cache or else from Maven Central; raises JarsMissing."""
    return [fetched(path, sha256) for path, sha256 in LOCKED[name].items()]


def needs_jars(name: str) -> None:
    """Skip the running test, saying why, unless these jars are in the cache or can be fetched."""
    try:
        jars(name)
    except JarsMissing as missing:
        pytest.skip(f"needs jars: {missing}")


def cache() -> Path:
    """$METALAKE_TEST_CACHE, or else metalake-tests in the user's cache folder."""
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("METALAKE_TEST_CACHE") or Path(user_cache) / "metalake-tests")


@contextmanager
def only_one(file: Path) -> Iterator[None]:
    """Hold `file` as a lock among processes; it ends with the process, whatever ends that."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def fetched(path: str, sha256: str) -> Path:
    """A file of Maven Central, from the cache or else from there, whatever its size; raises JarsMissing."""
    jar = cache() / path.rpartition("/")[2]
    with only_one(jar.with_suffix(".lock")):
        if not (jar.exists() and _checksum(jar) == sha256):
            unfinished = jar.with_suffix(".part")
            _fetch(path, unfinished)
            if (found := _checksum(unfinished)) != sha256:
                raise JarsMissing(f"{path} from {_maven()} has the SHA-256 {found}, and tests/jars.toml says {sha256}")
            unfinished.replace(jar)
    return jar


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _fetch(path: str, goal: Path) -> None:
    for pause in (0, 1, 5):
        time.sleep(pause)
        try:
            with urllib.request.urlopen(f"{_maven()}/{path}", timeout=15) as answer, goal.open("wb") as file:
                shutil.copyfileobj(answer, file)
                return
        except (OSError, HTTPException) as problem:
            why = problem
    what = f"{path} is not in {cache()}, and {_maven()} did not give it: {why}"
    raise JarsMissing(f"{what} (METALAKE_TEST_MAVEN may name a mirror)")


def _maven() -> str:
    return (os.environ.get("METALAKE_TEST_MAVEN") or MAVEN).rstrip("/")
