"""metalake_session where it cannot start: one clear sentence, before anything of Spark is started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from metalake_client.engines.spark_pairs import pair_for, require_runtime
from metalake_client.failures import Exit, Failure
from metalake_client.spark import metalake_session
from metalake_client.spark.java import require_java
from metalake_client.spark.views import Views
from tests.servers import MetalakeServer
from tests.spark import Spark

NOBODY = "http://127.0.0.1:9"
RUNTIME = "iceberg-spark-runtime-4.1_2.13-1.11.0.jar"


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", started)


def refused(*arguments: str, **options: Any) -> Failure:
    with pytest.raises(Failure) as raised:
        metalake_session(*arguments, **options)
    assert "\n" not in str(raised.value)
    return raised.value


def a_java(folder: Path, version: str) -> Path:
    """A program in the place of Java, of which this machine may have but one; it only says its version."""
    (java := folder / "bin" / "java").parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_who_asks_and_for_what(metalake_server: MetalakeServer) -> None:
    wrong = refused(metalake_server.url, "demo", "mlk_wrong")
    assert wrong.exit_code is Exit.REFUSED and "mlk_wrong" not in str(wrong)
    login = {"user": "admin", "password": metalake_server.admin_password}
    nowhere = refused(metalake_server.url, "nowhere", **login)
    assert nowhere.exit_code is Exit.MISSING and "nowhere" in str(nowhere)
    assert refused(metalake_server.url, "demo").exit_code is Exit.REFUSED
    assert refused(NOBODY, "demo", "t").exit_code is Exit.UNREACHABLE


def test_a_spark_that_cannot_work_is_refused_before_anybody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.0.1")
    assert "pyspark 4.1 with org.apache.iceberg" in str(refused(NOBODY, "demo", "t"))
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert "pip install 'pyspark==4.1.*' or 'pyspark==3.5.*'" in str(refused(NOBODY, "demo", "t"))


def test_jars_that_are_missing_or_of_another_spark(metalake_server: MetalakeServer, tmp_path: Path) -> None:
    def jars(*names: str) -> str:
        files = [tmp_path / name for name in names]
        login = {"user": "admin", "password": metalake_server.admin_password}
        return str(refused(metalake_server.url, "demo", jars=files, **login))

    assert jars(RUNTIME) == f"There is no jar {tmp_path / RUNTIME}."
    require_runtime(pair_for("4.1.4"), [f"org.apache.iceberg_{RUNTIME}"])  # as Spark names what it fetched
    for name in ("other.jar", "org.apache.iceberg_iceberg-spark-runtime-3.5_2.12-1.11.0.jar"):
        (tmp_path / name).touch()
        assert "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0" in jars(name)


def test_a_java_that_is_too_old_or_absent(
    metalake_server: MetalakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = {"user": "admin", "password": metalake_server.admin_password}
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "11", "11.0.2")))
    old = str(refused(metalake_server.url, "demo", **login))
    assert old.startswith("Spark 4.1 needs Java 17 or newer, and ") and "is Java 11;" in old
    require_java(8, "3.5")
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "8", "1.8.0_452")))
    require_java(8, "3.5")
    with pytest.raises(Failure, match="is Java 8;"):
        require_java(17, "4.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert "/nowhere, has none: put one" in str(refused(metalake_server.url, "demo", **login))
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "and there is none" in str(refused(metalake_server.url, "demo", **login))


JOIN = """
from unittest.mock import patch
from metalake_client.failures import Failure
from metalake_client.spark import metalake_session
try:
    with patch("pyspark.sql.conf.RuntimeConfig.get", lambda conf, key, default: default):  # as one without Iceberg
        metalake_session({url!r}, "demo", user="admin", password={password!r})
except Failure as refused:
    print(refused)
"""


@pytest.mark.timeout(300)
def test_a_spark_that_runs_without_iceberg(metalake_server: MetalakeServer, iceberg_spark: Spark) -> None:
    code = JOIN.format(url=metalake_server.url, password=metalake_server.admin_password)
    (said,) = iceberg_spark.call("python", code, {}).splitlines()
    assert said.startswith("The Spark that runs in this process has no Iceberg. Stop it, or start it with ")
    assert "iceberg-spark-runtime-4.1_2.13:1.11.0" in said


@pytest.mark.parametrize(
    ("format", "advice"),
    [("hive", "in the form of trino, which holds one query"), ("iceberg", "gcli view add-")],
)
def test_what_to_do_about_a_view_without_a_query_for_spark_can_be_done(format: str, advice: str) -> None:
    query = {"type": "sql", "dialect": "trino", "sql": "SELECT 1"}
    view = {"name": "v", "engine": "trino", "format": format, "representations": [query]}
    with pytest.raises(Failure, match=advice):
        Views(client=Any, metalake="demo", session=None, catalogs=())._query("legacy", "sales", view)  # type: ignore[arg-type]
