"""Deliver the last review's findings about grants to the server, which shows and lists them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pipelines.job import Job, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 10_000  # findings; all of them are in the table
UNUSED, VERDICT = 13, 14  # indexes in a row of grants, after the common leading values


def deliver(job: Job, reviews: DataFrame, grants: DataFrame) -> None:
    """Deliver the findings from the tables; idempotent. Raises Failure."""
    (about,) = reviews.collect()
    some = grants.where("unused or verdict is not null").orderBy("role_id", "object_id", "privilege")
    body = {
        "asOf": _written(about.as_of),
        "place": about.place,
        "days": about.days,
        "recordedFrom": _written(about.recorded_from),
        "completeUntil": _written(about.complete_until),
        "unusedCount": about.unused,
        "redundantCount": about.redundant,
        "shadowedCount": about.shadowed,
        "findings": [_finding(row) for row in some.limit(MOST).collect()],
    }
    job.client.call("PUT", "bulk", "metalakes", job.metalake, "access", "review", body=body)


def _finding(row: Any) -> dict[str, Any]:
    values = {
        "role": row.role_id,
        "on": row.object_id,
        "privilege": row.privilege,
        "effect": row.effect,
        "unused": row.unused,
        "last": _written(row.last_used),
        "verdict": row.verdict,
        "by": row.by_id,
    }
    return {name: value for name, value in values.items() if value is not None}


def _written(at: datetime | None) -> str | None:
    """A timestamp in the API's format; Spark returns naive ones in this process's time zone."""
    return None if at is None else written(at.astimezone(UTC))
