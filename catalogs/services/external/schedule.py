"""When catalogs are refreshed by themselves: one row of django-celery-beat each, which operators may edit.

With a broker beat reads them; without one the server's own rounds do.
"""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from catalogs.models import Catalog
from catalogs.services.external import refresh
from metalake.privileges import Kind

TASK = "metalake.scheduled_refresh"


def name_of(catalog_id: int) -> str:
    return f"refresh catalog {catalog_id}"


def follow(event: dict[str, Any]) -> None:
    """After a catalog was made, altered, enabled, disabled or dropped."""
    if event["kind"] == Kind.CATALOG and event["name"].startswith("catalog."):
        row = Catalog.objects.filter(pk=event["object_id"]).first()
        if row is None:
            PeriodicTask.objects.filter(name=name_of(event["object_id"])).delete()
        else:
            keep(row)


def keep(row: Catalog) -> None:
    """Make the schedule what the catalog's property `refresh-interval` says."""
    seconds = row.properties.get("refresh-interval")
    tasks = PeriodicTask.objects.filter(name=name_of(row.pk))
    if not seconds:
        tasks.delete()
        return
    interval, _ = IntervalSchedule.objects.get_or_create(every=int(seconds), period=IntervalSchedule.SECONDS)
    about = f"{row.name}, every {seconds} s"
    if not tasks.update(interval=interval, crontab=None, enabled=row.enabled, description=about):
        PeriodicTask.objects.create(
            name=name_of(row.pk),
            task=TASK,
            interval=interval,
            args=json.dumps([row.pk]),
            enabled=row.enabled,
            description=about,
        )


def begin_due() -> int:
    """Begin what is due, where no beat does it; returns how many runs began."""
    if settings.METALAKE_BROKER_URL:
        return 0
    begun = 0
    for task in PeriodicTask.objects.filter(task=TASK, enabled=True):
        (catalog_id,) = json.loads(task.args)
        if not Catalog.objects.filter(pk=catalog_id).exists():
            continue
        last = task.last_run_at or task.date_changed
        is_due, _ = task.schedule.is_due(last)
        mine = PeriodicTask.objects.filter(pk=task.pk, last_run_at=task.last_run_at)
        if is_due and mine.update(last_run_at=timezone.now(), total_run_count=F("total_run_count") + 1):
            refresh.begin(catalog_id)
            begun += 1
    return begun
