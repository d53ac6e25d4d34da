"""Writes to a world without transactions: promise, apply, publish or undo, recover.

A write to an outside system is an intent: one transaction promises it and holds its names, calls are made with no lock
held, and one more transaction publishes rows, owner, audit and event, the only moment at which anything shows. What a
crash leaves is taken up again by the sweeper (outside/sweeping.py). An answer that is lost is read back, never guessed.
Whoever lost an intent to another notices by its fence and stops. Why so: docs/decisions/outside-catalogs.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from authz.actor import Actor, actor_from
from authz.callers.accounts import account_of
from authz.writing import write
from catalogs.models import Intent, Reservation
from metalake import errors, leases
from metalake.context import for_request, request_id
from metalake.errors import Conflict, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable
from metalake.events import Event, record
from metalake.kinds import Kind
from metalake.leases import TakenOver
from outside import steps, workers
from outside.steps import ADOPTED as ADOPTED
from outside.steps import LEASE, Undecidable, Unsettled, save
from outside.steps import step as step
from providers import remote

log = logging.getLogger(__name__)

LATE = timedelta(seconds=2 * remote.TOTAL)  # after which a call that was on its way has arrived
WAIT = 2.0  # seconds to wait for a name that another write holds
MAX_ATTEMPTS = 10
MAX_BACKOFF = timedelta(minutes=5)

Name = tuple[int, str, str]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What is to be promised; `names` are held as (container's id, slot, name)."""

    id: int
    verb: str
    catalog_id: int
    full_name: str
    names: list[Name]
    steps: list[dict[str, Any]]
    arguments: dict[str, Any] = field(default_factory=dict)
    must_stay: list[Name] = field(default_factory=list)  # nobody may be dropping these
    must_be_still: list[int] = field(default_factory=list)  # nothing may be on its way into these containers


@dataclass(frozen=True)
class Work:
    """`publish` writes the rows in the last transaction; `allowed` asks the rights again before the first call."""

    publish: Callable[[Actor, Intent], object]
    allowed: Callable[[Actor, Intent], object]  # raises


_works: dict[str, Work] = {}


def register(verb: str, work: Work) -> None:
    _works[verb] = work


class NameReserved(Conflict):
    """Another write holds the name."""


# Promise


def carry(actor: Actor, decide: Callable[[Actor], Draft], *, holds: Callable[[], object]) -> Intent:
    """Make the write that `decide` drafts, in a transaction that also checks the rights for it.

    `holds` waits for whoever writes to the rows that it is about, before `decide` looks at them.
    Raises what made it fail, undone now or by the sweeper; Held where another write has the name; OutcomeUnknown where
    the outside system's answer is lost and not yet known, which the sweeper settles.
    """
    intent = _promise(actor, decide, holds)
    steps.point("promised")
    _hand_over(intent)
    try:
        intent.refresh_from_db()
    except Intent.DoesNotExist:
        raise NotFound("The catalog was dropped meanwhile.", kind="catalog") from None
    except DatabaseError as failure:
        raise _not_known_yet(intent) from failure
    if intent.state == Intent.State.COMMITTED:
        return intent
    if intent.error and not steps.may_still_arrive(intent):
        raise errors.from_json(intent.error)
    raise _not_known_yet(intent)


def _not_known_yet(intent: Intent) -> OutcomeUnknown:
    if intent.state == Intent.State.STUCK:
        return OutcomeUnknown(
            f"Whether {intent.verb.replace('_', ' ')} {intent.full_name} happened its system cannot tell; somebody has "
            "to look there, and then give the write up here.",
            kind="catalog",
        )
    return OutcomeUnknown(
        f"Whether {intent.verb.replace('_', ' ')} {intent.full_name} happened is not known yet; it is settled within "
        "a minute. Look before writing again.",
        kind="catalog",
    )


