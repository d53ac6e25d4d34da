"""Schedules of automatic refreshes: one django-celery-beat row per catalog, which operators may edit.

With a broker, celery beat reads the rows; without one, the server's own rounds do.
"""

from __future__ import annotations

import json
from typing import Any

from django.db.models import QuerySet
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from catalogs.models import Catalog
from metalake import beat_schedules
from metalake.beat_schedules import LONGEST_NAME
from metalake.errors import NotFound
from metalake.kinds import Kind
from outside import refresh
from providers.settings import REFRESH_INTERVAL, seconds_of

TASK = "metalake.scheduled_refresh"
OURS = r"^\[[0-9]+\]$"  # the form that `_arguments` writes; rows that operators wrote may have others


def schedule_of(catalog_id: int) -> QuerySet[PeriodicTask]:
    return PeriodicTask.objects.filter(task=TASK, args=_arguments(catalog_id))


def _arguments(catalog_id: int) -> str:
    return json.dumps([catalog_id])


def follow(event: dict[str, Any]) -> None:
    """Update schedules after a catalog was created, altered, enabled, disabled or dropped, even with its metalake."""
    if event["name"] == "metalake.dropped":
        forget_gone()
    elif event["kind"] == Kind.CATALOG and event["name"].startswith("catalog."):
        row = Catalog.objects.filter(pk=event["object_id"]).first()
        if row is None:
            schedule_of(event["object_id"]).delete()
        else:
            keep(row)


def keep(row: Catalog) -> None:
    """Sync the schedule with the catalog's property `refresh-interval`."""
    seconds = seconds_of(row.properties, REFRESH_INTERVAL)
    tasks = schedule_of(row.pk)
    if not seconds:
        tasks.delete()
        return
    interval, _ = IntervalSchedule.objects.get_or_create(every=seconds, period=IntervalSchedule.SECONDS)
    ending = f" ({row.pk})"  # names are unique
    full_name = f"{row.parent.name}.{row.name}" if row.parent else row.name
    name = f"refresh {full_name}"[: LONGEST_NAME - len(ending)] + ending
    fields = {"name": name, "interval": interval, "crontab": None, "enabled": row.enabled}
    if not tasks.update(**fields):
        PeriodicTask.objects.create(task=TASK, args=_arguments(row.pk), **fields)


def forget_gone() -> None:
    """Delete the schedules of dropped catalogs; the event of a dropped metalake does not list its catalogs."""
    tasks = list(PeriodicTask.objects.filter(task=TASK, args__regex=OURS).values_list("pk", "args"))
    # Read after the schedules, since a catalog is stored before its schedule.
    there = {_arguments(pk) for pk in Catalog.objects.values_list("pk", flat=True)}
    PeriodicTask.objects.filter(pk__in=[pk for pk, arguments in tasks if arguments not in there]).delete()


def begin(catalog_id: int) -> None:
    """Begin a scheduled run, or delete the schedule if the catalog is gone."""
    try:
        refresh.begin(catalog_id)
    except NotFound:
        schedule_of(catalog_id).delete()


def begin_due() -> int:
    """Begin the runs that are due, unless celery beat does; returns how many."""
    return beat_schedules.run_due(
        TASK, begin, runs_for=lambda catalog_id: Catalog.objects.filter(pk=catalog_id).exists()
    )
