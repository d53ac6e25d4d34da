"""Pins a schedule to its template's content, so that nobody can act as its owner by altering the template.

It stops once the template differs from what its owner saw when creating or last enabling the schedule.
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
    """A schedule's template differs from the version that its owner knows."""

    def __init__(self, row: JobTemplate, known: Mapping[str, Any]) -> None:
        what = ", ".join(changed_fields(known, row.content))
        super().__init__(
            f"Job template {row.name} was altered ({what}), last by {row.last_modifier or row.creator}: look at it, "
            "and enable the schedule if it is to run so.",
            kind=Kind.JOB_TEMPLATE,
        )


def require_same(schedule: Schedule, row: JobTemplate | None) -> None:
    """Raise Altered if the template differs from the version that the schedule's owner knows; built-ins have no row."""
    if row is not None and (row.pk != schedule.template_id or changed_fields(schedule.content or {}, row.content)):
        raise Altered(row, schedule.content or {})


def follow(actor: Actor, row: JobTemplate, before: Mapping[str, Any]) -> None:
    """Stop other users' schedules of a template that the actor alters, in the caller's transaction.

    The actor's own, as they know the change, are re-pinned to it; not with a run's token, which would outlive its run.
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
    """Delete these schedules' clocks (django-celery-beat rows), in the caller's transaction."""
    clocks_of(ids).delete()
    PeriodicTasks.update_changed()
