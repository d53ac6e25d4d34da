"""Whose turn it is when a place is free: metalakes take turns, and so do the users of each.

The metalake with the fewest runs under way comes first, then the one whose last run began the longest ago; within it
its users likewise, and of each the oldest run.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Min, Q
from django.utils import timezone

from jobs.models import JobRun
from metalake.models import Metalake

REMEMBERED = timedelta(hours=1)  # for which runs that ended count as somebody's last turn
NEVER = datetime.min.replace(tzinfo=UTC)


def in_turn() -> list[tuple[int, int]]:
    """The metalakes and users whose runs wait, the next one first."""
    under_way = Q(status__in=JobRun.RUNNING)
    recent = JobRun.objects.filter(under_way | Q(finished_at__gt=timezone.now() - REMEMBERED)).order_by()
    running: Counter[tuple[int, ...]] = Counter()
    last: dict[tuple[int, ...], datetime] = {}
    by_user = recent.values_list("metalake_id", "user_id")
    for metalake, user, count, began in by_user.annotate(count=Count("pk", filter=under_way), began=Max("started_at")):
        for who in ((metalake,), (metalake, user)):
            running[who] += count
            last[who] = max(last.get(who, NEVER), began or NEVER)
    waiting = JobRun.objects.filter(status=JobRun.Status.QUEUED).order_by().values_list("metalake_id", "user_id")

    def turn(row: tuple[int, int, datetime]) -> tuple[object, ...]:
        metalake, user, oldest = row
        both = [each for who in ((metalake,), (metalake, user)) for each in (running[who], last.get(who, NEVER))]
        return *both, oldest

    return [(metalake, user) for metalake, user, _ in sorted(waiting.annotate(Min("queued_at")), key=turn)]


def has_room(metalake_id: int) -> bool:
    """Whether another run of the metalake may begin; where it is the only one, it may have all places."""
    most = settings.METALAKE_JOBS_PER_METALAKE
    if not most or not Metalake.objects.exclude(pk=metalake_id).exists():
        return True
    return JobRun.objects.filter(metalake_id=metalake_id, status__in=JobRun.RUNNING).count() < most
