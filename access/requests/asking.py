"""Asking for access: the smallest change that would turn a no into a yes, and a request for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone

from access.explain import explanations
from access.explain.explanations import Wanted
from access.explain.reach import fits, type_of
from authz import operations, policy, throttling
from authz.actor import Actor
from authz.models import AccessRequest
from authz.objects import by_ids
from authz.services import grant_entries
from authz.services.change import change, enter, enter_with, event, publish_events
from authz.services.grant_entries import Given
from metalake.errors import Conflict, Invalid, NotFound
from metalake.events import Event
from metalake.full_names import dotted, undotted
from metalake.kinds import grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

MOST_OPEN = 5  # requests of one person in a metalake
MOST_ASKED = 20  # requests of one person in 15 minutes, also those withdrawn since
MOST_SHOWN = 50
LONGEST = 500  # characters of a purpose, and of a reason
OPEN, WITHDRAWN = AccessRequest.State.OPEN, AccessRequest.State.WITHDRAWN


class Offer(NamedTuple):
    """The privileges on the object whose grant would be enough; if there are none, `says` why not."""

    privileges: tuple[Privilege, ...]
    says: str = ""


@dataclass(frozen=True)
class Mine:
    """A request as its requester sees it; `on` is None if the object is gone or hidden from them now."""

    row: AccessRequest
    on: Located | None


def smallest_change(actor: Actor, target: Located, wanted: Wanted) -> Offer:
    """What the actor would ask for, to do this on an object. Raises NotFound for a hidden object."""
    explanation = explanations.explain(actor, target.metalake.name, target, wanted, None, None)
    if explanation.allowed:
        return Offer((), "You may do this already.")
    sets = explanation.changes or ()
    for steps in sets:
        # Missing USE_* are granted along by whoever approves.
        asked = [step.privilege for step in steps if step.on and step.on.id == target.id and step.privilege]
        if asked and all(step.change == "grant" for step in steps):
            return Offer(tuple(asked))
    return Offer((), " ".join(["No grant alone is enough.", *(step.says for step in (sets[0] if sets else ()))]))


def can_be_asked(target: Located) -> list[Privilege]:
    """The privileges that can be granted on the object."""
    catalog_type = type_of(target)
    return [each for each in Privilege if target.kind in grantable_on(each) and fits(each, catalog_type)]


def ask(
    actor: Actor, target: Located, privileges: Collection[Privilege], purpose: str, ends: datetime
) -> AccessRequest:
    """Ask for privileges on an object that the actor sees, until `ends`.

    Raises NotFound for a hidden object like for a missing one, Invalid for what cannot be asked, what the actor may do
    already, what a DENY takes, and for too many requests; TooManyRequests for too many in a short time.
    """
    enter_with(actor, target)
    purpose = purpose.strip()
    entries = {each: Given(Effect.ALLOW, None, ends) for each in privileges}
    if not entries:
        raise Invalid("Name at least one privilege.", kind="privilege")
    for each in entries:
        grant_entries.check_kind(each, target.kind)
    grant_entries.check_spans(entries, timezone.now())
    check_text(purpose, "Say what you need it for.")
    limit = throttling.count_of(MOST_ASKED, "access request", str(actor.id))
    throttling.add([limit], "You asked for access too often.")
    wanted = sorted(entries)
    return change(
        actor, target.metalake.name, _ask, target.id, wanted, purpose, ends, kind="object", on=lambda: [target.id]
    )


def check_text(text: str, otherwise: str) -> None:
    """Raise Invalid for a text that is empty, too long, or has a NUL, which PostgreSQL does not store."""
    if not text or "\x00" in text:
        raise Invalid(otherwise, kind="text")
    if len(text) > LONGEST:
        raise Invalid(f"At most {LONGEST} characters.", kind="text")


def _ask(
    actor: Actor, top: Located, object_id: int, privileges: list[Privilege], purpose: str, ends: datetime
) -> AccessRequest:
    target = by_ids([object_id]).get(object_id)
    if target is None or not policy.sees(actor, target):
        raise NotFound("There is no such object.", kind="object")
    on = policy.describe(target)
    rights = policy.rights_on(actor, target)
    usable = [each for each in privileges if policy.decide(operations.use_of(each, target.kind), rights, target.kind)]
    if usable:
        raise Invalid(f"You may use {', '.join(usable)} on {on} already.", kind="privilege")
    if denied := [each for each in privileges if rights.denies(each)]:
        says = f"A DENY of {', '.join(denied)} is in force on {on} or above it: a grant alone does not help."
        raise Invalid(says, kind="privilege")
    pending = list(AccessRequest.objects.filter(metalake_id=top.id, user_id=actor.id, state=OPEN))
    if any(row.object_id == target.id and {*row.privileges} & {*privileges} for row in pending):
        raise Invalid(f"You have asked for this on {on} already, and nobody has decided yet.")
    if len(pending) >= MOST_OPEN:
        raise Invalid(f"{MOST_OPEN} requests of yours wait in metalake {top.name}: withdraw one, or wait.")
    row = AccessRequest.objects.create(
        metalake_id=top.id,
        user_id=actor.id,
        object_id=target.id,
        kind=target.kind,
        full_name=dotted(target.full_name),
        privileges=[each.value for each in privileges],
        purpose=purpose,
        ends_at=ends,
    )
    publish_events(about(actor, top, "access.requested", row, target.full_name, ends=ends.isoformat(), purpose=purpose))
    return row


def about(actor: Actor, top: Located, name: str, row: AccessRequest, full_name: Sequence[str], **details: Any) -> Event:
    """An event about a request, which is audited under its object, by a name that the actor knows."""
    more = {"request": row.pk, "privileges": row.privileges, **details}
    return event(actor, top, name, row.kind, row.object_id, full_name, (), **more)


def requests_of(actor: Actor, metalake: str) -> list[Mine]:
    """The actor's latest requests in a metalake, open ones first, at most MOST_SHOWN."""
    top = enter(actor, metalake)
    rows = list(AccessRequest.objects.filter(metalake_id=top.id, user_id=actor.id).order_by("-id")[:MOST_SHOWN])
    located = by_ids(row.object_id for row in rows)
    mine = [Mine(row, _seen(actor, located.get(row.object_id))) for row in rows]
    return sorted(mine, key=lambda one: one.row.state != OPEN)


def _seen(actor: Actor, on: Located | None) -> Located | None:
    return on if on is not None and policy.sees(actor, on) else None


def withdraw(actor: Actor, metalake: str, request_id: int) -> None:
    """Take one's own request back. Raises NotFound, and Conflict if it was decided."""

    def act(actor: Actor, top: Located) -> None:
        row = AccessRequest.objects.filter(metalake_id=top.id, user_id=actor.id, pk=request_id).first()
        if row is None:
            raise none_such()
        close(actor, row, WITHDRAWN)
        publish_events(about(actor, top, "access.request_withdrawn", row, undotted(row.full_name)))

    change(actor, metalake, act, kind="request")


def none_such() -> NotFound:
    """The error for a request that is missing, or not the actor's to see."""
    return NotFound("There is no such request.", kind="request")


def close(actor: Actor, row: AccessRequest, state: AccessRequest.State, reason: str = "") -> None:
    """Set what became of an open request, in a change of rights. Raises Conflict if it is not open any more."""
    if row.state != OPEN:
        raise Conflict(f"The request was {row.state} by {row.decided_by} meanwhile.", kind="request")
    row.state, row.reason = state, reason
    row.decided_at, row.decided_by = timezone.now(), actor.name
    row.save(update_fields=["state", "reason", "decided_at", "decided_by"])
