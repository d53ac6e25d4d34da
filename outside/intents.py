"""Two-phase writes to systems without transactions: promise, apply, publish or undo, recover.

A write to an outside system is an intent (a saga). One transaction stores it and reserves its names; then the remote
calls run without any lock; a second transaction publishes rows, owner, audit and event, which makes the write visible.
After a crash the sweeper resumes it (outside/recovery.py). If an answer is lost, the outcome is read back, never
guessed. The fencing token stops a process whose intent was taken over. Reasons: docs/decisions/outside-catalogs.md.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from authz.actor import Actor, actor_from
from authz.callers.accounts import account_of
from authz.transactions import write
from catalogs.lookup import refreshed_at
from catalogs.models import Intent, Reservation
from metalake import errors, leases
from metalake.errors import Conflict, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable
from metalake.events import Event, record
from metalake.kinds import Kind
from metalake.leases import TakenOver
from metalake.lineage import Address
from metalake.request_context import for_request, request_id
from outside import steps, worker_calls
from outside.steps import ADOPTED as ADOPTED
from outside.steps import LEASE, OutcomePending, Undecidable, save
from outside.steps import step as step
from providers import remote

log = logging.getLogger(__name__)

LATE = timedelta(seconds=2 * remote.TOTAL)  # by then, any call in flight has arrived
WAIT = 2.0  # seconds to wait for a name that another write has reserved
MAX_ATTEMPTS = 10
MAX_BACKOFF = timedelta(minutes=5)

Name = tuple[int, str, str]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A write to promise; `names` to reserve are (container id, slot, name)."""

    id: int
    verb: str
    catalog_id: int
    full_name: str
    names: list[Name]
    steps: list[dict[str, Any]]
    arguments: dict[str, Any] = field(default_factory=dict)
    must_stay: list[Name] = field(default_factory=list)  # no other write may have reserved these
    must_be_still: list[int] = field(default_factory=list)  # no other write may have reserved a name in these


@dataclass(frozen=True)
class Work:
    """A verb's callbacks: `publish` writes the rows in the last transaction; `allowed` re-checks rights beforehand."""

    publish: Callable[[Actor, Intent], object]
    allowed: Callable[[Actor, Intent], object]  # raises


_works: dict[str, Work] = {}


def register(verb: str, work: Work) -> None:
    _works[verb] = work


class NameReserved(Conflict):
    """Another write has reserved the name."""


# Promise


def carry(
    actor: Actor, decide: Callable[[Actor], Draft], *, holds: Callable[[], object], at: Address | None = None
) -> Intent:
    """Carry out the write that `decide` drafts, and re-checks the rights for, in a transaction.

    `holds` locks the write's rows before `decide` reads them; the object at address `at` is re-read then, together
    with the policy. Raises the error that failed the write, which is undone now or by the sweeper; NameReserved if
    another write has the name; OutcomeUnknown if the system's answer was lost and cannot be read back yet: the sweeper
    settles that.
    """
    intent = _promise(actor, decide, holds, at)
    steps.point("promised")
    if settings.METALAKE_BROKER_URL:
        _hand_over(intent)
    else:
        _settle_here(intent)
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


def _promise(actor: Actor, decide: Callable[[Actor], Draft], holds: Callable[[], object], at: Address | None) -> Intent:
    deadline = time.monotonic() + WAIT
    refresh = partial(refreshed_at, at) if at else None

    def act(actor: Actor) -> Intent | NameReserved:
        draft = decide(actor)
        reserved = Q(scope_id__in=draft.must_be_still)
        for scope, slot, name in (*draft.names, *draft.must_stay):
            reserved |= Q(scope_id=scope, slot=slot, name=name)
        if Reservation.objects.filter(reserved).exists():
            kind = draft.verb.rpartition("_")[2]
            return NameReserved(f"Another write to this {kind} is under way; try again in a moment.", kind=kind)
        arguments, calls = json.loads(json.dumps([draft.arguments, draft.steps]))  # as another process will read them
        intent = Intent.objects.create(
            id=draft.id,
            verb=draft.verb,
            in_catalog_id=draft.catalog_id,
            actor_id=account_of(actor),
            actor_name=actor.name,
            standing=actor.standing,
            request_id=request_id.get(),
            full_name=draft.full_name,
            arguments=arguments,
            steps=calls,
            lease_until=leases.over(LEASE),
        )
        Reservation.objects.bulk_create(
            Reservation(intent=intent, scope_id=scope, slot=slot, name=name) for scope, slot, name in draft.names
        )
        return intent

    while True:
        promised = write(actor, act, holds=holds, kind="catalog", refresh=refresh)
        if isinstance(promised, Intent):
            return promised
        if time.monotonic() > deadline:
            raise promised
        time.sleep(0.05)


