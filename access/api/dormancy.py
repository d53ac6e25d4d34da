"""The native wire's endpoints of dormant objects and people; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.api.access import read_page
from access.usage import reports
from access.wire import usage as wire
from authz.actor import Actor
from authz.models import Dormancy
from authz.wire.rights import present
from metalake.rest.views import Endpoint, answers


class DeliverDormancy(Endpoint):
    @answers("read_access_to_metalake", body=wire.DormancyRequest, reply={"delivered": bool}, id="deliverDormancy")
    def put(self, actor: Actor, metalake: str, body: wire.DormancyRequest) -> dict[str, Any]:
        """Replace the report of what had no use for long; a report of an earlier moment changes nothing."""
        reports.deliver(actor, metalake, body.report())
        return {"delivered": True}


class Dormant(Endpoint):
    @answers("read_access_to_metalake", reply=wire.DORMANT, query=("limit", "pageToken"), id="listDormant")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the objects and members that had no use for long when a job last looked, the longest unused first.

        Both lists go on from page to page; those that are gone since are left out.
        """
        report = reports.report_of(actor, metalake, Dormancy)
        if report is None:
            return {"objects": [], "people": []}
        page = read_page(self, "dormant", actor.name, metalake, report.complete_until.isoformat())
        begin = int(page.after) if page.after else 0
        end = begin + page.size
        goes_on = end < max(len(report.objects_unused), len(report.people_unused))
        return present(
            report=wire.report_reply(report, wire.DormancyReply),
            objects=list(map(wire.object_line, reports.objects_in(report, begin, end))),
            people=list(map(wire.person_line, reports.people_in(report, begin, end))),
            nextPageToken=page.token(str(end)) if goes_on else None,
        )
