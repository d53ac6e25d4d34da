"""The native wire's replies about how an object is reached and since when, all of them our extension."""

from __future__ import annotations

from typing import Any, Literal

from access.explain.timeline import Difference, Moment, Moments
from access.explain.verdicts import Missing
from access.explain.ways import AccessPath, AccessPathsPage
from access.wire.access import object_reply
from authz.wire.rights import ObjectReply, present
from metalake.wire import Reply, written


class MissingReply(Reply):
    """A privilege to be granted on the object or above it, or with `denied` its DENY there to be lifted."""

    privilege: str
    on: ObjectReply | None = None
    denied: bool | None = None


class WayReply(Reply):
    """One way to a privilege or its DENY: by whom it is had, through which group and role, and what it gives.

    An owner has all privileges and no role. Without `on` the caller may not see the object. `missing` mends a broken
    way; `memberCount` are the enabled members who have what a group or role gives.
    """

    user: str | None = None
    group: str | None = None
    role: str | None = None
    privilege: str | None = None
    owner: bool | None = None
    condition: Literal["allow", "deny"]
    on: ObjectReply | None = None
    direct: bool
    verdict: Literal["effective", "beaten", "broken", "later"]
    says: str | None = None
    missing: list[MissingReply] | None = None
    member_count: int | None = None
    grantor: str | None = None
    grant_time: str | None = None
    start_time: str | None = None
    end_time: str | None = None


WAYS = {
    "object": ObjectReply,
    "ways": list[WayReply],
    "total": int,
    "atLeast": bool | None,
    "complete": bool,
    "nextPageToken": str | None,
}


def ways_reply(page: AccessPathsPage, token: str | None) -> dict[str, Any]:
    return present(
        object=object_reply(page.target),
        ways=[way_reply(way) for way in page.ways],
        total=page.total,
        atLeast=page.at_least or None,
        complete=page.is_complete,
        nextPageToken=token,
    )


def way_reply(way: AccessPath) -> dict[str, Any]:
    return present(
        user=way.user and way.user.name,
        group=way.group and way.group.name,
        role=way.role and way.role.name,
        privilege=way.privilege and way.privilege.value,
        owner=way.owner or None,
        condition=way.effect.value,
        on=way.on and object_reply(way.on),
        direct=way.is_direct,
        verdict=way.verdict.value,
        says=way.says or None,
        missing=[_missing_reply(one) for one in way.missing] or None,
        memberCount=way.member_count,
        grantor=way.grantor or None,
        grantTime=way.granted_at and written(way.granted_at),
        startTime=way.starts_at and written(way.starts_at),
        endTime=way.ends_at and written(way.ends_at),
    )


def _missing_reply(missing: Missing) -> dict[str, Any]:
    return present(
        privilege=missing.privilege.value,
        on=missing.on and object_reply(missing.on),
        denied=missing.is_denied or None,
    )


class MomentReply(Reply):
    """A change of access to an object; without `actor` a grant began or ended by itself.

    `memberCount` is how many members can use other privileges there than before.
    """

    time: str
    event: str
    actor: str | None = None
    says: str
    member_count: int


MOMENTS = {"object": ObjectReply, "moments": list[MomentReply], "since": str}


def moments_reply(answer: Moments) -> dict[str, Any]:
    return {
        "object": object_reply(answer.target),
        "moments": [_moment_reply(moment) for moment in answer.moments],
        "since": written(answer.since),
    }


def _moment_reply(moment: Moment) -> dict[str, Any]:
    return present(
        time=written(moment.at),
        event=moment.event,
        actor=moment.actor or None,
        says=moment.says,
        memberCount=moment.member_count,
    )


class MovedReply(Reply):
    """A user who can use other privileges on an object than before, and the last change that made it so."""

    user: str
    gained: list[str]
    lost: list[str]
    by: MomentReply


COMPARED = {"object": ObjectReply, "moved": list[MovedReply], "nextPageToken": str | None}


def moved_reply(moved: Difference) -> dict[str, Any]:
    return {
        "user": moved.user,
        "gained": list(moved.gained),
        "lost": list(moved.lost),
        "by": _moment_reply(moved.by),
    }
