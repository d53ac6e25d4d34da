"""Spark's own spark-submit with a template: it runs to its end, and is cancelled with its Java and its Python."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from jobs.models import JobRun
from jobs.running import runner
from jobs.running.processes import marked
from tests.catalogs.callers import Caller
from tests.jobs.bodies import RUNS, TEMPLATES, spark
from tests.jobs.conftest import Write
from tests.jobs.services.test_runs import log_of, ran, started
from tests.parts import needs
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(400)]

COUNTS = """
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("counted", spark.range(int(sys.argv[1])).count(), spark.conf.get("spark.sql.shuffle.partitions"), flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def counts(admin: Caller, program: Write, settings: Any) -> None:
    needs("java")
    settings.METALAKE_SPARK_MASTER = "local[1]"
    configs = {"spark.sql.shuffle.partitions": "{{parts}}", "spark.ui.enabled": "false"}
    body = spark(program(COUNTS, "counts.py"), name="counts", arguments=["{{n}}", "{{rest}}"], configs=configs)
    assert admin.post(TEMPLATES, body).status == 200


def test_it_runs(admin: Caller, counts: None) -> None:
    job = ran(admin, "counts", n="1000", rest="0", parts="3")
    text = log_of(admin, job["jobId"])["text"]
    assert job["status"] == "succeeded", text
    assert "counted 1000 3" in text and "mlk_" not in text


@pytest.mark.django_db(transaction=True)
def test_it_is_cancelled(admin: Caller, counts: None) -> None:
    job = started(admin, "counts", n="10", rest="600", parts="1")

    def work() -> None:
        try:
            runner.work()
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    assert eventually(lambda: "counted 10" in log_of(admin, job)["text"], 240)
    assert len([pid for pid, of in marked(runner.MARK) if of == int(job)]) >= 2
    admin.post(f"{RUNS}/{job}")
    worker.join(120)
    assert JobRun.objects.get(pk=job).status == JobRun.Status.CANCELLED
    assert not [pid for pid, of in marked(runner.MARK) if of == int(job)]
