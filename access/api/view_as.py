"""The native wire's endpoint of what a user sees below an object; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.api.access import read_page
from access.explain.queries import Place
from access.explain.view_as import children_seen
from access.wire.access import object_reply
from authz.actor import Actor
from authz.wire.rights import ObjectReply, present
from metalake.kinds import Kind
from metalake.rest.views import Endpoint, answers


class ChildrenSeenByUser(Endpoint):
    @answers(
        "load_metalake",
        reply={"objects": list[ObjectReply], "nextPageToken": str | None},
        query=("type", "fullName", "limit", "pageToken"),
        id="listChildrenSeenByUser",
    )
    def get(self, actor: Actor, metalake: str, user: str) -> dict[str, Any]:
        """List the objects directly below one (or the metalake) that a user sees, as they would in a list of theirs.

        About others it asks what reading their access there does.
        """
        place = self.place()
        page = read_page(self, "children", actor.name, metalake, user, *(place or ()))
        on = Place(*place) if place else Place(Kind.METALAKE, metalake)
        children = children_seen(actor, metalake, user, on, page.after, page.size + 1)
        some, token = page.cut(children, lambda child: f"{child.kind}/{child.nodes[-1].name}")
        return present(objects=list(map(object_reply, some)), nextPageToken=token)
