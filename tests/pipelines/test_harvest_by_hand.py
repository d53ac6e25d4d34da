"""The job builtin-harvest started by spark-submit, as processes that are killed and whose logs are read."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark
import pytest

from tests.metastore_stand_in import StandIn, running
from tests.pipelines.conftest import Lab
from tests.pipelines.test_harvest import Metastore, counts, register
from tests.servers import REPOSITORY
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]
TABLES, DATABASES = 1_000, 20
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


@pytest.fixture
def large(lab: Lab) -> Iterator[Metastore]:
    made = StandIn(of_table=0.0005)
    made.fill(DATABASES, TABLES)
    with running(made):
        yield register(lab, made)


class ByHand:
    """spark-submit of the job, with its event log and all that it prints."""

    def __init__(self, metastore: Metastore, folder: Path) -> None:
        self.folder = folder
        (folder / "events").mkdir(exist_ok=True)
        settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (folder / "events").as_uri()}
        options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        program = REPOSITORY / "pipelines" / "harvest.py"
        command = [SUBMIT, "--master", "local[*]", *options, program, f"--catalog={metastore.name}", "--patience=20"]
        own = {"PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(folder)}
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                env=os.environ | metastore.lab.environment | own,
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ends(self, seconds: float = 600) -> int:
        return self.process.wait(seconds)

    def kill(self) -> None:
        """All of it at once, as the end of its machine."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def worker(self) -> psutil.Process:
        """A process that executes tasks; their daemon has the same command line."""
        below = [each for each in psutil.Process(self.process.pid).children(recursive=True) if _is_of_spark(each)]
        return next(each for each in below if each.ppid() in {other.pid for other in below})


def _is_of_spark(process: psutil.Process) -> bool:
    try:
        return "pyspark.worker" in process.cmdline()
    except psutil.Error:
        return False


def written(folder: Path) -> bytes:
    """All that Spark wrote anywhere."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_twenty_thousand_tables_with_changes(large: Metastore, tmp_path: Path) -> None:
    assert ByHand(large, tmp_path).ends() == 0, (tmp_path / "log").read_text()
    assert counts(large.runs()[0]) == ("done", DATABASES * (TABLES + 1), DATABASES * (TABLES + 1), 0, 0, 0, 0)
    everything = written(tmp_path)
    assert b"harvesting: " in everything and b"SparkListenerTaskEnd" in everything
    for secret in (large.lab.token, large.lab.system_token):
        assert secret.encode() not in everything
    assert counts(large.refreshed())[2:] == (0, 0, 0, 0, 0)
    chance = random.Random(1)
    for database, tables in large.there.databases.items():
        for name in chance.sample(sorted(tables), 30):
            del tables[name]
        for name in chance.sample(sorted(tables), 50):
            large.there.put(database, name, f"changed {name[6:12]}")
        for number in range(20):
            large.there.put(database, f"new_{number}")
    assert ByHand(large, tmp_path).ends() == 0
    run = large.runs()[0]
    assert counts(run)[2:4] == (DATABASES * 20, DATABASES * 50)
    assert counts(large.refreshed())[2:4] == (0, 0)


def test_kills_at_random_moments(large: Metastore, tmp_path: Path) -> None:
    chance = random.Random(2)
    for _ in range(20):
        job = ByHand(large, tmp_path)
        time.sleep(chance.uniform(2, 25))
        job.kill()
    assert ByHand(large, tmp_path).ends() == 0, (tmp_path / "log").read_text()
    assert counts(large.runs()[0])[::2] == ("done", *counts(large.runs()[0])[2:3], 0, 0)
    assert large.runs()[0]["dropped"] == 0
    refreshed = large.refreshed()
    assert counts(refreshed) == ("done", DATABASES * (TABLES + 1), 0, 0, 0, 0, 0)


def test_an_executor_that_dies(large: Metastore, tmp_path: Path) -> None:
    large.there.of_table = 0.005
    job = ByHand(large, tmp_path)
    assert eventually(lambda: large.there.answers["get_table_objects_by_name"] > 8, 120)
    job.worker().kill()
    assert job.ends() == 0, job.log.read_text()
    assert counts(large.runs()[0]) == ("done", DATABASES * (TABLES + 1), DATABASES * (TABLES + 1), 0, 0, 0, 0)
