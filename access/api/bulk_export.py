"""The native wire's endpoints that stream everything about a metalake's rights; parsing and shape only."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone

from access.explain.audit_log import audit_of_all
from access.explain.rules import rules_for
from access.history.streams import state_of
from access.usage.queries import LinePlace, use_of_all
from access.wire import bulk_export as wire
from access.wire.access import read_moment
from authz.actor import Actor
from metalake.errors import Invalid
from metalake.rest.ndjson import lines_of, number_or_none, whole_number
from metalake.rest.views import Endpoint, answers
from metalake.wire import quote, written


class Rules(Endpoint):
    @answers(
        "load_metalake", reply={"rules": list[wire.RuleReply], "operations": list[wire.OperationReply]}, id="listRules"
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List what each privilege and each operation take, for clients that resolve rights themselves."""
        return rules_for(actor, metalake)


class BulkState(Endpoint):
    @answers("read_access_to_metalake", query=("asOf", "place", "after"), id="streamState", streams=True)
    def get(self, actor: Actor, metalake: str) -> StreamingHttpResponse:
        """Stream the objects, groups, members, roles and grants of a metalake as of one place in its history.

        The first line names the place. A stream that broke goes on with `place` and, as `after`, the `place` of the
        last line that came. The last line says {"end": true}, or has the error that ended it.
        """
        if self.text("asOf") is not None and self.text("place") is not None:
            raise Invalid("asOf and place both say as of when; leave one of them out.")
        place, after = (number_or_none(name, self.text(name)) for name in ("place", "after"))
        if after is not None and place is None:
            raise Invalid("after goes on with the state as of a place; name the place of its first line, too.")
        moment = read_moment("asOf", self.text("asOf"))
        top, at, batches = state_of(actor, metalake, moment, place, after or 0)
        head = {"metalake": top.name, "id": top.id, "place": at, "moment": written(moment or timezone.now())}
        return lines_of(head, (map(wire.state_line, lines) for lines in batches))


class BulkAudit(Endpoint):
    @answers("read_access_to_metalake", query=("place", "after"), id="streamAudit", streams=True)
    def get(self, actor: Actor, metalake: str) -> StreamingHttpResponse:
        """Stream what was changed in a metalake, and what was refused, by place.

        The first line names the last place. A stream that broke goes on with that `place`, and with the `place` of the
        last line that came as `after`; so does, without `place`, whoever asks for what came since.
        """
        place, after = (number_or_none(name, self.text(name)) for name in ("place", "after"))
        until, batches = audit_of_all(actor, metalake, after or 0, place)
        return lines_of({"metalake": metalake, "place": until}, (map(wire.audit_line, rows) for rows in batches))


class BulkUse(Endpoint):
    @answers("read_access_to_metalake", query=("since", "until", "after"), id="streamUse", streams=True)
    def get(self, actor: Actor, metalake: str) -> StreamingHttpResponse:
        """Stream the record of use of a metalake, whole hours of it, by hour.

        The first line says since and until when it is complete, and no hour that is not complete is in it. A stream
        that broke goes on with the `place` of the last line that came as `after`.
        """
        since, until = (read_moment(name, self.text(name)) for name in ("since", "until"))
        began, complete, batches = use_of_all(actor, metalake, since, until, self._after())
        head = wire.use_head(metalake, began, complete)
        return lines_of(head, (map(wire.use_line, rows) for rows in batches))

    def _after(self) -> LinePlace | None:
        text = self.text("after")
        if text is None:
            return None
        parts = text.split(".")
        if len(parts) != 4:
            raise Invalid(f"after is the place of a line, four numbers with dots between, not {quote(text)}.")
        hour, about, caller, question = (whole_number("after", part) for part in parts)
        return hour, about, caller, question
