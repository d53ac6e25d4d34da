"""Resume intents that crashed or could not be settled, and let operators decide about stuck ones."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from catalogs.models import Intent
from metalake import errors
from metalake.errors import Conflict
from outside import intents, steps

log = logging.getLogger(__name__)

RETENTION = timedelta(days=7)
SWEEPERS = 8  # catalogs swept in parallel
TURN = 30.0  # seconds after which a slow catalog yields its thread to another
ROUND = 10.0  # seconds that a sweep waits for slow catalogs
_swept: set[int] = set()
_sweepers = ThreadPoolExecutor(SWEEPERS, thread_name_prefix="sweeper")


def sweep() -> int:
    """Resume intents that crashed or could not be settled; returns how many.

    The intents of one catalog are resumed one by one, those of several catalogs in parallel. A catalog whose system
    hangs is still being swept when this returns, in parallel with later sweeps.
    """
    started = timezone.now()
    catalogs = set(_due(started).values_list("in_catalog_id", flat=True).distinct()) - _swept
    _swept.update(catalogs)
    turns = [_sweepers.submit(_sweep_catalog, catalog, started) for catalog in catalogs]
    ended, _ = wait(turns, ROUND)
    Intent.objects.filter(ended_at__lt=started - RETENTION, lease_until=None).delete()
    return sum(turn.result() for turn in ended)


def _sweep_catalog(catalog_id: int, before: datetime) -> int:
    count, until = 0, time.monotonic() + TURN
    try:
        while time.monotonic() < until and (intent := _claim(catalog_id, before)) is not None:
            count += 1
            steps.point("claimed")
            try:
                intents.carry_on(intent)
            except DatabaseError:
                log.exception("intent %s is left to the next round", intent.pk)
        return count
    finally:
        _swept.discard(catalog_id)
        connection.close()


def _due(before: datetime) -> QuerySet[Intent]:
    waits = Q(state=Intent.State.STUCK, ended_at=None)
    return Intent.objects.filter(lease_until__lte=before).exclude(waits | Q(state=Intent.State.COMMITTED))


def _claim(catalog_id: int, before: datetime) -> Intent | None:
    """Lease an intent that was due at `before` under a new fence, so that no other process works on it."""
    with transaction.atomic():
        due = _due(before).filter(in_catalog_id=catalog_id)
        first = due.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
        for row in first.order_by("lease_until")[:1]:
            return intents.take(due, row.pk, row.fence, attempts=F("attempts") + 1)
    return None


# Decisions of operators


def looking() -> QuerySet[Intent]:
    """Ended intents whose undone calls may still arrive late, so the sweeper keeps looking for them."""
    return Intent.objects.filter(ended_at__isnull=False, lease_until__isnull=False)


def undecided() -> QuerySet[Intent]:
    """Intents that an operator may decide: stuck ones, and ended ones whose late calls cannot be looked for."""
    failed = looking().exclude(last_failure="")
    return Intent.objects.filter(Q(state=Intent.State.STUCK) | Q(pk__in=failed.values("pk")))


def retry(intent: Intent) -> None:
    """Have an undecided intent retried at once."""
    live = Intent.State.UNDOING if intent.error else Intent.State.OPEN
    undecided().filter(pk=intent.pk, state=intent.state).update(
        state=intent.state if intent.ended_at else live, attempts=1, lease_until=timezone.now()
    )


def give_up_by_operator(intent: Intent, operator: str) -> None:
    """End an undecided intent: its names are released, and what it left outside stays there."""
    leased = intents.take(undecided(), intent.pk, intent.fence, state=Intent.State.UNDOING)
    if leased is None:
        return
    error = leased.error or errors.as_json(Conflict(f"{operator} gave it up.", kind="catalog"))
    for each in leased.steps:
        is_begun = each["status"] in steps.BEGUN
        each.update(late=False, status=steps.LEFT if is_begun else each["status"])
    leased.error = error
    steps.save(leased, steps=leased.steps, error=error)
    intents.abort(leased)
