"""What a job asks of the server, in the slowest loads of others: p99 of load table beside jobs of this server's and of
another's, so that Spark takes as much of the machine in both.

    python -m benchmarks.beside_jobs [rounds]

A round is an access review of 2,000 tables and a check of 200 views, one after the other, each as a process of its own
with `local[1]`; meanwhile wrk loads a table by eight connections in turns of a second.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import claim, finish, median
from benchmarks.wrk import Turn, ask, require_wrk
from metalake_client.rest import Client
from tests.jars import jars
from tests.names import own_name
from tests.servers import ADMIN_PASSWORD, MetalakeServer, running_metalake

ROUNDS, CLIENTS, GOAL = 3, 8, 1.1
SCHEMAS, TABLES, VIEWS = 20, 100, 200
JOBS = (("access_review", "--sample=1000"), ("view_check",))


def main(arguments: list[str]) -> None:
    require_wrk()
    rounds = int(arguments[0]) if arguments else ROUNDS
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {name: stack.enter_context(running_metalake(folder / name)) for name in ("here", "elsewhere")}
        jobs = {name: fill(server) for name, server in servers.items()}
        load = load_of(servers["here"], jobs["here"])
        turns: dict[str, list[Turn]] = {name: [] for name in servers}
        order, chance = [*servers], random.Random(0)
        for _ in range(rounds):
            chance.shuffle(order)
            for name in order:
                for job in JOBS:
                    turns[name] += beside(jobs[name], job, load)
    for name, each in turns.items():
        middle = median([turn.p50 for turn in each])
        print(f"  jobs {name}: {len(each)} turns, p50 {middle:.2f} ms, p99 {p99(each):.2f} ms")
    claim("p99 of loads beside this server's jobs : another's", p99(turns["here"]) / p99(turns["elsewhere"]), GOAL)
    finish()


def p99(turns: list[Turn]) -> float:
    return median([turn.p99 for turn in turns])


def fill(server: MetalakeServer) -> dict[str, str]:
    """A metalake with tables and views; the environment of its jobs."""
    admin, metalake = Client(server.url, user="admin", password=ADMIN_PASSWORD), own_name("m")
    admin.call("POST", "metalakes", body={"name": metalake})
    below = ("metalakes", metalake)
    system = admin.call("POST", *below, "system")["system"]
    lake = {"name": "lake", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    admin.call("POST", *below, "catalogs", body=lake)
    schemas = (*below, "catalogs", "lake", "schemas")
    columns = [{"name": "id", "type": "long"}]
    for schema in range(SCHEMAS):
        admin.call("POST", *schemas, body={"name": f"s{schema}"})
        for table in range(TABLES):
            admin.call("POST", *schemas, f"s{schema}", "tables", body={"name": f"t{table}", "columns": columns})
    for view in range(VIEWS):
        query = {"type": "sql", "dialect": "spark", "sql": f"SELECT id FROM t{view % TABLES}", "defaultSchema": "s0"}
        body = {"name": f"v{view}", "columns": columns, "representations": [query]}
        admin.call("POST", *schemas, "s0", "views", body=body)
    tokens = [
        admin.call("POST", "tokens", body={"name": own_name("t"), "user": user})["token"]["secret"]
        for user in ("admin", system["principal"])
    ]
    own = {"METALAKE_URL": server.url, "METALAKE_METALAKE": metalake}
    return own | {"METALAKE_TOKEN": tokens[0], "METALAKE_SYSTEM_TOKEN": tokens[1]}


def load_of(server: MetalakeServer, job: dict[str, str]) -> tuple[str, str]:
    """The address of a table, and who asks for it."""
    path = f"/iceberg/{job['METALAKE_METALAKE']}/v1/lake/namespaces/s0/tables/t0"
    return server.url + path, f"Bearer {job['METALAKE_TOKEN']}"


def beside(environment: dict[str, str], job: tuple[str, ...], load: tuple[str, str]) -> list[Turn]:
    """The turns of wrk while a job runs; its first is left out, in which the job only starts."""
    name, *arguments = job
    own = {"METALAKE_SPARK_JARS": ",".join(map(str, jars("iceberg-spark"))), "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", f"pipelines.{name}", *arguments],
            env={**os.environ, **environment, **own, "PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"},
            stdout=log,
            stderr=log,
        )
        turns = []
        while process.poll() is None:
            turns.append(ask(*load, CLIENTS, 1))
        log.seek(0)
        assert process.returncode == 0, log.read()[-2000:].decode(errors="replace")
    return turns[1:]


if __name__ == "__main__":
    main(sys.argv[1:])
