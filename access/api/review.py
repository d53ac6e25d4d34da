"""The native wire's endpoints of access reviews; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.api.access import read_page
from access.usage import reports
from access.wire import usage as wire
from authz.actor import Actor
from authz.models import AccessReview
from authz.wire.rights import present
from metalake.rest.views import Endpoint, answers


class DeliverReview(Endpoint):
    @answers("read_access_to_metalake", body=wire.ReviewRequest, reply={"delivered": bool}, id="deliverReview")
    def put(self, actor: Actor, metalake: str, body: wire.ReviewRequest) -> dict[str, Any]:
        """Replace what is said of a metalake's grants; a report as of an earlier place changes nothing."""
        reports.deliver(actor, metalake, body.report())
        return {"delivered": True}


class Reviewed(Endpoint):
    @answers("read_access_to_metalake", reply=wire.REVIEWED, query=("limit", "pageToken"), id="listReviewedGrants")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the grants that the last access review calls unused, redundant or shadowed, with its moment.

        Grants that were taken back since are left out.
        """
        last = reports.report_of(actor, metalake, AccessReview)
        if last is None:
            return {"findings": []}
        page = read_page(self, "review", actor.name, metalake, last.at.isoformat())
        begin = int(page.after) if page.after else 0
        end = begin + page.size
        return present(
            review=wire.report_reply(last, wire.ReviewReply),
            findings=list(map(wire.finding_line, reports.findings_in(last, begin, end))),
            nextPageToken=page.token(str(end)) if end < len(last.findings) else None,
        )
