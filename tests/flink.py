"""A real Flink beside the tests: jars of its Python package, and a gateway for SQL from Maven Central.

1.20.1 with its Hive catalog is 231 MB once, 2.1.1 with Iceberg's catalog 400 MB.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests import processes
from tests.confined import confined
from tests.hms import HiveMetastore
from tests.jars import JarsMissing, cache, jars, only_one, pyspark_jars
from tests.packages import pip
from tests.parts import needs
from tests.ports import free_port
from tests.waiting import eventually

PACKAGE = "apache-flink-libraries"
OF_HADOOP = ("hadoop-client-*.jar", "jcl-over-slf4j-*.jar")  # which PySpark carries
GATEWAY = "org.apache.flink.table.gateway.SqlGateway"
OPENED = ("util", "lang", "net", "nio", "time", "util.concurrent")
JAVA = [
    *("java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"),
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED),
]
CONFIG = """execution: {{target: local, attached: true}}
rest: {{port: 0, address: 127.0.0.1, bind-address: 127.0.0.1}}
sql-gateway.endpoint.rest: {{address: 127.0.0.1, port: {port}}}
"""
HIVE_SITE = "<configuration><property><name>hive.metastore.uris</name><value>{uri}</value></property></configuration>"


@dataclass(frozen=True)
class Version:
    """`jars` is a table of jars.toml, `taken` are patterns of the jars that are used of Flink's package."""

    number: str
    sha256: str
    jars: str
    taken: tuple[str, ...]


WITH_HIVE = Version(
    "1.20.1", "be28293619b1d7b04c970b947133ae8d0ca86681f23694be063b3659ea69bb79", "flink-hive", ("lib/*.jar",)
)
WITH_ICEBERG = Version(
    "2.1.1",
    "0a8e42be82a4c601d9eccbb8b10d6253fefbb07fb22cd89af36f00512c685b01",
    "flink-iceberg",
    ("lib/*.jar", "opt/flink-python*.jar"),
)


class FlinkError(Exception):
    """Flink refused a statement."""


class Flink:
    """A running Flink with one session; see `sql`."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self._session = ""

    def is_ready(self) -> bool:
        return processes.answers(f"{self.url}/v1/info")

    def sql(self, statement: str, timeout: float = 120) -> list[list[Any]]:
        """Its rows; one that yields none answers [["OK"]]. Raises FlinkError."""
        if not self._session:
            batch = {"properties": {"execution.runtime-mode": "batch", "table.dml-sync": "true"}}
            self._session = (
                f"/v3/sessions/{_json(requests.post(f'{self.url}/v3/sessions', json=batch))['sessionHandle']}"
            )
        asked = requests.post(f"{self.url}{self._session}/statements", json={"statement": statement}, timeout=60)
        operation = f"{self._session}/operations/{_json(asked)['operationHandle']}"
        answer: dict[str, Any] = {}
        rows: list[list[Any]] = []
        place: str | None = f"{operation}/result/0?rowFormat=JSON"

        def is_answered() -> bool:
            answer.update(_json(requests.get(f"{self.url}{place}", timeout=60)))
            return bool(answer["resultType"] != "NOT_READY")

        while place:
            assert eventually(is_answered, timeout), f"Flink did not answer within {timeout:.0f} s: {statement}"
            rows += [row["fields"] for row in answer["results"]["data"]]
            place = answer.pop("nextResultUri", None)
        return rows

    def attach_hive(self, name: str, hms: HiveMetastore) -> None:
        """A catalog on a metastore."""
        (settings := self.folder / name).mkdir()
        (settings / "hive-site.xml").write_text(HIVE_SITE.format(uri=hms.uri))
        self.sql(f"CREATE CATALOG {name} WITH ('type' = 'hive', 'hive-conf-dir' = '{settings}')")


def _json(answered: requests.Response) -> dict[str, Any]:
    """Raises FlinkError with the innermost cause."""
    answer: dict[str, Any] = answered.json()
    if "errors" in answer:
        causes = answer["errors"][-1].split("Caused by: ")
        raise FlinkError(causes[-1].partition("\n\tat ")[0])
    return answer


def unpacked(version: Version) -> Path:
    """The folder of Flink's own jars in the cache; raises JarsMissing."""
    folder = cache() / f"flink-{version.number}"
    with only_one(folder.with_suffix(".unpacking")):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache()) as place:
                pip("download", {f"{PACKAGE}=={version.number}": version.sha256}, "--dest", place)
                (packed,) = Path(place).glob("apache?flink?libraries-*.tar.gz")  # with - or _, by its age
                with tarfile.open(packed) as archive:
                    archive.extractall(place, filter="data")
                (taken := Path(place) / "taken").mkdir()
                deps = Path(place) / packed.name.removesuffix(".tar.gz") / "deps"
                for jar in [jar for pattern in version.taken for jar in deps.glob(pattern)]:
                    jar.rename(taken / jar.name)
                taken.rename(folder)
    return folder


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    """Flink 1.20 with Hive's catalog, ready in some 5 s; none is attached."""
    with running_flink(tmp_path_factory.mktemp("flink"), WITH_HIVE, more=of_hadoop()) as started:
        yield started


def of_hadoop() -> list[Path]:
    """What Hive's catalog needs beside Flink; the test skips without Spark, which carries it."""
    needs("spark")
    return [jar for pattern in OF_HADOOP for jar in pyspark_jars().glob(pattern)]


@contextmanager
def running_flink(
    folder: Path,
    version: Version,
    *,
    more: Sequence[Path] = (),
    places: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Flink]:
    """Flink in a process group of its own, with `more` jars; it can change its folder and the places alone.

    The test skips where it cannot be had.
    """
    for part in ("java", "confinement"):
        needs(part)
    try:
        own = [*jars(version.jars), *unpacked(version).glob("*.jar")]
    except JarsMissing as missing:
        pytest.skip(f"needs Flink: {missing}")
    port = free_port()
    (folder / "config.yaml").write_text(CONFIG.format(port=port))
    started = Flink(f"http://127.0.0.1:{port}", folder)
    classpath = ":".join(map(str, [*own, *more]))
    command = [*JAVA, f"-Djava.io.tmpdir={folder}", "-cp", classpath, GATEWAY]
    process = processes.start(
        "Flink",
        confined([folder, *places], *command, as_user=False),
        folder / "flink.log",
        started.is_ready,
        120,
        cwd=folder,
        env=os.environ | {"FLINK_CONF_DIR": str(folder)} | dict(environment or {}),
    )
    try:
        yield started
    finally:
        processes.kill(process)
