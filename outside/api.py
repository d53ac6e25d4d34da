"""Native API endpoints for refreshes of outside catalogs: begin, watch, stop. Not part of upstream's API."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from authz.actor import Actor
from catalogs.models import RefreshRun
from metalake.rest.replies import moment_text
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body, Reply
from outside import refresh


class RefreshRequest(Body):
    """How to walk."""

    accept_drops: bool = Field(False, description="Believe that things are gone, however many they are")


class RefreshReply(Reply):
    """A walk: `seen` of about `expected` objects so far, `rate` a second, done in about `eta` seconds."""

    id: str
    state: str
    requested_by: str
    started_at: str
    ended_at: str | None = None
    expected: int
    seen: int
    created: int
    changed: int
    dropped: int
    skipped: int
    held_back: int
    rate: float
    eta: int | None = None
    error: str | None = None


def shown(run: RefreshRun) -> dict[str, Any]:
    rate, eta = refresh.speed(run)
    reply: dict[str, Any] = {
        "id": str(run.pk),
        "state": run.state,
        "requestedBy": run.requested_by,
        "startedAt": moment_text(run.started_at),
        "expected": run.expected,
        "seen": run.seen,
        "created": run.created,
        "changed": run.changed,
        "dropped": run.dropped,
        "skipped": run.skipped,
        "heldBack": run.held_back,
        "rate": round(rate, 1),
    }
    if run.ended_at:
        reply["endedAt"] = moment_text(run.ended_at)
    if eta is not None:
        reply["eta"] = eta
    if run.error:
        reply["error"] = run.error
    return reply


class Refreshes(Endpoint):
    @answers("refresh_catalog", reply={"refreshes": list[RefreshReply]})
    def get(self, actor: Actor, metalake: str, catalog: str) -> dict[str, Any]:
        """List the latest walks over an outside catalog."""
        return {"refreshes": [shown(run) for run in refresh.runs_of(actor, metalake, catalog)]}

    @answers("refresh_catalog", body=RefreshRequest, body_is_optional=True, reply={"refresh": RefreshReply})
    def post(self, actor: Actor, metalake: str, catalog: str, body: RefreshRequest | None) -> dict[str, Any]:
        """Begin to walk over an outside catalog, or join the walk that is under way."""
        accepts = body is not None and body.accept_drops
        return {"refresh": shown(refresh.start(actor, metalake, catalog, accept_drops=accepts))}


class Refresh(Endpoint):
    @answers("refresh_catalog", reply={"refresh": RefreshReply})
    def get(self, actor: Actor, metalake: str, catalog: str, refresh_id: str) -> dict[str, Any]:
        """How far a walk is."""
        return {"refresh": shown(refresh.run_of(actor, metalake, catalog, refresh_id))}

    @answers("refresh_catalog", reply={"refresh": RefreshReply}, id="stopRefresh")
    def delete(self, actor: Actor, metalake: str, catalog: str, refresh_id: str) -> dict[str, Any]:
        """Stop a walk where it is."""
        return {"refresh": shown(refresh.cancel(actor, metalake, catalog, refresh_id))}
