"""What was refused on an object and below it, from the record of use, since refusals in the audit name no object."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q
from django.utils import timezone

from access.explain.permissions import reads_access
from access.usage.queries import Asked, at_hour, hour_of, lines_of
from authz import operations
from authz.actor import Actor
from authz.models import Use, UseCaller, UseObject, UseQuestion, User
from authz.objects import by_ids
from authz.services.authority import require
from authz.usage_counter import HIDDEN, REFUSED
from metalake.kinds import CONTAINERS
from metalake.lineage import Located
from metalake.models import Securable, below

SCANNED = 50_000  # rows of the record that one answer looks at
MOST = 100  # sums of an answer


class RefusedUse(NamedTuple):
    """Who was refused what, the latest first; of hours since `since`, which is later than asked if it was cut."""

    lines: Sequence[Asked]
    since: datetime
    is_cut: bool


def refusals_on(
    actor: Actor, target: Located, user: str = "", since: datetime | None = None, until: datetime | None = None
) -> RefusedUse:
    """What was refused, or answered as missing, on a located object and below it, in whole hours.

    Raises NotFound and Forbidden unless the actor may read who has access to it, Invalid for `since` in the future.
    """
    require(actor, operations.read_access(target.kind), target)
    began, end = hour_of(since), hour_of(min(until, timezone.now()) if until else timezone.now())
    questions = UseQuestion.objects.filter(outcome__in=(REFUSED, HIDDEN)).values("id")
    rows = Use.objects.filter(question__in=questions)
    if user:
        account = User.objects.filter(username=user).values("id")
        rows = rows.filter(caller__in=list(UseCaller.objects.filter(user_id__in=account).values_list("id", flat=True)))
    is_cut = False
    if target.kind in CONTAINERS:
        first = _first_hour(began, end)
        is_cut, began = first > began, first
        inside = Securable.objects.filter(Q(lineage=target.lineage) | below(target.lineage)).values("id")
        rows = rows.filter(
            hour__range=(began, end), about__in=UseObject.objects.filter(object_id__in=inside).values("id")
        )
    else:
        about = UseObject.objects.filter(object_id=target.id).values_list("id", flat=True).first() or 0
        rows = rows.filter(about=about, hour__in=range(began, end + 1))  # each hour is one look into the index
    objects = dict(UseObject.objects.filter(pk__in=rows.values("about")).values_list("id", "object_id"))
    today = by_ids(objects.values())
    readable = {id: today[of] for id, of in objects.items() if of in today and reads_access(actor, today[of])}
    lines = [line for line in lines_of(rows, readable) if line.on is not None]
    lines.sort(key=lambda line: line.last, reverse=True)
    return RefusedUse(lines[:MOST], at_hour(began), is_cut or len(lines) > MOST)


def _first_hour(began: int, end: int) -> int:
    """The first hour of the newest SCANNED rows, at least the newest one."""
    hours = Use.objects.filter(hour__range=(began, end)).order_by("-hour").values_list("hour", flat=True)
    last = hours[SCANNED : SCANNED + 1].first()
    return began if last is None else min(last + 1, end)
