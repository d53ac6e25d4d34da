"""Schedules: django-celery-beat rows, read by celery beat or, without a broker, by the server's periodic jobs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

log = logging.getLogger(__name__)

LONGEST_NAME = 200  # characters of a schedule's name


def run_due(task: str, run: Callable[..., object], *, runs_for: Callable[..., bool] | None = None) -> int:
    """Call `run` with the arguments of each due schedule of a task; returns how many ran. A no-op with a broker.

    Each due schedule runs in one process only, and not at all if `runs_for` returns False for its arguments. A
    malformed or failing one is logged and skipped.
    """
    if settings.METALAKE_BROKER_URL:
        return 0
    count = 0
    for schedule in PeriodicTask.objects.filter(task=task, enabled=True):
        try:
            arguments = json.loads(schedule.args)
            if (runs_for is None or runs_for(*arguments)) and _claim(schedule):
                run(*arguments)
                count += 1
        except Exception:  # operators can save malformed schedules
            log.exception("the schedule %r is skipped", schedule.name)
    return count


def _claim(row: PeriodicTask) -> bool:
    """Whether the schedule is due and no other process was faster."""
    now: Any = timezone.now()
    if (row.start_time and now < row.start_time) or (row.expires and now >= row.expires):
        return False
    is_due, _ = row.schedule.is_due(row.last_run_at or row.date_changed)
    mine = PeriodicTask.objects.filter(pk=row.pk, last_run_at=row.last_run_at)
    return is_due and bool(mine.update(last_run_at=now, total_run_count=F("total_run_count") + 1))
