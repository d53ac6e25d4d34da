"""The native wire's endpoints of the audit, of an object and of a metalake; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.explain import audit_search
from access.explain.audit_log import read_audit
from access.explain.audit_search import CHANGES, REFUSALS, Wanted
from access.explain.permissions import open_on
from access.explain.queries import Place
from access.usage.refusals import refusals_on
from access.wire import access as wire
from access.wire import audit as audit_wire
from access.wire.access import read_moment
from authz.actor import Actor
from authz.services.change import enter
from authz.wire.rights import present
from metalake.errors import Invalid
from metalake.paging import Page, read_size
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of, quote

DEFAULT_SIZE, MAX_SIZE = 100, 1000  # of a page


class ChangesOfObject(Endpoint):
    @answers(
        "read_access",
        reply={"changes": list[wire.ChangeOfObjectReply], "nextPageToken": str | None},
        query=("limit", "pageToken"),
        id="listChangesOfObject",
    )
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List what was done to an object and by whom, the newest first."""
        size = read_size("limit", self.text("limit"), DEFAULT_SIZE, MAX_SIZE)
        page = Page(size, self.text("pageToken"), "changes", actor.name, metalake, type, full_name)
        lines = read_audit(actor, metalake, Place(kind_of(type), full_name), int(page.after) if page.after else None)
        some, token = page.cut(lines, lambda line: str(line.id))
        return present(changes=list(map(wire.change_of_object_reply, some)), nextPageToken=token)


class Audit(Endpoint):
    @answers(
        "load_metalake",
        reply=audit_wire.AUDIT,
        query=("user", "type", "fullName", "event", "outcome", "since", "until", "limit", "pageToken"),
        id="searchAudit",
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List changes and refusals, the newest first: all of them for whoever may read everybody's access, else one's
        own, and those of objects of which one may read the access.

        With an object it is about that and what is below it, and `refusals` sums what was refused there. `event` is an
        event or the first part of several. A page that ends early says until when it searched, and has a next page.
        """
        names = ("user", "event", "outcome", "since", "until", "type", "fullName")
        asked = {name: self.text(name) for name in names}
        size = read_size("limit", self.text("limit"), DEFAULT_SIZE, MAX_SIZE)
        page = Page(size, self.text("pageToken"), "audit", actor.name, metalake, *asked.values())
        top, place = enter(actor, metalake), self.place()
        on = open_on(actor, metalake, Place(*place))[1] if place else None
        since, until = (read_moment(name, asked[name]) for name in ("since", "until"))
        outcome = asked["outcome"] or ""
        if outcome not in ("", CHANGES, REFUSALS):
            raise Invalid(f"outcome is {CHANGES} or {REFUSALS}, not {quote(outcome)}.")
        wanted = Wanted(asked["user"] or "", on, asked["event"] or "", outcome, since, until)
        result = audit_search.search(actor, top, wanted, int(page.after) if page.after else None, size)
        token = None if result.next is None else page.token(str(result.next))
        refusals = None
        if on and outcome != CHANGES and not wanted.event and not page.after:
            refusals = refusals_on(actor, on, wanted.user, since, until)
        return audit_wire.audit_reply(result, refusals, token)
