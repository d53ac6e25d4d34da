"""Deciding about requests for access: whoever may grant what is asked approves it by a plan, or declines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from access.explain.queries import Place, Whom
from access.plans import apply, proposals
from access.plans.apply import Applied
from access.plans.proposals import Proposal
from access.requests.asking import OPEN, about, check_text, close, none_such
from authz import policy
from authz.actor import Actor
from authz.models import AccessRequest
from authz.objects import by_ids
from authz.services.authority import may_give
from authz.services.change import change, enter, publish_events
from authz.services.grant_entries import Given
from metalake.errors import Conflict, Invalid
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

MOST_READ = 2000  # open requests, of which those to decide are listed


@dataclass(frozen=True)
class OpenRequest:
    """Somebody else's request that the actor may decide; `is_member`: the requester is still in the metalake."""

    row: AccessRequest
    on: Located
    is_member: bool

    @property
    def who(self) -> str:
        return self.row.user.username

    @property
    def path(self) -> str:
        """Of the object today; the one it was asked by may name what the actor may not see."""
        return dotted(self.on.full_name)

    @property
    def privileges(self) -> list[Privilege]:
        return _known(self.row)


def open_requests(actor: Actor, metalake_id: int | None = None) -> list[OpenRequest]:
    """What waits for the actor's decision, the oldest first: in one metalake, or in all that they are a member of.

    One statement if nothing waits, else four, of the oldest MOST_READ requests.
    """
    rows = AccessRequest.objects.filter(state=OPEN, metalake__enabled=True, metalake__in=policy.metalakes_of(actor))
    if metalake_id is not None:
        rows = rows.filter(metalake_id=metalake_id)
    some = list(rows.exclude(user_id=actor.id).select_related("user").order_by("id")[:MOST_READ])
    located = by_ids(row.object_id for row in some)
    opened = (_opened(actor, row, located.get(row.object_id)) for row in some)
    return [one for one in opened if one is not None]


def _opened(actor: Actor, row: AccessRequest, on: Located | None) -> OpenRequest | None:
    """The request if the actor may grant all of it; nobody decides their own, or about an object that is gone."""
    if on is None or row.user_id == actor.id or on.metalake.id != row.metalake_id:
        return None
    if not all(may_give(actor, on, privilege) for privilege in _known(row)):
        return None
    return OpenRequest(row, on, actor.policy.is_member(row.user_id, row.metalake_id))


def _known(row: AccessRequest) -> list[Privilege]:
    return [Privilege(name) for name in row.privileges]


def load(actor: Actor, metalake: str, request_id: int) -> OpenRequest:
    """The request to decide. Raises NotFound like for a missing one, and Conflict if it is not open any more."""
    return _load(actor, enter(actor, metalake), request_id)


def _load(actor: Actor, top: Located, request_id: int) -> OpenRequest:
    row = AccessRequest.objects.filter(metalake_id=top.id, pk=request_id).select_related("user").first()
    one = _opened(actor, row, by_ids([row.object_id]).get(row.object_id)) if row else None
    if row is None or one is None:
        raise none_such()
    if row.state != OPEN:
        raise Conflict(f"The request was {row.state} by {row.decided_by} meanwhile.", kind="request")
    return one


def propose(actor: Actor, one: OpenRequest, ends: datetime) -> Proposal:
    """The plan that approving would apply. Raises Invalid for a former member and an end that is past."""
    _require_member(one)
    if ends <= timezone.now():
        raise Invalid("The end that was asked for is past: choose another.", kind="ends")
    entries = {each: Given(Effect.ALLOW, None, ends) for each in one.privileges}
    place = Place(one.on.kind, one.path)
    asked = proposals.AccessRequest((Whom("user", one.who),), place, entries, answers=one.row.pk)
    return proposals.propose(actor, one.on.metalake.name, asked)


def _require_member(one: OpenRequest) -> None:
    if not one.is_member:
        top = policy.describe(one.on.top)
        raise Invalid(f"{one.who} is no member of {top} any more, so nothing can be granted: decline it.", kind="user")


def approve(actor: Actor, one: OpenRequest, ends: datetime, token: str) -> Applied:
    """Apply the plan that was shown; without one (`token` is ""), only close what is effective by now.

    Each audit row of the plan has who asked and what for. Raises the errors of apply_plan, Invalid if there is
    something to apply and no plan of it, and Conflict if the request was decided meanwhile or the plan is of another.
    """
    request_id, metalake = one.row.pk, one.on.metalake.name

    def settle(actor: Actor, top: Located, answers: int | None) -> dict[str, Any]:
        if answers != request_id:
            raise Conflict("The plan is not of this request; look at it again.", kind="plan")
        now = _load(actor, top, request_id)
        row = now.row
        close(actor, row, AccessRequest.State.APPROVED)
        publish_events(about(actor, top, "access.request_approved", row, now.on.full_name, user=one.who))
        return {"request": request_id, "requestedBy": one.who, "purpose": row.purpose}

    if token:
        _require_member(one)
        return apply.apply_plan(actor, metalake, token, settle)
    proposal = propose(actor, one, ends)
    if proposal.asks or proposal.planned:
        raise Invalid(proposal.reason)
    change(actor, metalake, settle, request_id, kind="request")
    return Applied([], None)


def decline(actor: Actor, metalake: str, request_id: int, reason: str) -> None:
    """Decline with a sentence for the requester. Raises NotFound, Conflict, and Invalid without a sentence."""
    reason = reason.strip()
    check_text(reason, "Say why: the requester reads it.")

    def act(actor: Actor, top: Located) -> None:
        now = _load(actor, top, request_id)
        close(actor, now.row, AccessRequest.State.DECLINED, reason)
        details = {"user": now.who, "reason": reason}
        publish_events(about(actor, top, "access.request_declined", now.row, now.on.full_name, **details))

    change(actor, metalake, act, kind="request")
