"""The versions of views, as resources of the native wire. Not part of upstream's wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from metalake.errors import Invalid
from metalake.rest.views import Endpoint, answers
from metalake.wire import Reply, quote
from views_mgmt.api.views import address_of, shown
from views_mgmt.replies import ViewReply, ViewVersionReply, version_reply
from views_mgmt.services import history

MOST = 100  # versions in one answer; fewer where their SQL is long


class DifferenceReply(Reply):
    """One part in which two versions differ, such as `representations.spark` or `comment`; null where it is missing."""

    part: str
    before: Any
    after: Any


def number_in(text: str) -> int:
    """The number of a version in a path. Raises Invalid."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:10]) < 2**31 or len(text) > 10:
        raise Invalid(f"A version is a number from 1 on, not {quote(text)}.", kind="view")
    return int(text)


class ViewVersions(Endpoint):
    @answers(
        "load_view",
        reply={"versions": list[ViewVersionReply], "next": int | None},
        query=("before",),
        id="list_view_versions",
    )
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str) -> dict[str, Any]:
        """List the versions of a view, the latest first; `next` is the `before` of the next page, null at the end."""
        before = self.text("before")
        rows = history.list_versions(
            actor, address_of(metalake, catalog, schema, view), None if before is None else number_in(before), MOST
        )
        goes_on = bool(rows) and rows[-1].version > 1
        return {"versions": [version_reply(row) for row in rows], "next": rows[-1].version if goes_on else None}


class ViewVersion(Endpoint):
    @answers("load_view", reply={"version": ViewVersionReply}, id="load_view_version")
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str, number: str) -> dict[str, Any]:
        """Load one version of a view."""
        row = history.load_version(actor, address_of(metalake, catalog, schema, view), number_in(number))
        return {"version": version_reply(row)}


class ViewComparison(Endpoint):
    @answers("load_view", reply={"differences": list[DifferenceReply]}, id="compare_view_versions")
    def get(
        self, actor: Actor, metalake: str, catalog: str, schema: str, view: str, number: str, other: str
    ) -> dict[str, Any]:
        """What differs between two versions of a view, part by part."""
        address = address_of(metalake, catalog, schema, view)
        differences = history.compare(actor, address, number_in(number), number_in(other))
        return {"differences": [vars(each) for each in differences]}


class ViewRollback(Endpoint):
    @answers("alter_view", reply={"view": ViewReply}, id="roll_back_view")
    def post(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str, number: str) -> dict[str, Any]:
        """Make a new version that equals an earlier one; the security mode stays as it is."""
        return {"view": shown(history.roll_back(actor, address_of(metalake, catalog, schema, view), number_in(number)))}
