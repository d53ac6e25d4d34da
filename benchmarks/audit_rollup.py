"""builtin-audit_rollup over 10,000,000 rows, half of the audit and half of the record of use, of 30 days; then again.

    python -m benchmarks.audit_rollup [--short] [rows]

The server runs on this machine, and Spark has two threads of it, `local[2]`. `--short` takes 200,000 rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.harness import claim, finish, own_store, serve

ROWS, SHORT, DAYS = 10_000_000, 200_000, 30
OBJECTS, AT_ONCE = 1000, 20_000
MINUTES = 15.0
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def main(arguments: list[str]) -> None:
    given = [each for each in arguments if each != "--short"]
    rows = int(given[0]) if given else SHORT if "--short" in arguments else ROWS
    own_store()
    token = fill(rows)
    with ExitStack() as stack:
        environment = of_job(serve(stack).url, token)
        seconds = run(environment, "audit_rollup", "--days=20")
        claim(f"minutes for {rows:,} rows", seconds / 60, MINUTES, unit=" min")
        before = snapshots(environment["METALAKE_URL"], token)
        again = run(environment, "audit_rollup", "--days=20")
        print(f"  the next run took {again:.0f} s")
        claim("tables that the next run wrote to", snapshots(environment["METALAKE_URL"], token) - before, 0)
    finish()


def fill(rows: int) -> str:
    """A metalake with the system catalog and so many rows; the token of its owner."""
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks import population
    from jobs.services import system
    from metalake.kinds import Kind

    owner = population.first_catalog()
    system.create(owner, population.METALAKE)
    account = User.objects.get(username="admin")
    schema = population.schema(owner, "s")
    population.children(schema, [f"t{number}" for number in range(OBJECTS)], Kind.TABLE, account)
    began = time.perf_counter()
    _plant(rows, account.pk)
    print(f"  {rows:,} rows written in {time.perf_counter() - began:.0f} s", flush=True)
    return issue_token(account, "bench")


def _plant(rows: int, user: int) -> None:
    from django.db import connection, transaction

    from authz.models import AuditEntry, UseCaller, UseObject, UseQuestion
    from metalake.kinds import Kind
    from metalake.models import Metalake, Securable

    top = Metalake.objects.get().pk
    AuditEntry.objects.update(at=TODAY - timedelta(days=DAYS))
    ids = list(Securable.objects.filter(kind=Kind.TABLE).values_list("pk", flat=True))
    UseObject.objects.bulk_create(
        [UseObject(id=number, object_id=id, metalake_id=top) for number, id in enumerate(ids, 1)]
    )
    UseCaller.objects.create(id=1, user_id=user, claimed=[], digest="0" * 64)
    UseQuestion.objects.bulk_create(
        [UseQuestion(id=number, operation=f"load_{number}", outcome="allowed", wire="iceberg", engine="spark")
         for number in range(1, 2 + _an_hour(rows // 2) // OBJECTS)]
    )  # fmt: skip
    audit = (
        "INSERT INTO authz_auditentry (at, actor, event, kind, object_id, full_name, metalake_id, details, request_id) "
        "VALUES (%s, 'admin', 'table.altered', 'table', %s, %s, %s, '{\"changed\": [\"comment\"]}', '')"
    )
    use = "INSERT INTO authz_use (hour, about, caller, question, times, first, last) VALUES (%s, %s, 1, %s, 3, 60, 600)"
    with transaction.atomic(), connection.cursor() as cursor:
        for statement, values in ((audit, _changes(rows - rows // 2, ids, top)), (use, _uses(rows // 2))):
            some: list[Any] = []
            for each in values:
                some.append(each)
                if len(some) == AT_ONCE:
                    cursor.executemany(statement, some)
                    some = []
            cursor.executemany(statement, some)


def _changes(count: int, ids: list[int], top: int) -> Iterator[tuple[Any, ...]]:
    began, step = TODAY - timedelta(days=DAYS), timedelta(days=DAYS) / count
    for number in range(count):
        at = (began + number * step).strftime("%Y-%m-%d %H:%M:%S.%f")
        place = number % len(ids)
        yield at, ids[place], f"lake.s.t{place}", top


def _uses(count: int) -> Iterator[tuple[int, int, int]]:
    first = int((TODAY - timedelta(days=DAYS)).timestamp()) // 3600
    for number in range(count):
        hour, rest = divmod(number, _an_hour(count))
        question, about = divmod(rest, OBJECTS)
        yield first + hour, about + 1, question + 1


def _an_hour(count: int) -> int:
    """Rows of use in an hour."""
    return -(-count // (DAYS * 24))


# Jobs, for other programs, too


def of_job(url: str, token: str) -> dict[str, str]:
    """The environment of a job that is started by hand, on two threads of this machine."""
    from benchmarks.population import METALAKE
    from tests.jars import jars

    folder = Path(os.environ["METALAKE_HOME"]) / "spark"
    folder.mkdir(exist_ok=True)
    return os.environ | {
        "METALAKE_URL": url,
        "METALAKE_METALAKE": METALAKE,
        "METALAKE_TOKEN": token,
        "METALAKE_SPARK_JARS": ",".join(map(str, jars("iceberg-spark"))),
        "METALAKE_SPOOL": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 2g --conf spark.ui.enabled=false "
        "--conf spark.sql.shuffle.partitions=4 pyspark-shell",
    }


def run(environment: dict[str, str], job: str, *arguments: str) -> float:
    """Run a built-in job to its end; how many seconds it took."""
    began = time.perf_counter()
    command = [sys.executable, "-m", f"pipelines.{job}", *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    seconds = time.perf_counter() - began
    print(f"  {seconds:.0f} s: {ended.stdout.strip()}", flush=True)
    return seconds


def snapshots(url: str, token: str, schema: str = "audit") -> int:
    """How many snapshots the result tables of a schema have."""
    from benchmarks.population import METALAKE
    from metalake_client.rest import Client

    client = Client(url, token=token)
    path = ("system", "namespaces", schema, "tables")
    names = [each["name"] for each in client.call_iceberg("GET", METALAKE, *path)["identifiers"]]
    loaded = (client.call_iceberg("GET", METALAKE, *path, name)["metadata"] for name in names)
    return sum(len(metadata.get("snapshots") or ()) for metadata in loaded)


if __name__ == "__main__":
    main(sys.argv[1:])
