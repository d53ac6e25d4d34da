"""Celery tasks and outbox handlers, each of which calls one function. Messages carry no secrets, at most an id."""

from __future__ import annotations

import threading
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db import close_old_connections

from jobs.models import JobRun
from jobs.running import cleanup, runner
from jobs.services import runs, schedules
from metalake import outbox


def register() -> None:
    outbox.handles(runs.TOPIC, begin)
    outbox.every_round(cleanup.sweep, schedules.begin_due, take_up)


@shared_task(name="metalake.work_on_jobs")
def work_on_jobs() -> int:
    return runner.work()


@shared_task(name=schedules.TASK)
def scheduled_job(schedule_id: int) -> None:
    schedules.begin(schedule_id)


def begin(payload: dict[str, Any] | None = None) -> None:
    """Have a worker or, without a broker, a thread of this process execute queued runs."""
    if settings.METALAKE_BROKER_URL:
        work_on_jobs.delay()
    else:
        threading.Thread(target=_work, name="jobs", daemon=True).start()


def take_up() -> None:
    """Pick up queued runs: no slot was free when they were queued, or the message was lost."""
    if JobRun.objects.filter(status=JobRun.Status.QUEUED).exists():
        begin()


def _work() -> None:
    try:
        runner.work()
    finally:
        close_old_connections()