def _hand_over(intent: Intent) -> None:
    try:
        worker_calls.settle(intent)
    except OutcomeUnknown:
        pass  # the intent's row has its progress
    except ProviderUnavailable as failure:  # it was not sent
        not_sent = failure
        settle(intent.pk, intent.fence, lambda current: _give_up(current, not_sent))


# Apply and publish


def _settle_here(intent: Intent) -> None:
    """Settle an intent that this process just promised, as far as possible, under the same lease."""
    try:
        carry_on(intent)
    except DatabaseError:
        log.exception("intent %s is left to the sweeper", intent.pk)


def settle(intent_id: int, fence: int, act: Callable[[Intent], None] | None = None) -> bool:
    """Settle an intent as far as possible now. False, without doing anything, if the fence is outdated."""
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
    """The intent under a new fence, which stops its previous holder; None if another process was faster."""
    if not leases.take(among, intent_id, fence, LEASE, **fields):
        return None
    return Intent.objects.select_related("in_catalog").filter(pk=intent_id, fence=fence + 1).first()


def carry_on(intent: Intent, act: Callable[[Intent], None] | None = None) -> None:
    """Advance an intent; after any failure, leave it for the sweeper to retry."""
    act = act or (_go_forward if intent.state == Intent.State.OPEN else _undo)
    try:
        act(intent)
    except TakenOver:
        log.warning("intent %s was taken over by another process", intent.pk)
        _undo_late_calls(intent)
    except Undecidable as never:
        _retry_later(intent, str(never), for_good=True)
    except (OutcomePending, MetalakeError) as failure:
        _retry_later(intent, str(failure))
    except Exception as bug:
        log.exception("intent %s failed; it is tried again", intent.pk)
        _retry_later(intent, type(bug).__name__)


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
    """Publish the intent's rows. Raises what forbids it, and OutcomePending if a retry may succeed."""

    def act(actor: Actor) -> None:
        mine = leases.mine(intent).filter(state=Intent.State.OPEN)
        if not mine.update(state=Intent.State.COMMITTED, ended_at=timezone.now(), lease_until=None):
            raise TakenOver
        steps.point("publishing")
        intent.reservations.all().delete()  # the rows published below replace the reservations
        with for_request(intent.request_id):
            _works[intent.verb].publish(actor, intent)
        steps.point("committing")

    try:
        # Without a lock: while its name is reserved, no other write renames, moves or drops the object.
        write(actor, act, holds=None, kind="catalog", waits=False)
    except (Conflict, ProviderUnavailable) as failure:  # contention, or the database
        raise OutcomePending(failure.message) from failure


# Undo and recover


def _give_up(intent: Intent, reason: MetalakeError) -> None:
    intent.state, intent.error = Intent.State.UNDOING, errors.as_json(reason)
    save(intent, state=intent.state, error=intent.error, lease_until=leases.over(LEASE))
    steps.point("giving up")
    _undo(intent)


def _undo(intent: Intent) -> None:
    """Undo an intent's calls, even if it has ended: a call in flight may have arrived since."""
    steps.take_back(intent)
    abort(intent)
    steps.point("aborted")


def abort(intent: Intent) -> None:
    """End an intent whose calls are undone, and release its names."""
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


def _undo_late_calls(intent: Intent) -> None:
    """Have an ended intent undone once more: the process that lost it may have had a call in flight."""
    ended = Intent.objects.filter(pk=intent.pk, state__in=[Intent.State.ABORTED, Intent.State.RESIDUE])
    ended.update(lease_until=timezone.now())


def _retry_later(intent: Intent, why: str, *, for_good: bool = False) -> None:
    """Have the sweeper retry the intent, with exponential backoff up to MAX_BACKOFF.

    After MAX_ATTEMPTS, or at once with `for_good`, it is stuck until an operator decides. An intent that has ended
    never gets stuck: it only looks for late calls, until the system answers.
    """
    gives_up = (for_good or intent.attempts >= MAX_ATTEMPTS) and intent.ended_at is None
    stuck = {"state": Intent.State.STUCK} if gives_up else {}
    due = timezone.now() + min(timedelta(seconds=2 ** min(intent.attempts, MAX_ATTEMPTS)), MAX_BACKOFF)
    mine = leases.mine(intent).exclude(state=Intent.State.COMMITTED)
    if mine.update(lease_until=due, last_failure=why[:1000], **stuck) and stuck:
        log.error("intent %s needs an operator: %s", intent.pk, why)


def promised_by(intent: Intent) -> Actor:
    """The actor who promised the intent, with their current rights."""
    return actor_from({"id": intent.actor_id, "name": intent.actor_name, **intent.standing})