def _promise(actor: Actor, decide: Callable[[Actor], Draft], holds: Callable[[], object]) -> Intent:
    deadline = time.monotonic() + WAIT

    def act(actor: Actor) -> Intent | NameReserved:
        draft = decide(actor)
        reserved = Q(scope_id__in=draft.must_be_still)
        for scope, slot, name in (*draft.names, *draft.must_stay):
            reserved |= Q(scope_id=scope, slot=slot, name=name)
        if Reservation.objects.filter(reserved).exists():
            kind = draft.verb.rpartition("_")[2]
            return NameReserved(f"Another write to this {kind} is under way; try again in a moment.", kind=kind)
        intent = Intent.objects.create(
            id=draft.id,
            verb=draft.verb,
            in_catalog_id=draft.catalog_id,
            actor_id=account_of(actor),
            actor_name=actor.name,
            standing={"claimed": actor.claimed, "active": actor.active},
            request_id=request_id.get(),
            full_name=draft.full_name,
            arguments=draft.arguments,
            steps=draft.steps,
            lease_until=leases.over(LEASE),
        )
        Reservation.objects.bulk_create(
            Reservation(intent=intent, scope_id=scope, slot=slot, name=name) for scope, slot, name in draft.names
        )
        return intent

    while True:
        promised = write(actor, act, holds=holds, kind="catalog")
        if isinstance(promised, Intent):
            return promised
        if time.monotonic() > deadline:
            raise promised
        time.sleep(0.05)


def _hand_over(intent: Intent) -> None:
    try:
        workers.settle(intent)
    except OutcomeUnknown:
        pass  # the row says how far it came
    except ProviderUnavailable as failure:  # it was not sent
        not_sent = failure
        settle(intent.pk, intent.fence, lambda current: _give_up(current, not_sent))


# Apply and publish


def settle(intent_id: int, fence: int, act: Callable[[Intent], None] | None = None) -> bool:
    """Bring an intent to an end, or as far as it goes now. Whoever comes with an old fence does nothing: False."""
    try:
        live = Intent.objects.filter(state__in=[Intent.State.OPEN, Intent.State.UNDOING])
        intent = take(live, intent_id, fence)
        if intent is None:
            return False
        carry_on(intent, act)
    except DatabaseError:
        log.exception("intent %s is left to the sweeper", intent_id)
    return True


def take(among: QuerySet[Intent], intent_id: int, fence: int, **fields: Any) -> Intent | None:
    """The intent under a new fence, which shuts out whoever had it; None where another was faster."""
    if not leases.take(among, intent_id, fence, LEASE, **fields):
        return None
    return Intent.objects.select_related("in_catalog").filter(pk=intent_id, fence=fence + 1).first()


def carry_on(intent: Intent, act: Callable[[Intent], None] | None = None) -> None:
    """Do what is next, and whatever goes wrong leave the intent so that the sweeper comes back to it."""
    act = act or (_go_forward if intent.state == Intent.State.OPEN else _undo)
    try:
        act(intent)
    except TakenOver:
        log.warning("intent %s was taken over by another process", intent.pk)
        _look_once_more(intent)
    except Undecidable as never:
        _come_back(intent, str(never), for_good=True)
    except (Unsettled, MetalakeError) as failure:
        _come_back(intent, str(failure))
    except Exception as bug:
        log.exception("intent %s failed; it is tried again", intent.pk)
        _come_back(intent, type(bug).__name__)


def _go_forward(intent: Intent) -> None:
    try:
        actor = promised_by(intent)
        if not steps.is_begun(intent):
            _works[intent.verb].allowed(actor, intent)
        steps.make(intent)
        steps.point("applied")
        _publish(actor, intent)
        steps.point("published")
    except OutcomeUnknown:
        raise
    except MetalakeError as refusal:
        _give_up(intent, refusal)


