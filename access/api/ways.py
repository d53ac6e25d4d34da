"""The native wire's endpoints of how an object is reached, and since when; parsing and shape only."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from access.api.access import DEFAULT_SIZE, MAX_SIZE, read_page
from access.explain.queries import Place, Whom
from access.explain.timeline import compared, moments
from access.explain.ways import SORTS, Narrowed, ways_in
from access.wire import ways as wire
from access.wire.access import object_reply, read_as_of, read_moment, read_privilege
from authz.actor import Actor
from authz.wire.rights import present
from metalake.errors import Invalid
from metalake.paging import read_size
from metalake.privileges import Effect
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of, quote

NARROWED = ("by", "show", "privilege", "user", "group", "role", "condition", "q")


class Ways(Endpoint):
    @answers(
        "read_access",
        reply=wire.WAYS,
        query=("asOf", *NARROWED, "limit", "pageToken"),
        id="listWaysToObject",
    )
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List every way by which a member gets a privilege on an object or is refused it, now or at a moment.

        Callers who may not read others' access there are shown their own ways.
        """
        asked = [self.text(name) for name in ("asOf", *NARROWED)]
        page = read_page(self, "ways", actor.name, metalake, type, full_name, *asked)
        narrowed, on = _read_narrowed(self), Place(kind_of(type), full_name)
        as_of = read_as_of(asked[0])
        ways = ways_in(actor, metalake, on, as_of, narrowed=narrowed, after=page.after, limit=page.size)
        return wire.ways_reply(ways, page.token(ways.next) if ways.next else None)


class Moments(Endpoint):
    @answers("read_access", reply=wire.MOMENTS, query=("since", "until", "limit"), id="listAccessMoments")
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List the moments when access to an object changed, the newest first, with who changed it and how.

        Before the moment `since` of the reply there may be more: ask for those `until` then.
        """
        since, until = (read_moment(name, self.text(name)) for name in ("since", "until"))
        size = read_size("limit", self.text("limit"), DEFAULT_SIZE, MAX_SIZE)
        return wire.moments_reply(moments(actor, metalake, Place(kind_of(type), full_name), since, until, size))


class ComparedAccess(Endpoint):
    @answers("read_access", reply=wire.COMPARED, query=("from", "to", "limit", "pageToken"), id="compareAccess")
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List who gained and who lost which privileges on an object between two moments, and by which change.

        Without `to` the second moment is now.
        """
        asked = [self.text(name) for name in ("from", "to")]
        page = read_page(self, "compared", actor.name, metalake, type, full_name, *asked)
        before, after = (read_moment(name, text) for name, text in zip(("from", "to"), asked, strict=True))
        if before is None:
            raise Invalid("Name the moment to compare with: from is needed.")
        answer = compared(actor, metalake, Place(kind_of(type), full_name), before, after)
        rest = (moved for moved in answer.moved if moved.user > page.after)
        some, token = page.cut(rest, attrgetter("user"))
        return present(object=object_reply(answer.target), moved=list(map(wire.moved_reply, some)), nextPageToken=token)


def _read_narrowed(endpoint: Endpoint) -> Narrowed:
    """Which ways the query asks for. Raises Invalid."""
    by, show, privilege, *names, condition, q = map(endpoint.text, NARROWED)
    whom = [Whom(sort, name) for sort, name in zip(SORTS, names, strict=True) if name is not None]
    if len(whom) > 1:
        raise Invalid("Name one of user, group and role, or none.")
    if condition is not None and condition.lower() not in list(Effect):
        raise Invalid(f"condition is allow or deny, not {quote(condition)}.")
    return Narrowed(
        by=by or "user",
        show=show,
        privilege=read_privilege(privilege),
        whom=whom[0] if whom else None,
        effect=None if condition is None else Effect(condition.lower()),
        q=q or "",
    )
