"""The native wire's bodies about dormant objects and people, our extension."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from access.usage.dormancy import MOST, DormantObject, DormantPerson, Report
from access.wire.access import object_reply
from authz.models import Dormancy
from authz.wire.rights import ObjectReply
from metalake.wire import Body, Moment, Reply, written

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

    def report(self) -> Report:
        objects = [(each.on, each.last) for each in self.objects]
        people = [(each.user, each.last) for each in self.people]
        return Report(self.complete_until, self.days, self.object_count, self.people_count, objects, people)


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


def report_reply(report: Dormancy) -> dict[str, Any]:
    return {
        "completeUntil": written(report.complete_until),
        "days": report.days,
        "objectCount": report.object_count,
        "peopleCount": report.people_count,
        "at": written(report.at),
        "by": report.by,
    }


def object_line(each: DormantObject) -> dict[str, Any]:
    return {"on": object_reply(each.on), "last": each.last and written(each.last)}


def person_line(each: DormantPerson) -> dict[str, Any]:
    return {"user": each.user, "last": each.last and written(each.last)}
