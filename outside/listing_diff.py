"""Applies a listing of an outside system, read by the server or a job: counts for its run, and removal of the missing.

A missing object is looked up by name before it is removed; if more than half of the known objects are missing, none is
removed until an operator confirms it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.db.models import F, QuerySet
from django.utils import timezone

from authz.actor import Actor
from catalogs.models import Mirror, RefreshRun
from metalake import leases
from metalake.kinds import Kind
from metalake.leases import TakenOver
from metalake.lineage import Located
from outside import mirror
from outside.calls import PATIENCE
from outside.mirror import Tally
from outside.reads import remove_if_dropped
from providers import remote
from providers.base import Provider

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=PATIENCE + remote.TOTAL)  # the longest time of one call; each answer renews the lease
FEW = 10  # up to so many missing objects are removed, whatever their share
SHARE = 0.5


def count(run: RefreshRun, tally: Tally, *, without: frozenset[str] = frozenset()) -> None:
    """Add the counts of a part of a listing to the run, except `without`. Raises TakenOver."""
    for one in tally.passed_over:
        log.info("refresh %s passes over %s", run.pk, one)
    add(run, {name: value for name, value in tally.counts().items() if name not in without})


def add(run: RefreshRun, counts: Mapping[str, int]) -> None:
    """Add to the run's counts and renew its lease. Raises TakenOver.

    The database increments them (F expressions), since several parts of a listing may be delivered concurrently.
    """
    for name, value in counts.items():
        setattr(run, name, getattr(run, name) + value)
    save(run, **{name: F(name) + value for name, value in counts.items()})


def save(run: RefreshRun, **values: object) -> None:
    """Store some of the run's fields and renew its lease. Raises TakenOver."""
    mine = leases.mine(run)
    if not mine.filter(state=RefreshRun.State.RUNNING).update(lease_until=leases.over(LEASE), **values):
        if values:
            mine.update(**values)  # the run was stopped, but its counts are stored
        raise TakenOver


def finish(run: RefreshRun, state: str, error: str, *, any_fence: bool = False) -> None:
    """End a run, unless it has ended or, without `any_fence`, another process has it."""
    rows = RefreshRun.objects.filter(pk=run.pk) if any_fence else leases.mine(run)
    rows.filter(state=RefreshRun.State.RUNNING).update(state=state, error=error, ended_at=timezone.now())


def long_known(known: QuerySet[Mirror]) -> QuerySet[Mirror]:
    """Those that a listing made now should have: it may lack what was just created."""
    return known.filter(securable__create_time__lt=timezone.now() - mirror.GRACE)


def is_in_doubt(run: RefreshRun, container: Located, *, missing: int, known: int, listed: int) -> bool:
    """Whether a listing of `listed` objects lacks so many of the `known` ones that it is not trusted."""
    too_many = missing > FEW and missing > SHARE * known
    says_nothing = container.kind == Kind.CATALOG and not listed
    return bool(missing and (too_many or says_nothing)) and not _accepts_drops(run)


def remove_missing(
    run: RefreshRun, actor: Actor, container: Located, provider: Provider, missing: Iterable[int]
) -> None:
    """Look up each of these missing objects, and remove those that are gone. Raises TakenOver."""
    for pk in missing:
        row = Mirror.objects.select_related("securable").defer("definition").filter(pk=pk).first()
        if row is not None:
            add(run, {"dropped": int(remove_if_dropped(actor, container, provider, row))})


def _accepts_drops(run: RefreshRun) -> bool:
    """Whether an operator has confirmed the drops, perhaps while the run is under way."""
    return RefreshRun.objects.filter(pk=run.pk, accept_drops=True).exists()
