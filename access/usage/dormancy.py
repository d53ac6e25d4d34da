"""Objects and members without any use for long, as a job reports them, for whoever may read everybody's access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock, hold
from authz.models import Dormancy, Member, User
from authz.objects import by_ids
from authz.services.change import enter
from authz.transactions import write
from metalake.errors import Invalid
from metalake.lineage import Located

MOST = 10_000  # objects of a report, and people

Unused = tuple[int, datetime | None]
"""The id of an object or account, and when it was last used or did something; None for never."""


@dataclass(frozen=True)
class Report:
    """What a job says: how many there are, and the first of them, the longest unused first; people by name."""

    complete_until: datetime
    days: int
    object_count: int
    people_count: int
    objects: Sequence[Unused]
    people: Sequence[tuple[str, datetime | None]]


class DormantObject(NamedTuple):
    on: Located
    last: datetime | None


class DormantPerson(NamedTuple):
    user: str
    last: datetime | None


def deliver(actor: Actor, metalake: str, report: Report) -> None:
    """Replace the report of a metalake; one that is older than the present one changes nothing.

    Raises NotFound, NotInUse, Forbidden, and Invalid for a moment to come.
    """
    if report.complete_until > timezone.now():
        raise Invalid("completeUntil is a moment of the past.")
    write(
        actor,
        lambda fresh: _deliver(fresh, metalake, report),
        holds=lambda: hold(Lock.HANGS, enter(actor, metalake).id),
    )


def _deliver(actor: Actor, metalake: str, report: Report) -> None:
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    now = Dormancy.objects.select_for_update().filter(pk=top.id).first()
    if now is not None and now.complete_until > report.complete_until:
        return
    ids = dict(User.objects.filter(username__in=[name for name, _ in report.people]).values_list("username", "id"))
    people = [(ids[name], last) for name, last in report.people if name in ids]
    has = {
        "complete_until": report.complete_until,
        "days": report.days,
        "object_count": report.object_count,
        "people_count": report.people_count,
        "objects_unused": [_stored(each) for each in report.objects],
        "people_unused": [_stored(each) for each in people],
        "at": timezone.now(),
        "by": actor.name,
    }
    Dormancy.objects.update_or_create(pk=top.id, defaults=has)


def _stored(unused: Unused) -> tuple[int, str | None]:
    id, last = unused
    return id, None if last is None else last.isoformat()


def report_of(actor: Actor, metalake: str) -> Dormancy | None:
    """The last report of a metalake; None if there was none. Raises NotFound, NotInUse, Forbidden."""
    return report_on(actor, enter(actor, metalake))


def report_on(actor: Actor, top: Located) -> Dormancy | None:
    """The same of a located metalake. Raises NotFound, Forbidden."""
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    return Dormancy.objects.filter(pk=top.id).first()


def objects_in(report: Dormancy, begin: int, end: int) -> list[DormantObject]:
    """The objects of a part of a report that are still there."""
    some = [(id, _moment(last)) for id, last in report.objects_unused[begin:end]]
    there = by_ids(id for id, _ in some)
    return [DormantObject(there[id], last) for id, last in some if id in there]


def people_in(report: Dormancy, begin: int, end: int) -> list[DormantPerson]:
    """The people of a part of a report that are still members."""
    some = [(id, _moment(last)) for id, last in report.people_unused[begin:end]]
    members = Member.objects.filter(metalake_id=report.pk, user_id__in=[id for id, _ in some])
    names = dict(members.values_list("user_id", "user__username"))
    return [DormantPerson(names[id], last) for id, last in some if id in names]


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
