"""Writes the days with new rows, all in one commit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from metalake_client.engines.quoting import spark_text
from pipelines.audit import tables
from pipelines.audit.reading import DayRow, News, Rolled
from pipelines.audit.tables import CHANGES, DAILY_USE, DAYS, REFUSALS, ROLLED, USE
from pipelines.job import Job
from pipelines.results import Results, ResultTable, Unit
from pipelines.spool import Spool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACES = ("day", "metalake")


def rolled(session: SparkSession, job: Job) -> Rolled:
    """The tables' progress; none if one of them was dropped since."""
    rows = session.table(DAYS.full_name).where(_of(job)).collect()
    if not rows:
        return Rolled()
    newest = max(rows, key=lambda row: row["seen"])
    if newest["tables"] != _tables_of(job):
        return Rolled()
    days = {
        row["day"]: DayRow(row["changes"], row["refusals"], row["last_place"], row["use_digest"] or "") for row in rows
    }
    return Rolled(days, newest["read_until"], newest["seen"], newest["whole_before"])


def _of(job: Job) -> Any:
    from pyspark.sql import functions

    return functions.col("metalake") == job.metalake


def _tables_of(job: Job) -> str:
    """A digest of the tables' UUIDs, which detects a table dropped and recreated."""
    uuids = [
        job.writer.call_iceberg("GET", job.metalake, "system", "namespaces", table.schema, "tables", table.name)[
            "metadata"
        ]["table-uuid"]
        for table in ROLLED
    ]
    return hashlib.sha256(" ".join(uuids).encode()).hexdigest()


def write(results: Results, before: Rolled, news: News, spool: Spool) -> list[date]:
    """Write new rows, if any; returns the days written. Raises Failure."""
    days = news.days_since(before)
    if not days:
        return []
    listed = ", ".join(f"DATE '{day}'" for day in days)
    unit = Unit("days", news.key_of(before), f"day IN ({listed})")
    writing = _Writing(results, before, news, spool, days, unit.where)
    frames = {
        CHANGES: writing.changes,
        REFUSALS: writing.refusals,
        USE: writing.use,
        DAILY_USE: writing.daily_use,
        DAYS: writing.days,
    }
    results.write(unit, frames).publish()
    return days


class _Writing:
    """The rows of the days to write: those already in the tables, and new ones."""

    def __init__(
        self, results: Results, before: Rolled, news: News, spool: Spool, days: Sequence[date], where: str
    ) -> None:
        self.job, self.session = results.job, results.session
        self.before, self.news, self.spool, self._days, self.where = before, news, spool, days, where

    def changes(self) -> DataFrame:
        read = self.spool.read(self.session, "changes", tables.READ_CHANGES).selectExpr(
            *self._places("to_date(at)"), "place", "at", "event", "actor", "kind",
            "nullif(`on`, 0) AS object_id", "name", "says",
        )  # fmt: skip
        return self._with_earlier(CHANGES, read)

    def refusals(self) -> DataFrame:
        read = self.spool.read(self.session, "refusals", tables.READ_CHANGES).selectExpr(
            *self._places("to_date(at)"), "place", "at", "actor", "kind", "name AS asked", "says AS why"
        )
        return self._with_earlier(REFUSALS, read)

    def _with_earlier(self, table: ResultTable, read: DataFrame) -> DataFrame:
        if not self.before.days:
            return read
        earlier = self.session.table(table.full_name).where(self.where)
        return earlier.unionByName(read).dropDuplicates(["place"])

    def use(self) -> DataFrame:
        """The usage of a changed day replaces the stored rows; that of other days is kept."""
        began = "timestamp_seconds(hour * 3600)"
        read = self.spool.read(self.session, "use", tables.READ_USE).selectExpr(
            *self._places(f"to_date({began})"), f"{began} AS hour", "`on` AS object_id", "user AS member",
            "claimed", "active", "operation", "outcome", "wire", "engine", "times",
            "timestamp_seconds(hour * 3600 + first) AS first_at", "timestamp_seconds(hour * 3600 + last) AS last_at",
        )  # fmt: skip
        changed = self.news.used_since(self.before)
        earlier = self.session.table(USE.full_name).where(self.where)
        return read.where(read.day.isin(changed)).unionByName(earlier.where(~earlier.day.isin(changed)))

    def daily_use(self) -> DataFrame:
        from pyspark.sql import functions as f

        def sum_of(outcome: str) -> Any:
            return f.sum(f.when(f.col("outcome") == outcome, f.col("times")).otherwise(0)).alias(outcome)

        of = self.use().groupBy(*PLACES, "object_id", "member", "engine")
        sums = [sum_of(outcome) for outcome in ("allowed", "refused", "hidden")]
        return of.agg(*sums, f.min("first_at").alias("first_at"), f.max("last_at").alias("last_at"))

    def days(self) -> DataFrame:
        news, tables_now = self.news, _tables_of(self.job)
        rows = [
            (day, self.job.metalake, *_values(news.row_of(day, self.before)), news.read_until, news.seen,
             news.whole_before, tables_now)
            for day in self._days
        ]  # fmt: skip
        return self.session.createDataFrame(rows, DAYS.columns)

    def _places(self, day: str) -> tuple[str, str]:
        return f"{day} AS day", f"{spark_text(self.job.metalake)} AS metalake"


def _values(row: DayRow) -> tuple[int, int, int, str]:
    return row.changes, row.refusals, row.last_place, row.use_digest
