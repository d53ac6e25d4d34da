"""A real Spark beside the tests, in a process of its own: SQL in, rows as plain JSON values out."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.confined import confined
from tests.hms import NEW, OLD, HiveMetastore
from tests.jars import JarsMissing, jars, needs_jars
from tests.packages import installed
from tests.parts import needs

Rows = list[dict[str, Any]]
LOOPBACK = "127.0.0.1"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
    "spark.sql.shuffle.partitions": "1",
}
ICEBERG = "org.apache.iceberg.spark"
SPARK_35 = {
    "pyspark==3.5.8": "54cca0767b21b40e3953ad1d30f8601c53abf9cbda763653289cdcfcac52313c",
    "py4j==0.10.9.7": "85defdfd2b2376eb3abf5ca6474b51ab7e0de341c75a02f46dc9b5976f5a5c1b",
}


class SparkError(Exception):
    """Spark refused a statement; `condition` is the name of its error class, or empty."""

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(message)
        self.condition = condition


class Spark:
    """A running Spark session; see `sql`. It can change nothing but `folder` and the warehouses it was given."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self.log, self.folder = process, log, log.parent
        self.version: str = self._answer(timeout=90)["version"]

    def sql(self, *statements: str, settings: dict[str, str] | None = None, timeout: float = 90) -> list[Rows]:
        """Run the statements in a fresh session of their own; returns the rows of each, as dicts by column.

        `settings` add to that session, an Iceberg catalog, say: see `iceberg_catalog`. Raises SparkError.
        """
        rows: list[Rows] = self._ask({"settings": settings or {}, "statements": statements}, timeout)
        return rows

    def call(self, what: str, *arguments: Any, timeout: float = 90) -> Any:
        """What the program behind it answers to a call of its own."""
        return self._ask({"call": what, "arguments": arguments}, timeout)

    def parsed(self, identifiers: Sequence[str]) -> list[list[str]]:
        """The parts of each, as Spark's own parser reads a multipart identifier."""
        parts: list[list[str]] = self.call("identifiers", identifiers)
        return parts

    def _ask(self, asked: dict[str, Any], timeout: float) -> Any:
        assert self.process.stdin is not None
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        answer = self._answer(timeout)
        if "message" in answer:
            raise SparkError(answer["error"], answer["message"])
        return answer["rows"]

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            what = "ended" if ready else f"did not answer within {timeout:.0f} s"
            raise AssertionError(f"Spark {what}:\n{processes.tail(self.log)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def iceberg_catalog(name: str, **properties: str) -> dict[str, str]:
    """Settings of an Iceberg catalog: type="hive" or "rest" with uri=..., or type="hadoop" with warehouse=..."""
    catalog = f"spark.sql.catalog.{name}"
    return {catalog: f"{ICEBERG}.SparkCatalog"} | {f"{catalog}.{key}": value for key, value in properties.items()}


@contextmanager
def running_spark(
    hms: HiveMetastore | None = None,
    *,
    iceberg: str = "",
    more_jars: Sequence[Path] = (),
    warehouses: Sequence[Path] = (),
    packages: Path | None = None,
    extensions: Sequence[str] = (),
) -> Iterator[Spark]:
    """Start Spark in some 5 s, its `spark_catalog` on the given metastore; with Iceberg's runtime where named.

    `iceberg` is a table of jars.toml; `packages` is a folder with another PySpark than that of the tests; `extensions`
    are classes that extend Spark's SQL before Iceberg's does.
    Raises AssertionError with its log when it does not start, JarsMissing when Iceberg's jar cannot be had.
    """
    folder = Path(tempfile.mkdtemp(prefix="metalake-spark-"))
    settings = SETTINGS | {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri()}
    if hms is not None:
        settings |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": hms.uri,
            "spark.sql.warehouse.dir": hms.warehouse.as_uri(),
        }
    if iceberg:
        settings["spark.jars"] = ",".join(map(str, [*jars(iceberg), *more_jars]))
        of_iceberg = f"{ICEBERG}.extensions.IcebergSparkSessionExtensions"
        settings["spark.sql.extensions"] = ",".join([*extensions, of_iceberg])
    program = Path(__file__).with_name("spark_program.py")
    with spark_process(program, json.dumps(settings), folder, warehouses, packages) as session:
        yield session


def foreign_python(folder: Path) -> Path:
    """A folder for the PATH whose `python3` lacks what jobs import: their workers need the Python of their driver."""
    (programs := folder / "programs").mkdir(exist_ok=True)
    (python := programs / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return programs


@contextmanager
def spark_process(
    program: Path,
    argument: str,
    folder: Path,
    warehouses: Sequence[Path] = (),
    packages: Path | None = None,
    **environment: str,
) -> Iterator[Spark]:
    """Start a program that answers as tests/spark_program.py does; `folder` goes when it ends."""
    log = folder / "spark.log"
    own = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_LOCAL_DIRS": str(folder)}
    found = [str(each) for each in (packages, Path(__file__).parent.parent) if each is not None]
    own["PYTHONPATH"] = os.pathsep.join(found)
    own["PATH"] = f"{foreign_python(folder)}:{os.environ['PATH']}"
    own["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={folder}"
    try:
        with log.open("w") as errors:
            process = subprocess.Popen(
                # It writes beside the server of a test into the same folders, so it is of the same user.
                confined([folder, *warehouses], sys.executable, str(program), argument, as_user=False),
                cwd=folder,
                env=os.environ | own | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        try:
            yield Spark(process, log)
        finally:
            processes.kill(process)
            process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- Fixtures


@pytest.fixture(scope="session")
def iceberg_spark(hms: HiveMetastore, metastores: Path) -> Iterator[Spark]:
    """Spark on `hms` with Iceberg's runtime and the drivers of databases, which may also write into the warehouse of
    `old_hms`: keep to databases of your own.

    Name the catalogs by sql(..., settings=iceberg_catalog(...)).
    """
    needs_spark()
    needs_jars("iceberg-spark")
    needs_jars("jdbc-drivers")
    warehouses = [metastores / f"hms-{version}" / "warehouse" for version in (NEW, OLD)]
    drivers = jars("jdbc-drivers")
    with running_spark(hms, iceberg="iceberg-spark", more_jars=drivers, warehouses=warehouses) as session:
        yield session


def needs_spark() -> None:
    """Skip the running test, saying what to install, where a part of it is missing."""
    needs("spark")
    needs("confinement")


@pytest.fixture(scope="module")
def spark_35(hms: HiveMetastore) -> Iterator[Spark]:
    """Spark 3.5 on `hms` with Iceberg's runtime; it stands in an environment of its own."""
    needs_spark()
    needs_jars("iceberg-spark-3.5")
    try:
        packages = installed("spark-3.5.8", SPARK_35)
    except JarsMissing as missing:
        pytest.skip(f"needs Spark 3.5: {missing}")
    with running_spark(hms, iceberg="iceberg-spark-3.5", warehouses=[hms.warehouse], packages=packages) as session:
        yield session
