"""Jars are what jars.toml says or are not run."""

import hashlib
from pathlib import Path

import pytest

from tests import jars
from tests.ports import free_port

HIVE = "org/apache/hive/hive-common/2.3.9/hive-common-2.3.9.jar"


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one jar, and an empty cache beside it."""
    jar = tmp_path / "maven" / HIVE
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"a jar")
    monkeypatch.setitem(jars.LOCKED, "hive", {HIVE: hashlib.sha256(b"a jar").hexdigest()})
    monkeypatch.setenv("METALAKE_TEST_MAVEN", (tmp_path / "maven").as_uri())
    monkeypatch.setenv("METALAKE_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars.time, "sleep", lambda seconds: None)
    return jar


def test_a_jar_is_fetched_once(maven: Path) -> None:
    (cached,) = jars.jars("hive")
    assert cached.read_bytes() == b"a jar"
    maven.unlink()
    assert jars.jars("hive") == [cached]


def test_a_jar_that_is_not_the_pinned_one_is_refused(maven: Path) -> None:
    maven.write_bytes(b"another jar")
    with pytest.raises(jars.JarsMissing, match=r"SHA-256.*jars\.toml"):
        jars.jars("hive")


def test_a_damaged_jar_is_fetched_again(maven: Path) -> None:
    (cached,) = jars.jars("hive")
    cached.write_bytes(b"a j")
    assert jars.jars("hive")[0].read_bytes() == b"a jar"


def test_without_maven_central_the_tests_skip_and_say_why(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALAKE_TEST_MAVEN", address := f"http://127.0.0.1:{free_port()}")
    with pytest.raises(pytest.skip.Exception, match=f"hive-common.*{address}.*refused.*METALAKE_TEST_MAVEN"):
        jars.needs_jars("hive")
