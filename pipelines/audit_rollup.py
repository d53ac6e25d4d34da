"""The job builtin-audit_rollup: audit log, refusals and usage records of a metalake, by day, in `system.audit`.

It writes complete UTC days: today's rows appear tomorrow. Late rows go to their own day, which is then rewritten; days
without new rows are left alone. Everything that a run writes becomes visible in one commit.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from pipelines import job
from pipelines.audit import dormancy, reading, rollup
from pipelines.audit.tables import DORMANT, ROLLED
from pipelines.job import Job, Progress, whole
from pipelines.results import Results
from pipelines.spool import spooled

DEFAULTS = {"days": "90", "late": "3"}
LONGEST = 3650  # days


def main(given: list[str]) -> int:
    return job.run(roll_up, DEFAULTS, given)


def roll_up(job: Job, given: Mapping[str, str]) -> None:
    """Write new rows, then what is unused for `days` days; usage records may arrive up to `late` days late."""
    days, late = (whole(name, given[name], 1, LONGEST) for name in ("days", "late"))
    session, progress = job.session(), Progress(job)
    results = Results(job, session, "audit_rollup", ROLLED)
    with spooled() as spool:
        before = rollup.rolled(session, job)
        news = reading.read(job.client, job.metalake, before, late, spool, progress)
        progress.stage("writing", len(news.days_since(before)))
        written = rollup.write(results, before, news, spool)
        listed = f": {', '.join(day.isoformat() for day in written)}" if 0 < len(written) <= 10 else ""
        print(f"{len(written)} days were written{listed}." if written else "Nothing is new.")
        now = rollup.rolled(session, job)
        since = dormancy.since_of(now, days)
        if since is None:
            print(f"The record of use does not go back {days} days, so nothing is said to be dormant.")
            return
        dormancy.write(Results(job, session, "audit_dormancy", DORMANT), now, since, spool, progress)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
