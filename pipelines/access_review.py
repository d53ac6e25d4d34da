"""The job builtin-access_review: who can do what in a metalake, what grants are used for, and which have no effect.

    spark-submit pipelines/access_review.py [--days=90] [--as-of=2026-11-30T12:00:00Z] [--sample=10000]

Streams the metalake's state and usage records, resolves them on Spark's executors, and stages the tables of
`system.access`. A sample is then checked against the server's evaluator; on any difference nothing is published and the
run fails. The findings of a current review are also delivered to the server.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from metalake_client.engines.schemas import separator_of
from metalake_client.failures import Failure
from pipelines import job as jobs
from pipelines.job import Job, Progress
from pipelines.ndjson_streams import state_of, use_of
from pipelines.results import Pending, Results, Unit
from pipelines.review import comparing, delivery, executors
from pipelines.review.grants import Needs, Used
from pipelines.review.rows import grant_rows, need_rows
from pipelines.review.rules import rules_in
from pipelines.review.state import World, is_in_force
from pipelines.review.tables import GRANTS, NEEDS, REVIEWS, RIGHTS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME, NOW = "access_review", "now"
DEFAULTS = {"days": "90", "as-of": "", "sample": "10000"}
HOUR = 3600


class Review:
    """One review: its input from the server, and the derived rows."""

    def __init__(self, job: Job, days: int, as_of: str | None, progress: Progress) -> None:
        self.job, self.days, self.as_of, self.progress = job, days, as_of, progress
        self.session = job.session()
        self.world = World(separator_of(job.client))
        self.uses: dict[tuple[str, int, str], float] = {}
        self.recorded_from: float | None = None
        self.complete_until = ""

    def read(self) -> None:
        """Read state, rules and usage records. Raises Failure."""
        self.progress.stage("reading the state")
        for count in self.world.read(state_of(self.job.client, self.job.metalake, self.as_of)):
            self.progress.at(count)
        answer = self.job.client.get("metalakes", self.job.metalake, "access", "rules")
        self.rules = rules_in(answer["rules"])
        self.operations = {row["operation"]: Needs.of(row) for row in answer["operations"]}
        self.progress.stage("reading the record of use")
        since, until = jobs.written(self.moment - timedelta(days=self.days)), self.as_of
        for count, line in enumerate(use_of(self.job.client, self.job.metalake, since, until)):
            if "operation" in line:
                self._count(line)
            else:
                self.complete_until = line["completeUntil"]
            if count % 5000 == 0:
                self.progress.at(count)

    def _count(self, line: dict[str, Any]) -> None:
        began = line["hour"] * HOUR
        self.recorded_from = min(began, self.recorded_from or began)
        if line["outcome"] == "allowed" and line["user"] and line["on"] in self.world.objects:
            caller = self.world.asking(line["user"], line.get("claimed") or (), line.get("active"))
            key = caller, line["on"], line["operation"]
            self.uses[key] = max(began + line["last"], self.uses.get(key, 0))

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.world.moment)

    @property
    def about(self) -> tuple[str, datetime]:
        """The leading values of every row."""
        return self.as_of or NOW, self.moment

    @cached_property
    def unit(self) -> Unit:
        """Keyed by its input: the history position, the complete hours of usage, and the grants in force."""
        world, idle = self.world, [str(each.given) for each in self.grants if each not in self.in_force]
        made_from = [world.place, self.days, self.complete_until[:13], *sorted(idle)]
        key = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:32]
        name = self.about[0]
        return Unit(name, key, f"review = '{name}'")

    @cached_property
    def grants(self) -> list[Any]:
        return list(self.world.grants({}))

    @cached_property
    def in_force(self) -> set[Any]:
        return {each for each in self.grants if is_in_force(each.given, self.moment.timestamp())}

    @cached_property
    def principals(self) -> list[Any]:
        return self.world.principals()

    @cached_property
    def usage(self) -> Any:
        """When each grant was last used, and the needs of roles."""
        self.progress.stage("counting what grants were used for", len(self.uses))
        lineages = (
            (user, self.world.lineage(on), operation, last) for (user, on, operation), last in self.uses.items()
        )
        uses = [Used(user, on, operation, last) for user, on, operation, last in lineages if on is not None]
        roles = {principal.name: principal.roles for principal in self.principals} | self.world.callers
        return executors.used(self.session, uses, [each.given for each in self.grants], roles, self.operations)

    @cached_property
    def grant_rows(self) -> list[tuple[Any, ...]]:
        cutoff = self.moment.timestamp() - self.days * 86400
        return grant_rows(self.world, self.grants, self.in_force, self.usage[0], cutoff)

    def rights(self) -> DataFrame:
        types = dict.fromkeys(self.world.catalogs(), "relational")
        frame, self.done = executors.rights(self.session, self.about, self.principals, self.in_force, self.rules, types)
        return frame

    def frame(self, columns: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        return self.session.createDataFrame([(*self.about, *row) for row in rows], columns, verifySchema=False)

    def write(self, results: Results) -> Pending:
        frames = {
            RIGHTS: self.rights,
            GRANTS: lambda: self.frame(GRANTS.columns, self.grant_rows),
            NEEDS: lambda: self.frame(NEEDS.columns, need_rows(self.world, self.usage[1])),
            REVIEWS: lambda: self.frame(REVIEWS.columns, [self.summary()]),
        }
        self.done = lambda: 0
        self.progress.stage("resolving rights", len(self.principals))
        with self.progress.following(lambda: self.done()):
            return results.write(self.unit, frames)

    def summary(self) -> tuple[Any, ...]:
        verdicts = [row[delivery.VERDICT] for row in self.grant_rows]
        unused = sum(row[delivery.UNUSED] for row in self.grant_rows)
        begins = None if self.recorded_from is None else datetime.fromtimestamp(self.recorded_from, UTC)
        read = self.world.place, self.days, begins, datetime.fromisoformat(self.complete_until)
        counts = len(self.principals), len(self.world.objects), len(self.grants)
        return (*read, *counts, unused, verdicts.count("redundant"), verdicts.count("shadowed"))

    def compare(self, pending: Pending, number: int) -> int:
        """Check a sample against the server; returns its size. Raises Failure with the differences."""
        self.progress.stage("comparing with the server", number)
        rights = pending.reader(RIGHTS)
        share = min(1.0, number / max(1, rights.count()))
        rows = rights.select("principal", "privilege", "kind", "object_id").sample(share, seed=1).limit(number // 2)
        asked = comparing.questions(self.world, self.principals, self.rules, rows.collect(), number, seed=1)
        says = comparing.answers(self.session, asked, rights)
        odd = comparing.differences(self.job.client, self.job.metalake, asked, says, self.as_of, self.world.moment)
        if odd:
            some = "; ".join(map(str, odd[: comparing.SHOWN]))
            raise Failure(f"{len(odd)} of {len(asked)} rows are not what the server says, so none is shown: {some}.")
        return len(asked)


def review(job: Job, values: dict[str, str]) -> None:
    days, number = jobs.whole("days", values["days"], 0, 3650), jobs.whole("sample", values["sample"], 0, 1_000_000)
    as_of = jobs.written(jobs.moment("as-of", values["as-of"])) if values["as-of"] else None
    progress = Progress(job)
    progress.stage("starting Spark")
    one = Review(job, days, as_of, progress)
    results = Results(job, one.session, NAME, TABLES)  # first, since newly created tables are part of the state
    one.read()
    pending = one.write(results)
    if pending.written:
        try:
            compared = one.compare(pending, number)
        except Failure:
            pending.clear()
            raise
        pending.publish()
        print(f"{len(one.principals)} people, {len(one.grants)} grants on {len(one.world.objects)} objects, as of "
              f"{one.world.moment}; {compared} answers compared with the server, no difference.")  # fmt: skip
    else:
        print("Nothing changed since the last review, so nothing is written.")
    if as_of is None:
        delivery.deliver(job, results.shown(one.unit, REVIEWS), results.shown(one.unit, GRANTS))
    progress.stage("done")


def main(arguments: Sequence[str]) -> int:
    return jobs.run(review, DEFAULTS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
