"""Fair scheduling of free slots: among metalakes, and among the users of each.

The metalake with the fewest running jobs comes first, ties going to the one whose last run began the longest ago; then
its users in the same order, and of each user the oldest queued run.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Min, Q
from django.utils import timezone

from jobs.models import JobRun
from metalake.models import Metalake

REMEMBERED = timedelta(hours=1)  # how long an ended run counts as its user's last turn
NEVER = datetime.min.replace(tzinfo=UTC)


def in_turn() -> list[tuple[int, int]]:
    """The (metalake, user) ids with queued runs, the next one first."""
    by_user = JobRun.objects.order_by().values_list("metalake_id", "user_id")
    counts = {"running": Count("pk", filter=Q(status__in=JobRun.RUNNING)), "began": Max("started_at")}
    oldest = Min("queued_at", filter=Q(status=JobRun.Status.QUEUED))
    live = list(by_user.filter(finished_at=None).annotate(**counts, oldest=oldest))
    now = timezone.now()  # with an upper bound SQLite uses the index; clocks of other nodes may be ahead
    ended = by_user.filter(finished_at__range=(now - REMEMBERED, now + REMEMBERED)).annotate(**counts)
    running: Counter[tuple[int, ...]] = Counter()
    last: dict[tuple[int, ...], datetime] = {}
    for metalake, user, count, began, *_ in [*live, *ended]:
        for who in ((metalake,), (metalake, user)):
            running[who] += count
            last[who] = max(last.get(who, NEVER), began or NEVER)

    def turn(row: tuple[int, int, datetime]) -> tuple[object, ...]:
        metalake, user, oldest = row
        both = [each for who in ((metalake,), (metalake, user)) for each in (running[who], last.get(who, NEVER))]
        return *both, oldest

    waiting = [(metalake, user, oldest) for metalake, user, _, _, oldest in live if oldest is not None]
    return [(metalake, user) for metalake, user, _ in sorted(waiting, key=turn)]


def has_room(metalake_id: int) -> bool:
    """Whether another run of the metalake may begin; a metalake that is the only one may use all slots."""
    most = settings.METALAKE_JOBS_PER_METALAKE
    if not most or not Metalake.objects.exclude(pk=metalake_id).exists():
        return True
    running = Count("pk", filter=Q(metalake_id=metalake_id, status__in=JobRun.RUNNING))
    return bool(JobRun.objects.filter(finished_at=None).aggregate(n=running)["n"] < most)
