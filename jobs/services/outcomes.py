"""What runs of the built-in templates found, as far as the actor may see it: a sentence, and where the rest is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from authz import operations, policy
from authz.actor import Actor
from authz.models import AccessReview, Dormancy
from catalogs.services.resolution import find
from jobs.models import JobRun
from jobs.services.system import CATALOG
from metalake.errors import Forbidden, NotFound
from metalake.lineage import Address, Located
from views_mgmt.services import findings

REVIEW, ROLLUP, VIEWS, HARVEST = (
    "builtin-access_review",
    "builtin-audit_rollup",
    "builtin-view_check",
    "builtin-harvest",
)
RESULTS = {REVIEW: "access", ROLLUP: "audit", VIEWS: "lineage"}  # schemas of the system catalog
MOST_VIEWS = 100  # that are counted
_VIEWS = ("broken view", "broken views")
_REPLACED = "A later run replaced what it found"


@dataclass(frozen=True)
class Outcome:
    """What a run found. `about` is its subject: "review", "dormant", "views", or "catalog" with the catalog in `on`."""

    says: str
    about: str
    on: Located | None = None


def outcomes_of(actor: Actor, top: Located, runs: Sequence[JobRun]) -> dict[int, Outcome]:
    """What those of the runs found that succeeded, by run; views are not counted."""
    done = [run for run in runs if run.status == JobRun.Status.SUCCEEDED and run.template_id is None]
    by_run = {run.pk: Outcome("Broken views", "views") for run in done if run.template_name == VIEWS}
    reviews, rollups = (
        [run for run in done if run.template_name == name] if _reads(actor, top) else [] for name in (REVIEW, ROLLUP)
    )
    if reviews:
        last = AccessReview.objects.defer("findings").filter(pk=top.id).first()
        by_run |= {run.pk: Outcome(_of_review(run, last), "review") for run in reviews}
    if rollups:
        report = Dormancy.objects.defer("objects_unused", "people_unused").filter(pk=top.id).first()
        by_run |= {run.pk: Outcome(_of_rollup(run, report), "dormant") for run in rollups}
    return by_run


def outcome_of(actor: Actor, top: Located, run: JobRun) -> Outcome | None:
    """The same of one run, with its broken views counted, and the catalog of a harvest."""
    outcome = outcomes_of(actor, top, [run]).get(run.pk)
    if outcome is not None and outcome.about == "views":
        return Outcome(_of_views(actor, top, run), "views")
    if run.status == JobRun.Status.SUCCEEDED and run.template_id is None and run.template_name == HARVEST:
        on = _seen(actor, Address(metalake=top.name, catalog=run.conf.get("catalog", "")))
        if on is not None and policy.permits(actor, operations.REFRESH_CATALOG, on):
            return Outcome(f"Catalog {on.name} is brought up to its system", "catalog", on)
    return outcome


def results_of(actor: Actor, top: Located, run: JobRun) -> Located | None:
    """The schema of the system catalog that a run wrote to, if the actor sees it."""
    schema = RESULTS.get(run.template_name) if run.template_id is None else None
    return _seen(actor, Address(metalake=top.name, catalog=CATALOG, schema=schema)) if schema else None


def _seen(actor: Actor, address: Address) -> Located | None:
    try:
        return find(actor, address)
    except (NotFound, Forbidden):
        return None


def _reads(actor: Actor, top: Located) -> bool:
    return policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, top)


def _is_of(run: JobRun, report: AccessReview | Dormancy | None) -> bool:
    """Whether the stored report is this run's: delivered by its user while it ran."""
    if report is None or run.started_at is None or run.finished_at is None:
        return False
    return report.by == run.user_name and run.started_at <= report.at <= run.finished_at


def _of_review(run: JobRun, last: AccessReview | None) -> str:
    if last is None or not _is_of(run, last):
        return _REPLACED
    counts = (last.unused_count, "unused"), (last.redundant_count, "redundant"), (last.shadowed_count, "shadowed")
    return "Grants: " + ", ".join(f"{count:,} {what}" for count, what in counts)


def _of_rollup(run: JobRun, report: Dormancy | None) -> str:
    if report is None or not _is_of(run, report):
        return _REPLACED
    return f"Not used for {report.days} days: {_counted(report.object_count, 'object', 'objects')}, " + _counted(
        report.people_count, "person", "people"
    )


def _of_views(actor: Actor, top: Located, run: JobRun) -> str:
    broken = list(islice(findings.broken_views(actor, top.name), MOST_VIEWS + 1))
    if not broken:
        return "No view that you may load is broken"
    count = f"{MOST_VIEWS} or more broken views" if len(broken) > MOST_VIEWS else _counted(len(broken), *_VIEWS)
    return f"{count}, as of now"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
