"""The native wire's endpoint of what was done to an object; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.explain.audit_log import read_audit
from access.explain.queries import Place
from access.wire import access as wire
from authz.actor import Actor
from authz.wire.rights import present
from metalake.paging import Page, read_size
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of

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
