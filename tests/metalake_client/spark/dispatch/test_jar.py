"""The catalog's jar: made once for each Spark, whole or not at all, and refused in one line where it cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from metalake_client.failures import Failure
from metalake_client.spark import dispatch
from metalake_client.spark.dispatch import dispatch_jar

COMPILER = """#!/bin/sh
echo compiled >> {count}
while [ "$1" != -d ]; do shift; done
{then}
"""


@pytest.fixture
def spark_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files named as Spark's, and a Java that makes an empty jar."""
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("spark-catalyst_2.13-4.1.4.jar", "scala-compiler-2.13.17.jar", "runtime.jar"):
        (folder / name).touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java(tmp_path, 'touch "$2"')
    return folder


def java(home: Path, then: str) -> None:
    program = home / "java" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(COMPILER.format(count=home / "count", then=then))
    program.chmod(0o755)


def runs(home: Path) -> int:
    count = home / "count"
    return len(count.read_text().splitlines()) if count.exists() else 0


def test_it_is_made_once_for_each_spark_and_source(
    spark_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dispatch_jar(spark_jars, spark_jars / "runtime.jar")
    assert first.parent == tmp_path / "cache" / "metalake"
    assert dispatch_jar(spark_jars, spark_jars / "runtime.jar") == first and runs(tmp_path) == 1
    assert list(first.parent.iterdir()) == [first]
    (spark_jars / "spark-catalyst_2.13-4.1.4.jar").rename(spark_jars / "spark-catalyst_2.12-3.5.8.jar")
    other_spark = dispatch_jar(spark_jars, spark_jars / "runtime.jar")
    source = tmp_path / "Other.scala"
    source.write_text("class Other")
    monkeypatch.setattr(dispatch, "SOURCES", (source,))
    assert len({first, other_spark, dispatch_jar(spark_jars, spark_jars / "runtime.jar")}) == 3


def test_nothing_half_done_stays(spark_jars: Path, tmp_path: Path) -> None:
    java(tmp_path, 'touch "$2"; echo "x.scala:7: error: not found: type Seq" >&2; exit 1')
    with pytest.raises(Failure, match=r"did not make the catalog's jar: x\.scala:7: error: not found: type Seq$"):
        dispatch_jar(spark_jars, spark_jars / "runtime.jar")
    assert list((tmp_path / "cache" / "metalake").iterdir()) == []


def test_what_is_missing_is_said(spark_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match=r"runtime for Spark is not there: .*nothing\.jar\.$"):
        dispatch_jar(spark_jars, spark_jars / "nothing.jar")
    with pytest.raises(Failure, match=r"is not the folder of Spark's jars\.$"):
        dispatch_jar(tmp_path, spark_jars / "runtime.jar")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(Failure, match=r"^Spark needs Java 17 or newer, and JAVA_HOME, .*/nowhere, has none: "):
        dispatch_jar(spark_jars, spark_jars / "runtime.jar")
    monkeypatch.setenv("XDG_CACHE_HOME", str(spark_jars / "runtime.jar"))
    with pytest.raises(Failure, match=r"cannot be kept in .*: Not a directory\.$"):
        dispatch_jar(spark_jars, spark_jars / "runtime.jar")
