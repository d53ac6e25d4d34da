"""The native wire's endpoints of the record of use; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.api.access import read_page
from access.explain.queries import Place
from access.usage.queries import Record, own_use, place_of, use_of
from access.wire import usage as wire
from access.wire.access import read_moment
from authz.actor import Actor
from metalake.paging import Page
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of


class UseOfObject(Endpoint):
    @answers("read_access", reply=wire.RECORD, query=("since", "limit", "pageToken"), id="listUseOfObject")
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List who asked what of an object, since a moment or as long as it is kept, with how it ended and how often.

        It is complete until `completeUntil`, but for the gaps.
        """
        page = read_page(self, "use", actor.name, metalake, type, full_name, self.text("since"))
        since = read_moment("since", self.text("since"))
        return _page_of(use_of(actor, metalake, Place(kind_of(type), full_name), since), page)


class OwnUse(Endpoint):
    @answers("load_metalake", reply=wire.RECORD, query=("since", "limit", "pageToken"), id="listOwnUse")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List what the caller asked of the objects of a metalake that they see."""
        page = read_page(self, "own use", actor.name, metalake, self.text("since"))
        return _page_of(own_use(actor, metalake, read_moment("since", self.text("since"))), page)


def _page_of(record: Record, page: Page) -> dict[str, Any]:
    lines = (line for line in record.lines if not page.after or place_of(line) > page.after)
    some, token = page.cut(lines, place_of)
    return wire.record_reply(record, some, token)
