"""The clocks of schedules: rows of django-celery-beat, which celery beat reads or, without a broker, the rounds."""

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

LONGEST_NAME = 200  # of a clock


def ring_due(task: str, begin: Callable[..., object], *, rings_for: Callable[..., bool] | None = None) -> int:
    """Call `begin` with the arguments of each of a task's clocks that is due, unless celery beat does; how many rang.

    A clock rings in one process only, and not at all where `rings_for` says no of its arguments. One that cannot be
    read, or whose work fails, is logged and passed over.
    """
    if settings.METALAKE_BROKER_URL:
        return 0
    rung = 0
    for clock in PeriodicTask.objects.filter(task=task, enabled=True):
        try:
            arguments = json.loads(clock.args)
            if (rings_for is None or rings_for(*arguments)) and _take(clock):
                begin(*arguments)
                rung += 1
        except Exception:  # an operator may have written a schedule that cannot be read
            log.exception("the schedule %r is passed over", clock.name)
    return rung


def _take(clock: PeriodicTask) -> bool:
    """Whether the clock is due, and no other process was faster."""
    now: Any = timezone.now()
    if (clock.start_time and now < clock.start_time) or (clock.expires and now >= clock.expires):
        return False
    is_due, _ = clock.schedule.is_due(clock.last_run_at or clock.date_changed)
    mine = PeriodicTask.objects.filter(pk=clock.pk, last_run_at=clock.last_run_at)
    return is_due and bool(mine.update(last_run_at=now, total_run_count=F("total_run_count") + 1))
