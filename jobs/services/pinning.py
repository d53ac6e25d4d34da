"""A schedule is pinned to what its template says, so that whoever alters a template does not act as others.

It stops once the template runs something else than its owner knew when they made or last enabled it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet
from django_celery_beat.models import PeriodicTask, PeriodicTasks

from authz.actor import Actor
from jobs.definition import changed_fields
from jobs.models import JobTemplate, Schedule
from metalake.errors import Conflict
from metalake.events import event_of, record
from metalake.kinds import Kind

TASK = "metalake.scheduled_job"


class Altered(Conflict):
    """The template of a schedule is not what its owner knows."""

    def __init__(self, row: JobTemplate, known: Mapping[str, Any]) -> None:
        what = ", ".join(changed_fields(known, row.content))
        super().__init__(
            f"Job template {row.name} was altered ({what}), last by {row.last_modifier or row.creator}: look at it, "
            "and enable the schedule if it is to run so.",
            kind=Kind.JOB_TEMPLATE,
        )


def require_same(schedule: Schedule, row: JobTemplate | None) -> None:
    """Raise Altered for a template that is not what the schedule's owner knows; one that is built in has no row."""
    if row is not None and (row.pk != schedule.template_id or changed_fields(schedule.content or {}, row.content)):
        raise Altered(row, schedule.content or {})


def follow(actor: Actor, row: JobTemplate, before: Mapping[str, Any]) -> None:
    """Stop the schedules of others for a template that the actor alters, in the caller's transaction.

    Those of the actor, who knows what it says, go on with it; but not by the token of a run, which would outlive it so.
    """
    if not changed_fields(before, row.content):
        return
    rows = Schedule.objects.filter(template_id=row.pk)
    if actor.within is None:
        mine = rows.filter(user_id=actor.id)
        known = [each.pk for each in mine if not changed_fields(each.content or {}, before)]
        rows.filter(pk__in=known).update(content=row.content)
        rows = rows.exclude(pk__in=known)
    enabled = list(rows.filter(enabled=True))
    for each in rows:
        rows.filter(pk=each.pk).update(enabled=False, last_failure=Altered(row, each.content or {}).message)
    stop_clocks(each.pk for each in enabled)
    record(*(_stopped(actor, each) for each in enabled))


def _stopped(actor: Actor, row: Schedule) -> Any:
    return event_of(
        actor, "schedule.stopped", "schedule", row.pk, [row.name], row.metalake_id, template=row.template_name
    )


def clocks_of(ids: Iterable[int]) -> QuerySet[PeriodicTask]:
    return PeriodicTask.objects.filter(task=TASK, args__in=[json.dumps([each]) for each in ids])


def stop_clocks(ids: Iterable[int]) -> None:
    """Delete the clocks of these schedules, in the caller's transaction."""
    clocks_of(ids).delete()
    PeriodicTasks.update_changed()
