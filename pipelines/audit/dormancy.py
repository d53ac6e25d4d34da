"""Finds dormant objects and members from daily usage, the state of the metalake, and creation times."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from metalake_client.engines.quoting import spark_text
from pipelines import ndjson_streams
from pipelines.audit import tables
from pipelines.audit.reading import Rolled
from pipelines.audit.tables import CHANGES, DAILY_USE, DORMANT_OBJECTS, DORMANT_PEOPLE
from pipelines.job import Job, Progress, written
from pipelines.results import Results, ResultTable, Unit
from pipelines.spool import Spool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 10_000  # of each kind, sent to the server


class Since(NamedTuple):
    """The dormancy cutoff: unused since `day`, which is `days` before `until`, where the usage records end."""

    day: date
    days: int
    until: date


def since_of(rolled: Rolled, days: int) -> Since | None:
    """The dormancy cutoff; None if the usage records do not go back far enough."""
    used = [day for day, row in rolled.days.items() if row.use_digest]
    day = rolled.whole_before - timedelta(days=days) if used else date.max
    return Since(day, days, rolled.whole_before) if used and min(used) <= day else None


def write(results: Results, rolled: Rolled, since: Since, spool: Spool, progress: Progress) -> None:
    """Write dormant objects and members, and send the longest unused to the server. Raises Failure."""
    job = results.job
    progress.stage("reading the objects and members")
    place = _read_state(job, spool, progress)
    days = sorted((day.isoformat(), row.use_digest) for day, row in rolled.days.items())
    key = hashlib.sha256(repr([since, place, days]).encode()).hexdigest()
    given = results.session, job, spool, since
    progress.stage("comparing them with the use")
    pending = results.write(
        Unit("dormant", key, f"metalake = {spark_text(job.metalake)}"),
        {DORMANT_OBJECTS: lambda: _objects(*given), DORMANT_PEOPLE: lambda: _people(*given)},
    )
    objects, people = pending.reader(DORMANT_OBJECTS), pending.reader(DORMANT_PEOPLE)
    report = {
        "completeUntil": written(datetime(since.until.year, since.until.month, since.until.day, tzinfo=UTC)),
        "days": since.days,
        "objectCount": objects.count(),
        "peopleCount": people.count(),
        "objects": [_unused(row, "on", "object_id") for row in _first(objects, "object_id")],
        "people": [_unused(row, "user", "member") for row in _first(people, "member")],
    }
    pending.publish()
    job.client.call("PUT", "bulk", "metalakes", job.metalake, "access", "dormant", body=report)


def _read_state(job: Job, spool: Spool, progress: Progress) -> int:
    """Spool the current objects and members; returns their position in the history."""
    lines = ndjson_streams.state_of(job.client, job.metalake)
    place: int = next(lines)["place"]
    for done, line in enumerate(lines, 1):
        if line["topic"] == "object":
            spool.add("objects", {name: line[name] for name in ("id", "kind", "name", "lineage")})
        elif line["topic"] == "members":
            spool.add("members", {"id": line["id"], "name": line["name"]})
        if done % 5000 == 0:
            progress.at(done)
    return place


def _objects(session: SparkSession, job: Job, spool: Spool, since: Since) -> DataFrame:
    spool.read(session, "objects", tables.READ_OBJECTS).createOrReplaceTempView("metalake_objects")
    return _asked(session, job, _OBJECTS, since)


def _people(session: SparkSession, job: Job, spool: Spool, since: Since) -> DataFrame:
    spool.read(session, "members", tables.READ_MEMBERS).createOrReplaceTempView("metalake_members")
    return _asked(session, job, _PEOPLE, since)


def _asked(session: SparkSession, job: Job, query: str, since: Since) -> DataFrame:
    _of(session, DAILY_USE, job).createOrReplaceTempView("metalake_use")
    _of(session, CHANGES, job).createOrReplaceTempView("metalake_changes")
    # Literals, since Spark cannot write the result of a parameterised query to a table.
    literals = {":metalake": spark_text(job.metalake), ":since": f"DATE '{since.day}'"}
    for name, value in literals.items():
        query = query.replace(name, value)
    return session.sql(query)


def _of(session: SparkSession, table: ResultTable, job: Job) -> DataFrame:
    from pyspark.sql import functions

    return session.table(table.full_name).where(functions.col("metalake") == job.metalake)


# Use of an object counts for its ancestors. An object with a missing ancestor is gone: its path is too short. Its first
# audit row is its creation.
_OBJECTS = """
WITH places AS (
  SELECT id, depth, CAST(text AS BIGINT) AS above
  FROM metalake_objects LATERAL VIEW posexplode(split(trim(BOTH '/' FROM lineage), '/')) AS depth, text
), paths AS (
  SELECT places.id, transform(array_sort(collect_list(struct(depth, name))), each -> each.name) AS path
  FROM places JOIN metalake_objects AS above ON above.id = places.above GROUP BY places.id
), used AS (
  SELECT above AS id, max(last_at) AS last_at
  FROM metalake_use JOIN places ON places.id = object_id WHERE allowed > 0 GROUP BY above
), made AS (
  SELECT object_id AS id, min(at) AS at FROM metalake_changes GROUP BY object_id
)
SELECT :metalake AS metalake, each.id AS object_id, each.kind, slice(path, 2, size(path) - 1) AS path,
  used.last_at, :since AS since
FROM metalake_objects AS each JOIN paths ON paths.id = each.id
  LEFT JOIN used ON used.id = each.id LEFT JOIN made ON made.id = each.id
WHERE each.kind IN ('catalog', 'schema', 'table', 'view')
  AND size(path) = size(split(trim(BOTH '/' FROM lineage), '/'))
  AND coalesce(used.last_at < :since, true) AND coalesce(made.at < :since, true)
"""
_PEOPLE = """
WITH used AS (
  SELECT member, max(last_at) AS last_at FROM metalake_use GROUP BY member
), made AS (
  SELECT name, max(at) AS at FROM metalake_changes WHERE event = 'user.added' GROUP BY name
)
SELECT :metalake AS metalake, each.id AS member_id, each.name AS member, used.last_at, :since AS since
FROM metalake_members AS each LEFT JOIN used ON used.member = each.name LEFT JOIN made ON made.name = each.name
WHERE coalesce(used.last_at < :since, true) AND coalesce(made.at < :since, true)
"""


def _first(frame: DataFrame, then: str) -> list[Any]:
    """The first MOST rows, longest unused first."""
    return frame.orderBy(frame.last_at.asc_nulls_first(), then).limit(MOST).collect()


def _unused(row: Any, name: str, column: str) -> dict[str, Any]:
    last = row["last_at"]
    return {name: row[column]} | ({} if last is None else {"last": written(last)})
