"""The job builtin-harvest started by spark-submit, as processes that are killed and whose logs are read."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.metastore_stand_in import StandIn, running
from tests.pipelines.conftest import Lab
from tests.pipelines.submitting import WORKER, Submitted
from tests.pipelines.test_harvest import Metastore, counts, register
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]
TABLES, DATABASES = 1_000, 20


@pytest.fixture
def large(lab: Lab) -> Iterator[Metastore]:
    made = StandIn(of_table=0.0005)
    made.fill(DATABASES, TABLES)
    with running(made):
        yield register(lab, made)


def by_hand(metastore: Metastore, folder: Path) -> Submitted:
    """spark-submit of the job, with its event log."""
    (folder / "events").mkdir(exist_ok=True)
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",  # so that a secret would be found
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    return Submitted(
        "pipelines.harvest",
        (f"--catalog={metastore.name}", "--patience=20"),
        metastore.lab.environment,
        folder,
        master="local[*]",
        settings=settings,
    )


def written(folder: Path) -> bytes:
    """All that Spark wrote anywhere."""
    files = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    return b"".join(path.read_bytes() for path in files if path.is_file() and not path.is_symlink())


def test_twenty_thousand_tables_with_changes(large: Metastore, tmp_path: Path) -> None:
    assert by_hand(large, tmp_path).ends(600) == 0, (tmp_path / "log").read_text()[-5000:]
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
    assert by_hand(large, tmp_path).ends(600) == 0
    run = large.runs()[0]
    assert counts(run)[2:4] == (DATABASES * 20, DATABASES * 50)
    assert counts(large.refreshed())[2:4] == (0, 0)


def test_kills_at_random_moments(large: Metastore, tmp_path: Path) -> None:
    chance = random.Random(2)
    for _ in range(20):
        job = by_hand(large, tmp_path)
        time.sleep(chance.uniform(2, 25))
        job.kill()
    assert by_hand(large, tmp_path).ends(600) == 0, (tmp_path / "log").read_text()[-5000:]
    assert counts(large.runs()[0])[::2] == ("done", *counts(large.runs()[0])[2:3], 0, 0)
    assert large.runs()[0]["dropped"] == 0
    refreshed = large.refreshed()
    assert counts(refreshed) == ("done", DATABASES * (TABLES + 1), 0, 0, 0, 0, 0)


def test_an_executor_that_dies(large: Metastore, tmp_path: Path) -> None:
    large.there.of_table = 0.005
    job = by_hand(large, tmp_path)
    assert eventually(lambda: large.there.answers["get_table_objects_by_name"] > 8, 120)
    workers = job.parts(WORKER)  # those that execute tasks have the command line of their daemon, which made them
    next(each for each in workers if each.ppid() in {other.pid for other in workers}).kill()
    assert job.ends(600) == 0, job.output[-5000:]
    assert counts(large.runs()[0]) == ("done", DATABASES * (TABLES + 1), DATABASES * (TABLES + 1), 0, 0, 0, 0)
