"""A real Flink beside the tests: jars of its Python package, 231 MB once, and a gateway for SQL from Maven Central."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
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

VERSION = "1.20.1"
PACKAGE = "apache-flink-libraries"
SHA256 = "be28293619b1d7b04c970b947133ae8d0ca86681f23694be063b3659ea69bb79"
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
            batch = {"properties": {"execution.runtime-mode": "batch"}}
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


def unpacked() -> Path:
    """The folder of Flink's own jars in the cache; raises JarsMissing."""
    folder = cache() / f"flink-{VERSION}"
    with only_one(folder.with_suffix(".unpacking")):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache()) as place:
                pip("download", {f"{PACKAGE}=={VERSION}": SHA256}, "--dest", place)
                with tarfile.open(Path(place) / f"{PACKAGE}-{VERSION}.tar.gz") as archive:
                    archive.extractall(place, filter="data")
                shutil.move(Path(place) / f"{PACKAGE}-{VERSION}" / "deps" / "lib", folder)
    return folder


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    """Flink in a process group of its own, ready in some 5 s, with no catalog; it can change its own folder alone."""
    for part in ("java", "spark", "confinement"):
        needs(part)
    try:
        own = [*jars("flink-hive"), *unpacked().glob("*.jar")]
    except JarsMissing as missing:
        pytest.skip(f"needs Flink: {missing}")
    of_hadoop = [jar for pattern in OF_HADOOP for jar in pyspark_jars().glob(pattern)]
    folder, port = tmp_path_factory.mktemp("flink"), free_port()
    (folder / "config.yaml").write_text(CONFIG.format(port=port))
    started = Flink(f"http://127.0.0.1:{port}", folder)
    classpath = ":".join(map(str, [*own, *of_hadoop]))
    command = [*JAVA, f"-Djava.io.tmpdir={folder}", "-cp", classpath, GATEWAY]
    process = processes.start(
        "Flink",
        confined([folder], *command, as_user=False),
        folder / "flink.log",
        started.is_ready,
        120,
        cwd=folder,
        env=os.environ | {"FLINK_CONF_DIR": str(folder)},
    )
    yield started
    processes.kill(process)
