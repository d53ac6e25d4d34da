"""With a broker a worker runs the jobs: when it is killed nothing of them is left, and it is said within a minute."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import pytest

from tests import processes
from tests.databases import OwnRedis
from tests.jobs.serving import Serving, StartServing
from tests.servers import MetalakeServer
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(400)]

StartWorker = Callable[[MetalakeServer], "subprocess.Popen[bytes]"]


@pytest.fixture
def serving(start_serving: StartServing, migrated_postgres_url: str, redis: OwnRedis) -> Serving:
    return start_serving(METALAKE_DATABASE_URL=migrated_postgres_url, METALAKE_BROKER_URL=redis.url)


def test_a_worker_runs_jobs(serving: Serving, metalake_worker: StartWorker) -> None:
    job = serving.start("builtin-check_server")
    time.sleep(1)
    assert serving.job(job)["status"] == "queued", "the server ran it although it has a broker"
    metalake_worker(serving.server)
    assert serving.ends(job)["status"] == "succeeded", serving.admin.get(*serving.runs, job, "logs")
    job, _ = serving.start_waiting()
    serving.admin.call("POST", *serving.runs, job)
    assert serving.ends(job)["status"] == "cancelled" and serving.is_gone(job)


def test_a_worker_is_killed(serving: Serving, metalake_worker: StartWorker) -> None:
    worker = metalake_worker(serving.server)
    job, _ = serving.start_waiting()
    processes.kill(worker)
    assert eventually(lambda: serving.is_gone(job))
    metalake_worker(serving.server)
    lost = serving.ends(job, 120)
    assert lost["status"] == "failed" and "gone" in lost["error"]


def test_a_schedule_of_beat(serving: Serving, metalake_worker: StartWorker) -> None:
    metalake_worker(serving.server)
    schedules = ("metalakes", serving.metalake, "jobs", "schedules")
    body = {"name": "often", "jobTemplateName": "builtin-check_server", "every": 60}
    serving.admin.call("POST", *schedules, body=body)
    assert eventually(lambda: bool(serving.admin.get(*serving.runs)["jobs"]), 180)
    (job, *_) = serving.admin.get(*serving.runs)["jobs"]
    assert job["schedule"] == "often" and serving.ends(job["jobId"])["status"] == "succeeded"
