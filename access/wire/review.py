"""The native wire's bodies about access reviews, our extension."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from access.usage.review import MOST, Finding, Report, Shown
from access.wire.access import object_reply
from authz.models import AccessReview
from authz.wire.rights import ObjectReply
from metalake.privileges import Privilege
from metalake.wire import Body, Moment, Reply, written

Count = Annotated[int, Field(ge=0, lt=2**31)]
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

    def report(self) -> Report:
        values = {name: getattr(self, name) for name in type(self).model_fields}
        findings = [Finding(**dict(each)) for each in self.findings]
        return Report(**{**values, "findings": findings})


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


def review_reply(review: AccessReview) -> dict[str, Any]:
    return {
        "asOf": written(review.as_of),
        "days": review.days,
        "recordedFrom": review.recorded_from and written(review.recorded_from),
        "completeUntil": written(review.complete_until),
        "unusedCount": review.unused_count,
        "redundantCount": review.redundant_count,
        "shadowedCount": review.shadowed_count,
        "at": written(review.at),
        "by": review.by,
    }


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