def _publish(actor: Actor, intent: Intent) -> None:
    """Raises what forbids it, and Unsettled where it may be tried again."""

    def act(actor: Actor) -> None:
        mine = leases.mine(intent).select_for_update().filter(state=Intent.State.OPEN)
        if not mine.values_list("pk", flat=True):
            raise TakenOver
        steps.point("publishing")
        intent.reservations.all().delete()  # what is published below is no longer on its way
        with for_request(intent.request_id):
            _works[intent.verb].publish(actor, intent)
        save(intent, state=Intent.State.COMMITTED, ended_at=timezone.now(), lease_until=None)
        steps.point("committing")

    try:
        # Found by its id: nobody else renames, moves or drops what the intent has the names of.
        write(actor, act, holds=None, kind="catalog", waits=False)
    except (Conflict, ProviderUnavailable) as failure:  # others were in the way, or the database
        raise Unsettled(failure.message) from failure


# Undo and recover


def _give_up(intent: Intent, reason: MetalakeError) -> None:
    intent.state, intent.error = Intent.State.UNDOING, errors.as_json(reason)
    save(intent, state=intent.state, error=intent.error, lease_until=leases.over(LEASE))
    steps.point("giving up")
    _undo(intent)


def _undo(intent: Intent) -> None:
    """Also of an intent that has ended: a call that was on its way may have arrived since."""
    steps.take_back(intent)
    abort(intent)
    steps.point("aborted")


def abort(intent: Intent) -> None:
    """End what was taken back: its names are free."""
    leaves = any(each["status"] == steps.LEFT for each in intent.steps)
    state = Intent.State.RESIDUE if leaves else Intent.State.ABORTED
    if intent.ended_at is not None:
        save(intent, state=state, lease_until=None)
        return
    now = timezone.now()
    looks_again = now + LATE if any(each["late"] for each in intent.steps) else None
    with transaction.atomic():
        intent.reservations.all().delete()
        save(intent, state=state, ended_at=now, lease_until=looks_again, attempts=0, last_failure="")
        record(_aborted(intent, leaves))
        steps.point("aborting")


def _aborted(intent: Intent, leaves: bool) -> Event:
    error = intent.error or {}
    why = {"reason": error.get("class"), "message": error.get("message"), "leaves": leaves}
    return Event(
        name="intent.aborted",
        actor=intent.actor_name,
        kind=Kind.CATALOG,
        object_id=intent.in_catalog_id,
        full_name=intent.full_name,
        metalake_id=intent.in_catalog.parent_id,
        details={"intent": str(intent.pk), "verb": intent.verb} | why,
        request_id=intent.request_id,
    )


def _look_once_more(intent: Intent) -> None:
    """Whoever lost an intent may have had a call on its way: what it made goes even if its intent has ended since."""
    ended = Intent.objects.filter(pk=intent.pk, state__in=[Intent.State.ABORTED, Intent.State.RESIDUE])
    ended.update(lease_until=timezone.now())


def _come_back(intent: Intent, why: str, *, for_good: bool = False) -> None:
    """After a pause that grows up to MAX_BACKOFF. One that has ended only looks for what came late, and does so until
    the system answers: that needs nobody's word. One that never can be told waits `for_good` until somebody decides.
    """
    gives_up = (for_good or intent.attempts >= MAX_ATTEMPTS) and intent.ended_at is None
    stuck = {"state": Intent.State.STUCK} if gives_up else {}
    due = timezone.now() + min(timedelta(seconds=2 ** min(intent.attempts, MAX_ATTEMPTS)), MAX_BACKOFF)
    mine = leases.mine(intent).exclude(state=Intent.State.COMMITTED)
    if mine.update(lease_until=due, last_failure=why[:1000], **stuck) and stuck:
        log.error("intent %s needs an operator: %s", intent.pk, why)


def promised_by(intent: Intent) -> Actor:
    """Who promised it, with the rights they have now."""
    return actor_from({"id": intent.actor_id, "name": intent.actor_name, **intent.standing})
