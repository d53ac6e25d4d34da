"""The native wire's form of the record of use, and of what jobs report from it, our extension."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from access.usage.queries import Asked, Record
from access.usage.reports import MOST, DormancyReport, DormantObject, DormantPerson, Finding, ReviewReport, Shown
from access.wire.access import object_reply
from authz.models import AccessReview, Dormancy
from authz.wire.rights import ObjectReply, present
from metalake.privileges import Privilege
from metalake.wire import Body, Moment, Reply, written


class AskedReply(Reply):
    """One question: a row of the table of operations, by whom and about what, its outcome ("allowed", "refused" or
    "hidden", which was answered as missing), by which wire and engine, how often, and when first and last.
    """

    user: str | None = None
    on: ObjectReply | None = None
    operation: str
    outcome: str
    wire: str
    engine: str | None = None
    times: int
    first: str
    last: str


class GapReply(Reply):
    """A time for which a process that was killed may have left questions uncounted."""

    begins: str
    ends: str


RECORD = {
    "uses": list[AskedReply],
    "since": str,
    "completeUntil": str,
    "gaps": list[GapReply],
    "nextPageToken": str | None,
}


def record_reply(record: Record, some: Sequence[Asked], token: str | None) -> dict[str, Any]:
    gaps = [{"begins": written(gap.begins), "ends": written(gap.ends)} for gap in record.gaps]
    return present(
        uses=list(map(asked_reply, some)),
        since=written(record.since),
        completeUntil=written(record.complete_until),
        gaps=gaps,
        nextPageToken=token,
    )


def asked_reply(line: Asked) -> dict[str, Any]:
    return present(
        user=line.user,
        on=object_reply(line.on) if line.on else None,
        operation=line.operation,
        outcome=line.outcome,
        wire=line.wire,
        engine=line.engine or None,
        times=line.times,
        first=written(line.first),
        last=written(line.last),
    )


Count = Annotated[int, Field(ge=0, lt=2**31)]


class UnusedObjectBody(Body):
    """An object by its id, and when it was last used; without `last` if never."""

    on: Annotated[int, Field(ge=1, lt=2**63)]
    last: Moment | None = None


class UnusedPersonBody(Body):
    """A member, and when they last asked for anything; without `last` if never."""

    user: Annotated[str, Field(min_length=1, max_length=255)]
    last: Moment | None = None


class DormancyRequest(Body):
    """What had no use for so many days: how many there are, and the first of them, the longest unused first."""

    complete_until: Moment
    days: Annotated[int, Field(ge=1, le=36_500)]
    object_count: Count
    people_count: Count
    objects: Annotated[list[UnusedObjectBody], Field(max_length=MOST)]
    people: Annotated[list[UnusedPersonBody], Field(max_length=MOST)]

    def report(self) -> DormancyReport:
        objects = [(each.on, each.last) for each in self.objects]
        people = [(each.user, each.last) for each in self.people]
        return DormancyReport(self.complete_until, self.days, self.object_count, self.people_count, objects, people)


class UnusedObjectReply(Reply):
    on: ObjectReply
    last: str | None


class UnusedPersonReply(Reply):
    user: str
    last: str | None


class DormancyReply(Reply):
    """What the report is about: without use for `days`, by a record that is complete until then."""

    complete_until: str
    days: int
    object_count: int
    people_count: int
    at: str
    by: str


DORMANT = {
    "report": DormancyReply | None,
    "objects": list[UnusedObjectReply],
    "people": list[UnusedPersonReply],
    "nextPageToken": str | None,
}


def report_reply(report: Dormancy | AccessReview, model: type[Reply]) -> dict[str, Any]:
    """What of a stored report is in this reply."""
    fields = ((to_camel(name), getattr(report, name)) for name in model.model_fields)
    return {name: written(value) if isinstance(value, datetime) else value for name, value in fields}


def object_line(each: DormantObject) -> dict[str, Any]:
    return {"on": object_reply(each.on), "last": each.last and written(each.last)}


def person_line(each: DormantPerson) -> dict[str, Any]:
    return {"user": each.user, "last": each.last and written(each.last)}


Id = Annotated[int, Field(ge=1, lt=2**63)]


class ReviewedGrantBody(Body):
    """A grant by the ids of its role and object, and what is said of it."""

    role: Id
    on: Id
    privilege: Annotated[Privilege, Field(strict=False)]
    effect: Literal["allow", "deny"]
    unused: bool
    last: Moment | None = None
    verdict: Literal["redundant", "shadowed"] | None = None
    by: Id | None = None


class ReviewRequest(Body):
    """What a review of now says of grants: how many of each sort, and the first of them."""

    as_of: Moment
    place: Annotated[int, Field(ge=0, lt=2**63)]
    days: Annotated[int, Field(ge=0, le=36_500)]
    recorded_from: Moment | None = None
    complete_until: Moment
    unused_count: Count
    redundant_count: Count
    shadowed_count: Count
    findings: Annotated[list[ReviewedGrantBody], Field(max_length=MOST)]

    def report(self) -> ReviewReport:
        values = {name: getattr(self, name) for name in type(self).model_fields}
        findings = [Finding(**dict(each)) for each in self.findings]
        return ReviewReport(**{**values, "findings": findings})


class ReviewReply(Reply):
    """A review: as of when, without use for how many days, by a record from when until when."""

    as_of: str
    days: int
    recorded_from: str | None
    complete_until: str
    unused_count: int
    redundant_count: int
    shadowed_count: int
    at: str
    by: str


class ReviewedGrantReply(Reply):
    """A grant and what the review says of it; `by` is the object whose grant makes it redundant or shadows it."""

    role: str
    on: ObjectReply
    privilege: str
    condition: str
    unused: bool
    last: str | None
    verdict: str | None
    by: ObjectReply | None


REVIEWED = {"review": ReviewReply | None, "findings": list[ReviewedGrantReply], "nextPageToken": str | None}


def finding_line(shown: Shown) -> dict[str, Any]:
    finding = shown.finding
    return {
        "role": shown.role,
        "on": object_reply(shown.on),
        "privilege": finding.privilege,
        "condition": finding.effect,
        "unused": finding.unused,
        "last": finding.last and written(finding.last),
        "verdict": finding.verdict,
        "by": shown.by and object_reply(shown.by),
    }
