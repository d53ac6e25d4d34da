"""Grants that are unused or say nothing, as the last access review reports them, for whoever may read all access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock, hold
from authz.models import AccessReview, Grant, Role
from authz.objects import by_ids
from authz.services.change import enter
from authz.transactions import write
from metalake.errors import Invalid
from metalake.lineage import Located

MOST = 10_000  # findings of a review
REDUNDANT, SHADOWED = "redundant", "shadowed"


class Finding(NamedTuple):
    """What a review says of one grant, by the ids of its role and object.

    `last` is when it was last used, None for not in the record. `verdict` says that a grant on `by` makes it redundant,
    or that a DENY there shadows it.
    """

    role: int
    on: int
    privilege: str
    effect: str
    unused: bool
    last: datetime | None = None
    verdict: str | None = None
    by: int | None = None

    def as_json(self) -> list[Any]:
        return [*self[:5], self.last and self.last.isoformat(), self.verdict, self.by]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Finding:
        role, on, privilege, effect, unused, last, verdict, by = stored
        return cls(role, on, privilege, effect, unused, last and datetime.fromisoformat(last), verdict, by)


@dataclass(frozen=True)
class Report:
    """What a job says: how many grants there are of each sort, and the first of them."""

    as_of: datetime
    place: int
    days: int
    recorded_from: datetime | None
    complete_until: datetime
    unused_count: int
    redundant_count: int
    shadowed_count: int
    findings: Sequence[Finding]


class Shown(NamedTuple):
    """A finding about a grant that is still there; `by` is None where that object is gone."""

    finding: Finding
    role: str
    on: Located
    by: Located | None


def deliver(actor: Actor, metalake: str, report: Report) -> None:
    """Replace what is said of a metalake's grants; a report of an earlier place changes nothing.

    Raises NotFound, NotInUse, Forbidden, and Invalid for a moment to come.
    """
    if max(report.as_of, report.complete_until) > timezone.now():
        raise Invalid("asOf and completeUntil are moments of the past.")
    write(
        actor,
        lambda fresh: _deliver(fresh, metalake, report),
        holds=lambda: hold(Lock.HANGS, enter(actor, metalake).id),
    )


def _deliver(actor: Actor, metalake: str, report: Report) -> None:
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    now = AccessReview.objects.select_for_update().filter(pk=top.id).first()
    if now is not None and (now.place, now.complete_until) > (report.place, report.complete_until):
        return
    has = {name: value for name, value in vars(report).items() if name != "findings"}
    has |= {"findings": [each.as_json() for each in report.findings], "at": timezone.now(), "by": actor.name}
    AccessReview.objects.update_or_create(pk=top.id, defaults=has)


def review_of(actor: Actor, metalake: str) -> AccessReview | None:
    """The last review of a metalake; None if there was none. Raises NotFound, NotInUse, Forbidden."""
    return review_on(actor, enter(actor, metalake))


def review_on(actor: Actor, top: Located) -> AccessReview | None:
    """The same of a located metalake. Raises NotFound, Forbidden."""
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    return AccessReview.objects.filter(pk=top.id).first()


def findings_in(review: AccessReview, begin: int, end: int) -> list[Shown]:
    """A part of a review, without grants that were taken back since."""
    some = [Finding.from_json(stored) for stored in review.findings[begin:end]]
    there = by_ids({id for each in some for id in (each.on, each.by) if id is not None})
    names = dict(Role.objects.filter(pk__in={each.role for each in some}).values_list("pk", "name"))
    rows = Grant.objects.filter(content_object_id__in={each.on for each in some})
    grants = set(rows.values_list("group__role", "content_object_id", "permission__codename", "effect"))
    return [
        Shown(each, names[each.role], there[each.on], there.get(each.by) if each.by is not None else None)
        for each in some
        if each.role in names and each.on in there and tuple(each[:4]) in grants
    ]
