"""The native wire's endpoints of questions about access; parsing and shape only."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from django.http import StreamingHttpResponse

from access.explain import explanations as explaining
from access.explain import queries as reaching
from access.explain.queries import Place, Whom
from access.wire import access as wire
from authz.actor import Actor
from authz.services import removed_members
from authz.wire.rights import ObjectReply, present
from metalake.bodies import NDJSON
from metalake.errors import Invalid
from metalake.paging import Page, read_size
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of

DEFAULT_SIZE, MAX_SIZE = 100, 1000  # of a page


class Explain(Endpoint):
    @answers(
        "load_metalake",
        reply={"explanation": wire.ExplanationReply},
        query=("user", "privilege", "operation", "type", "fullName", "asOf"),
        id="explainAccess",
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """Explain why a user, or the caller, may do something on an object or may not, now or at a moment.

        About others it asks what reading their access there does.
        """
        type_, full_name, user = self.text("type"), self.text("fullName"), self.text("user")
        if not type_ or not full_name:
            raise Invalid("Name the object: type and fullName are both needed.", kind="object")
        if user == "":
            raise Invalid("The user has no name; leave user out to ask about yourself.", kind="user")
        kind, as_of = kind_of(type_), wire.read_as_of(self.text("asOf"))
        wanted = explaining.read_wanted(kind, self.text("privilege"), self.text("operation"))
        explanation = explaining.explain(actor, metalake, Place(kind, full_name), wanted, user, as_of)
        return {"explanation": wire.explanation_reply(explanation)}


class WhoReaches(Endpoint):
    @answers(
        "read_access",
        reply={"object": ObjectReply, "access": list[wire.MemberAccessReply], "nextPageToken": str | None},
        query=("asOf", "privilege", "limit", "pageToken"),
        id="listAccessToObject",
    )
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List who can use a privilege on an object, be it by owning it, and which, now or at a moment."""
        asked = [self.text(name) for name in ("asOf", "privilege")]
        page = read_page(self, actor.name, metalake, type, full_name, *asked)
        as_of, privilege = wire.read_as_of(asked[0]), wire.read_privilege(asked[1])
        on = Place(kind_of(type), full_name)
        target, access = reaching.who_reaches(actor, metalake, on, as_of, privilege, page.after)
        some, token = page.cut(access, attrgetter("user"))
        return present(object=wire.object_reply(target), access=list(map(wire.access_reply, some)), nextPageToken=token)


def read_page(endpoint: Endpoint, *asked: str | None) -> Page:
    """The page that `limit` and `pageToken` name, of an answer that depends on what is asked. Raises Invalid."""
    size = read_size("limit", endpoint.text("limit"), DEFAULT_SIZE, MAX_SIZE)
    return Page(size, endpoint.text("pageToken"), "access", *asked)


REACHED = {"objects": list[wire.ReachedReply], "nextPageToken": str | None}
NARROWED = ("asOf", "privilege", "type", "fullName")
PAGED = (*NARROWED, "limit", "pageToken")


class _Reached(Endpoint):
    def _answer(self, actor: Actor, metalake: str, whom: Whom) -> dict[str, Any] | StreamingHttpResponse:
        asked = [self.text(name) for name in NARROWED]
        below = self.place()
        known = below and Place(*below), wire.read_as_of(asked[0]), wire.read_privilege(asked[1])
        if NDJSON in self.request.META.get("HTTP_ACCEPT", ""):
            if self.text("limit") is not None or self.text("pageToken") is not None:
                raise Invalid(f"{NDJSON} streams everything at once; leave out limit and pageToken.")
            reached = reaching.what_is_reached(actor, metalake, whom, *known)
            return StreamingHttpResponse(wire.lines(reached), content_type=NDJSON)
        page = read_page(self, actor.name, metalake, *whom, *asked)
        reached = reaching.what_is_reached(actor, metalake, whom, *known, page.after)
        some, token = page.cut(reached, attrgetter("lineage"))
        return present(objects=list(map(wire.reached_reply, some)), nextPageToken=token)


class ReachedByUser(_Reached):
    @answers("load_metalake", reply=REACHED, query=PAGED, id="listReachOfUser")
    def get(self, actor: Actor, metalake: str, user: str) -> dict[str, Any] | StreamingHttpResponse:
        """List all that a user can load or use, now or at a moment, everywhere or below an object.

        About others it asks what reading their access there does. With Accept: application/x-ndjson all is streamed.
        """
        return self._answer(actor, metalake, Whom("user", user))


class ReachedByGroup(_Reached):
    @answers("load_metalake", reply=REACHED, query=PAGED, id="listReachOfGroup")
    def get(self, actor: Actor, metalake: str, group: str) -> dict[str, Any] | StreamingHttpResponse:
        """List all that a group lets its users load or use; asks what reading others' access there does."""
        return self._answer(actor, metalake, Whom("group", group))


class ReachedByRole(_Reached):
    @answers("load_metalake", reply=REACHED, query=PAGED, id="listReachOfRole")
    def get(self, actor: Actor, metalake: str, role: str) -> dict[str, Any] | StreamingHttpResponse:
        """List all that a role alone lets its holders load or use; asks what reading others' access there does."""
        return self._answer(actor, metalake, Whom("role", role))


class Check(Endpoint):
    @answers("load_metalake", body=wire.CheckRequest, reply={"answers": list[wire.AnswerReply]}, id="checkAccess")
    def post(self, actor: Actor, metalake: str, body: wire.CheckRequest) -> dict[str, Any]:
        """Answer up to 1,000 questions in order, about the caller or about others where one may read their access."""
        allowed = reaching.check(actor, metalake, body.asked(), body.as_of)
        return {"answers": [{"allowed": one} for one in allowed]}


class FormerMembers(Endpoint):
    @answers("read_roles", reply={"formerMembers": list[wire.FormerMemberReply]}, id="listFormerMembers")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List former members with the roles and groups that are kept, since these carry a DENY to them."""
        return {"formerMembers": [former._asdict() for former in removed_members.list_former_members(actor, metalake)]}
