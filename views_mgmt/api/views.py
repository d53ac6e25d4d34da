"""Views on the native wire."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import Any

from authz.actor import Actor
from catalogs.replies import Identifier, as_sent, identifiers
from formats.native.views import CreateViewRequest, ViewUpdatesRequest
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.rest.views import Endpoint, answers
from views_mgmt import versions
from views_mgmt.replies import ViewReply, ViewSummary, summary_reply, view_reply
from views_mgmt.services import views
from views_mgmt.stores import ViewRecord


def address_of(metalake: str, catalog: str, schema: str, view: str | None = None) -> Address:
    """The address of a view, or of its schema."""
    if view is None:
        return Address(metalake=metalake, catalog=catalog, schema=schema)
    return Address(metalake=metalake, catalog=catalog, schema=schema, leaf=view, leaf_kind=Kind.VIEW)


def shown(record: ViewRecord) -> dict[str, Any]:
    return view_reply(record, record.meta or versions.meta_of(record.view))


class Views(Endpoint):
    @answers(
        "list_views",
        reply={"identifiers": list[Identifier], "views": list[ViewSummary] | None},
        query=("refresh", "details"),
        looks_up=attrgetter("address"),
    )
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str) -> dict[str, Any]:
        """List the views of a schema; with details, what those are that the caller may load."""
        address = address_of(metalake, catalog, schema)
        listed = views.list_views(actor, address, refresh=self.flag("refresh"))
        self.taken_at = listed.taken_at
        reply: dict[str, Any] = {"identifiers": identifiers([metalake, catalog, schema], listed.names)}
        if self.flag("details"):
            summaries = map(summary_reply, views.summaries(actor, address, listed.names))
            reply["views"] = sorted(summaries, key=itemgetter("name"))
        return reply

    @answers("create_view", body=CreateViewRequest, reply={"view": ViewReply})
    def post(self, actor: Actor, metalake: str, catalog: str, schema: str, body: CreateViewRequest) -> dict[str, Any]:
        """Create a view. Its properties are answered as they were sent."""
        made = views.create_view(actor, address_of(metalake, catalog, schema, body.name), body)
        return {"view": as_sent(shown(made), body.properties)}


class View(Endpoint):
    @answers("load_view", reply={"view": ViewReply}, query=("refresh",), looks_up=attrgetter("address"))
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str) -> dict[str, Any]:
        """Load a view."""
        record = views.load_view(actor, self.address, refresh=self.flag("refresh"))
        self.taken_at = record.taken_at
        return {"view": shown(record)}

    @answers("alter_view", body=ViewUpdatesRequest, reply={"view": ViewReply})
    def put(
        self, actor: Actor, metalake: str, catalog: str, schema: str, view: str, body: ViewUpdatesRequest
    ) -> dict[str, Any]:
        """Change a view, all of it or nothing, as one new version."""
        record = views.alter_view(actor, address_of(metalake, catalog, schema, view), body.updates)
        return {"view": shown(record)}

    @answers("drop_view", reply={"dropped": bool})
    def delete(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str) -> dict[str, Any]:
        """Drop a view. Its name is free at once; its versions stay."""
        try:
            views.drop_view(actor, address_of(metalake, catalog, schema, view))
        except NotFound as miss:
            if miss.kind != Kind.VIEW:
                raise
            return {"dropped": False}
        return {"dropped": True}
