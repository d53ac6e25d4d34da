"""metalake_session with 50 catalogs beside a plain Spark session, and a table read through it beside Iceberg's REST.

Each session is a Python of its own, in turn with one of the other kind. `python -m benchmarks.spark_session [rounds]`
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.harness import claim, finish, own_store, ratio, serve

CATALOGS, ROWS = 50, 1_000
ROUNDS, READS = 5, 30
STARTING, REQUESTS, READING = 1.2, 2, 1.05
TABLE = "wide.flights"
SETTINGS = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "1",
}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--session"]:
        print(json.dumps(session(arguments[1])))
        return
    rounds = int(arguments[0]) if arguments else ROUNDS
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="metalake-spark-"))
        own_store(METALAKE_FILE_LOCATIONS=folder)
        token = fill(Path(folder))
        server = serve(stack, METALAKE_FILE_LOCATIONS=folder, METALAKE_ACCESS_LOG="true", METALAKE_LOG_LEVEL="INFO")
        os.environ |= {"BENCH_URL": server.url, "BENCH_TOKEN": token}

        def requests() -> int:
            lines = server.log.read_text().splitlines()
            return sum("/bench/" in line and "metalake.access" in line for line in lines)

        started: dict[str, list[float]] = {"plain": [], "ours": []}
        for number in range(rounds + 1):  # the first of each warms the machine
            for kind, seconds in started.items():
                before = requests()
                took = in_a_process(kind, folder)["seconds"]
                print(f"  {kind}: {took:.2f} s{'' if number else ', to warm up'}", flush=True)
                if number:
                    seconds.append(took)
            asked = requests() - before  # by "ours", the last
        claim(f"{CATALOGS} catalogs ready, to a plain session", ratio(started["ours"], started["plain"]), STARTING)
        claim("requests until then", asked, REQUESTS)
        reads = in_a_process("reads", folder)
        claim("a table read by name, to Iceberg's REST by hand", ratio(reads["ours"], reads["hand"]), READING)
    finish()


def fill(folder: Path) -> str:
    """A metalake with 50 catalogs; the token of its owner."""
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, first_catalog
    from catalogs.services import catalogs

    owner = first_catalog()
    for number in range(CATALOGS - 1):
        place = {"warehouse": (folder / f"catalog_{number}").as_uri()}
        catalogs.create_catalog(owner, METALAKE, f"{CATALOG}_{number}", "relational", "lakehouse-iceberg", None, place)
    return issue_token(User.objects.get(username="admin"), "bench")


def in_a_process(kind: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.spark_session", "--session", kind]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": folder}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout.splitlines()[-1])


def session(kind: str) -> dict[str, Any]:
    """What a process of its own found; both kinds of session have the same jars and settings."""
    from tests.jars import jars

    runtime = jars("iceberg-spark")
    began = time.perf_counter()
    if kind == "plain":
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.config("spark.jars", ",".join(map(str, runtime)))
        for key, value in SETTINGS.items():
            builder = builder.config(key, value)
        builder.getOrCreate()
        return {"seconds": time.perf_counter() - began}
    from metalake_client.spark import metalake_session

    made = metalake_session(
        os.environ["BENCH_URL"], "bench", os.environ["BENCH_TOKEN"], jars=runtime, settings=SETTINGS
    )
    seconds = time.perf_counter() - began
    return {"seconds": seconds} if kind == "ours" else read(made)


def read(spark: Any) -> dict[str, list[float]]:
    """Milliseconds of reading one table, in turn through a catalog of ours and one that is set by hand."""
    own = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest", ".token": os.environ["BENCH_TOKEN"]}
    own |= {".uri": f"{os.environ['BENCH_URL']}/iceberg/bench", ".warehouse": "lake_0"}
    for key, value in own.items():
        spark.conf.set(f"spark.sql.catalog.hand{key}", value)
    spark.sql(f"create namespace lake_0.{TABLE.partition('.')[0]}")
    spark.sql(f"create table lake_0.{TABLE} using iceberg as select id, id * 2 as twice from range({ROWS})")
    times: dict[str, list[float]] = {"hand": [], "ours": []}
    for number in range(READS + 10):  # the first ten warm Java
        for kind, catalog in (("hand", "hand"), ("ours", "lake_0")):
            began = time.perf_counter()
            assert len(spark.sql(f"select * from {catalog}.{TABLE}").collect()) == ROWS
            if number >= 10:
                times[kind].append((time.perf_counter() - began) * 1000)
    return times


if __name__ == "__main__":
    main(sys.argv[1:])
