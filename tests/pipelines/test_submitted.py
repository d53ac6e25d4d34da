"""The access review by spark-submit, as a process of its own: to its end, and killed at any moment and begun again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jars import jars, pyspark_jars
from tests.pipelines.conftest import Lab
from tests.pipelines.test_access_review import rights, small_world
from tests.servers import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]
KILLS, SECONDS = 20, 45.0


def submitted(lab: Lab, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    program = pyspark_jars().parent / "bin" / "spark-submit"
    options = ["--master", "local[1]", "--driver-memory", "512m", "--jars", ",".join(map(str, jars("iceberg-spark")))]
    command = [str(program), *options, str(REPOSITORY / "pipelines" / "access_review.py"), *arguments]
    own = {"PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as output:
        environment = os.environ | own | lab.environment
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)


def test_it_runs_to_its_end(lab: Lab, tmp_path: Path) -> None:
    small_world(lab)
    log = tmp_path / "log"
    run = submitted(lab, log, "--days=0", "--sample=100")
    assert run.wait(300) == 0, log.read_text()[-5000:]
    output = log.read_text()
    assert "no difference" in output and lab.token not in output and lab.system_token not in output
    assert rights(lab, "mia", "select_table") == [("lake.travel", ["lake.travel:nyc.secret"])]


def test_killed_at_random_moments_it_ends_as_if_it_had_run_once(lab: Lab, tmp_path: Path) -> None:
    small_world(lab)
    chance = random.Random(17)
    for _ in range(KILLS):
        run = submitted(lab, tmp_path / "log", "--days=0", "--sample=100")
        try:
            run.wait(chance.uniform(3, SECONDS))
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    log = tmp_path / "last"
    assert submitted(lab, log, "--days=0", "--sample=100").wait(300) == 0, log.read_text()[-5000:]
    assert rights(lab, "mia", "select_table") == [("lake.travel", ["lake.travel:nyc.secret"])]
    assert [lab.refs("access", name) for name in ("rights", "grants", "role_needs", "reviews")] == [{"main"}] * 4
    assert len(lab.rows("select * from system.access.reviews")) == 1
