"""What jobs report of a metalake, for whoever may read everybody's access: dormant objects and people, and reviews of
its grants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.utils import timezone
from pydantic import TypeAdapter

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock, hold
from authz.models import AccessReview, Dormancy, Grant, Member, Role, User
from authz.objects import by_ids
from authz.services.change import enter
from authz.transactions import write
from metalake.errors import Invalid
from metalake.lineage import Located

MOST = 10_000  # objects of a report, people, or findings of a review
REDUNDANT, SHADOWED = "redundant", "shadowed"
Stored = TypeVar("Stored", Dormancy, AccessReview)


@dataclass(frozen=True)
class DormancyReport:
    """What had no use for so many days: how many there are, and the first of them, the longest unused first.

    Objects are told by id, people by name, each with when it was last used or did something; None for never.
    """

    stored_as: ClassVar[type[Dormancy]] = Dormancy
    complete_until: datetime
    days: int
    object_count: int
    people_count: int
    objects: Sequence[tuple[int, datetime | None]]
    people: Sequence[tuple[str, datetime | None]]

    def check(self) -> None:
        """Raises Invalid for a moment to come."""
        if self.complete_until > timezone.now():
            raise Invalid("completeUntil is a moment of the past.")

    def is_older(self, than: Dormancy) -> bool:
        return than.complete_until > self.complete_until

    def fields(self) -> dict[str, Any]:
        ids = dict(User.objects.filter(username__in=[name for name, _ in self.people]).values_list("username", "id"))
        counted = {name: value for name, value in vars(self).items() if name not in ("objects", "people")}
        return counted | {
            "objects_unused": [(id, last and last.isoformat()) for id, last in self.objects],
            "people_unused": [(ids[name], last and last.isoformat()) for name, last in self.people if name in ids],
        }


class Finding(NamedTuple):
    """A review's finding about one grant, by the ids of its role and object.

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


_FINDINGS = TypeAdapter(list[Finding])


@dataclass(frozen=True)
class ReviewReport:
    """How many grants there are of each sort, and the first of them."""

    stored_as: ClassVar[type[AccessReview]] = AccessReview
    as_of: datetime
    place: int
    days: int
    recorded_from: datetime | None
    complete_until: datetime
    unused_count: int
    redundant_count: int
    shadowed_count: int
    findings: Sequence[Finding]

    def check(self) -> None:
        """Raises Invalid for a moment to come."""
        if max(self.as_of, self.complete_until) > timezone.now():
            raise Invalid("asOf and completeUntil are moments of the past.")

    def is_older(self, than: AccessReview) -> bool:
        return (than.place, than.complete_until) > (self.place, self.complete_until)

    def fields(self) -> dict[str, Any]:
        return vars(self) | {"findings": _FINDINGS.dump_python(list(self.findings), mode="json")}


class DormantObject(NamedTuple):
    on: Located
    last: datetime | None


class DormantPerson(NamedTuple):
    user: str
    last: datetime | None


class Shown(NamedTuple):
    """A finding about a grant that is still there; `by` is None where that object is gone."""

    finding: Finding
    role: str
    on: Located
    by: Located | None


def deliver(actor: Actor, metalake: str, report: DormancyReport | ReviewReport) -> None:
    """Replace the report of a metalake; one older than the stored one is ignored.

    Raises NotFound, NotInUse, Forbidden, and Invalid for a moment in the future.
    """
    report.check()
    write(
        actor,
        lambda fresh: _deliver(fresh, metalake, report),
        holds=lambda: hold(Lock.HANGS, enter(actor, metalake).id),
    )


def _deliver(actor: Actor, metalake: str, report: Any) -> None:
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    rows = report.stored_as.objects
    now = rows.select_for_update().filter(pk=top.id).first()
    if now is None or not report.is_older(now):
        rows.update_or_create(pk=top.id, defaults=report.fields() | {"at": timezone.now(), "by": actor.name})


def report_of(actor: Actor, metalake: str, model: type[Stored]) -> Stored | None:
    """The last report of a metalake; None if there was none. Raises NotFound, NotInUse, Forbidden."""
    return report_on(actor, enter(actor, metalake), model)


def report_on(actor: Actor, top: Located, model: type[Stored]) -> Stored | None:
    """The same of a located metalake. Raises NotFound, Forbidden."""
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    return model.objects.filter(pk=top.id).first()


def reviews_of(actor: Actor, tops: Sequence[Located]) -> list[tuple[Located, AccessReview]]:
    """The last review of each of these metalakes, without its findings, for whoever may read everybody's access."""
    readable = {top.id: top for top in tops if policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, top)}
    rows = AccessReview.objects.filter(pk__in=readable).defer("findings") if readable else ()
    return [(readable[row.pk], row) for row in rows]


def objects_in(report: Dormancy, begin: int, end: int) -> list[DormantObject]:
    """A slice of a report's objects, without those that no longer exist."""
    some = [(id, _moment(last)) for id, last in report.objects_unused[begin:end]]
    there = by_ids(id for id, _ in some)
    return [DormantObject(there[id], last) for id, last in some if id in there]


def people_in(report: Dormancy, begin: int, end: int) -> list[DormantPerson]:
    """A slice of a report's people, without those who are no longer members."""
    some = [(id, _moment(last)) for id, last in report.people_unused[begin:end]]
    members = Member.objects.filter(metalake_id=report.pk, user_id__in=[id for id, _ in some])
    names = dict(members.values_list("user_id", "user__username"))
    return [DormantPerson(names[id], last) for id, last in some if id in names]


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def findings_in(review: AccessReview, begin: int, end: int) -> list[Shown]:
    """A slice of a review, without grants revoked since."""
    some = _FINDINGS.validate_python(review.findings[begin:end])
    there = by_ids({id for each in some for id in (each.on, each.by) if id is not None})
    names = dict(Role.objects.filter(pk__in={each.role for each in some}).values_list("pk", "name"))
    rows = Grant.objects.filter(content_object_id__in={each.on for each in some})
    grants = set(rows.values_list("group__role", "content_object_id", "permission__codename", "effect"))
    return [
        Shown(each, names[each.role], there[each.on], there.get(each.by) if each.by is not None else None)
        for each in some
        if each.role in names and each.on in there and tuple(each[:4]) in grants
    ]
