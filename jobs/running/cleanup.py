"""Periodic clean-up of runs: marks lost ones as ended, kills orphaned processes, and deletes old runs."""

from __future__ import annotations

import shutil
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from jobs.models import JobRun
from jobs.running import run_rows
from jobs.running.processes import end_marked, marked
from jobs.running.runner import MARK
from jobs.services.runs import forget

MOST_FORGOTTEN = 100  # in one round


def sweep() -> None:
    run_rows.lose()
    _end_orphans()
    _clear_folders()
    forget_old()


def _ended_among(ids: set[int]) -> set[int]:
    """Those of these runs that are in this database and have ended."""
    ended = JobRun.objects.filter(pk__in=ids).exclude(status__in=JobRun.LIVE)
    return set(ended.values_list("pk", flat=True))


def _end_orphans() -> None:
    """Kill processes of runs that have ended: watcher and supervisor may have died together."""
    if ids := {run for _, run in marked(MARK)}:
        end_marked(MARK, _ended_among(ids))


def _clear_folders() -> None:
    """Remove the folders of ended runs, which a dead watcher left."""
    home = settings.METALAKE_HOME / "jobs"
    left = {int(path.name) for path in home.glob("[0-9]*") if path.name.isdecimal() and not path.is_symlink()}
    for run_id in _ended_among(left):
        shutil.rmtree(home / str(run_id), ignore_errors=True)


def forget_old() -> int:
    """Delete at most MOST_FORGOTTEN runs that ended more than METALAKE_JOB_DAYS days ago; returns how many."""
    before = timezone.now() - timedelta(days=settings.METALAKE_JOB_DAYS)
    rows = list(JobRun.objects.filter(finished_at__lt=before).values_list("pk", flat=True)[:MOST_FORGOTTEN])
    forget(rows)
    return len(rows)
