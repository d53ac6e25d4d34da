"""Writes to a world without transactions: promise, apply, publish or undo, recover.

A write to an outside system is an intent: one transaction promises it and holds its names, calls are made with no lock
held, and one more transaction publishes rows, owner, audit and event, the only moment at which anything shows. What a
crash leaves is taken up again by `sweep`. An answer that is lost is read back, never guessed. Whoever lost an intent
to another notices by its fence and stops. Source: security plan, section 4.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from authz import snapshot
from authz.policy import Actor
from authz.writing import write
from catalogs import vault
from catalogs.models import Catalog, Intent, Reservation
from catalogs.providers import outcomes, remote
from catalogs.providers.external import ExternalProvider
from catalogs.providers.outcomes import Outcome
from catalogs.providers.registry import provider_for
from metalake import errors
from metalake.context import request_id
from metalake.errors import AlreadyExists, Conflict, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable
from metalake.events import Event, record
from metalake.privileges import Kind

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=remote.TOTAL + 5)
READ_BACK = 8.0  # seconds to learn what a lost answer was
LATE = timedelta(seconds=2 * remote.TOTAL)  # after which a call that was on its way has arrived
WAIT = 2.0  # seconds to wait for a name that another write holds
MAX_ATTEMPTS = 10
MAX_BACKOFF = timedelta(minutes=5)
KEPT = timedelta(days=7)

PLANNED, DOING, UNKNOWN, DONE, ADOPTED = "planned", "doing", "unknown", "done", "adopted"
UNDONE, LEFT = "undone", "left"
BEGUN = (DOING, UNKNOWN, DONE)


def step(verb: str, *, may_adopt: bool = False, **arguments: Any) -> dict[str, Any]:
    """One remote call of an intent; `may_adopt` takes what is there already for what it would make."""
    said = {"status": PLANNED, "result": None, "late": False}  # late: it may arrive after it was undone
    return {"verb": verb, "arguments": arguments, "may_adopt": may_adopt} | said


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


class Fenced(Exception):
    """Another process has taken the intent over."""


class Unsettled(Exception):
    """What the outside system did cannot be told now, or what it did cannot be published yet."""


class Held(Conflict):
    """Another write holds the name."""


def point(name: str) -> None:
    """A place where a crash must lose nothing; the tests stop here."""


# Promise


def carry(actor: Actor, decide: Callable[[Actor], Draft]) -> Intent:
    """Make the write that `decide` drafts, in a transaction that also checks the rights for it.

    Raises what made it fail, undone now or by the sweeper; Held where another write has the name; OutcomeUnknown where
    the outside system's answer is lost and not yet known, which the sweeper settles.
    """
    intent = _promise(actor, decide)
    point("promised")
    _hand_over(intent)
    try:
        intent.refresh_from_db()
    except Intent.DoesNotExist:
        raise NotFound("The catalog was dropped meanwhile.", kind="catalog") from None
    except DatabaseError as failure:
        raise _not_known_yet(intent) from failure
    if intent.state == Intent.State.COMMITTED:
        return intent
    if intent.error:
        raise error_from_json(intent.error)
    raise _not_known_yet(intent)


def _not_known_yet(intent: Intent) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"Whether {intent.verb.replace('_', ' ')} {intent.full_name} happened is not known yet; it is settled within "
        "a minute. Look before writing again.",
        kind="catalog",
    )


def _promise(actor: Actor, decide: Callable[[Actor], Draft]) -> Intent:
    deadline = time.monotonic() + WAIT

    def act(actor: Actor) -> Intent | None:
        draft = decide(actor)
        taken = Q(scope_id__in=draft.must_be_still)
        for scope, slot, name in (*draft.names, *draft.must_stay):
            taken |= Q(scope_id=scope, slot=slot, name=name)
        if Reservation.objects.filter(taken).exists():
            return None
        intent = Intent.objects.create(
            id=draft.id,
            verb=draft.verb,
            in_catalog_id=draft.catalog_id,
            actor_id=actor.id,
            actor_name=actor.name,
            standing={"claimed": actor.claimed, "active": actor.active},
            request_id=request_id.get(),
            full_name=draft.full_name,
            arguments=draft.arguments,
            steps=draft.steps,
            lease_until=timezone.now() + LEASE,
        )
        Reservation.objects.bulk_create(
            Reservation(intent=intent, scope_id=scope, slot=slot, name=name) for scope, slot, name in draft.names
        )
        return intent

    while True:
        intent = write(actor, act, kind="catalog")
        if intent is not None:
            return intent
        if time.monotonic() > deadline:
            raise Held("Another write to this object is under way; try again in a moment.", kind="catalog")
        time.sleep(0.05)


Send = Callable[[int, int], None]
_send: list[Send] = []


def send_with(send: Send) -> None:
    """Set what hands an intent to a worker and waits for it; the tasks do at start."""
    _send[:] = [send]


def _hand_over(intent: Intent) -> None:
    if not settings.METALAKE_BROKER_URL:
        settle(intent.pk, intent.fence)
        return
    try:
        _send[0](intent.pk, intent.fence)
    except ProviderUnavailable as failure:  # it was not sent
        not_sent = failure
        settle(intent.pk, intent.fence, lambda taken: _give_up(taken, not_sent))


# Apply and publish


def settle(intent_id: int, fence: int, act: Callable[[Intent], None] | None = None) -> None:
    """Bring an intent to an end, or as far as it goes now. Whoever comes with an old fence does nothing."""
    try:
        live = Intent.objects.filter(state__in=[Intent.State.OPEN, Intent.State.UNDOING])
        intent = _take(live, intent_id, fence)
        if intent is not None:
            _carry_on(intent, act)
    except DatabaseError:
        log.exception("intent %s is left to the sweeper", intent_id)


def _take(among: QuerySet[Intent], intent_id: int, fence: int, **fields: Any) -> Intent | None:
    """The intent under a new fence, which shuts out whoever had it; None where another was faster."""
    held = among.filter(pk=intent_id, fence=fence)
    if not held.update(fence=fence + 1, lease_until=timezone.now() + LEASE, **fields):
        return None
    return Intent.objects.select_related("in_catalog").filter(pk=intent_id, fence=fence + 1).first()


def _carry_on(intent: Intent, act: Callable[[Intent], None] | None = None) -> None:
    """Do what is next, and whatever goes wrong leave the intent so that the sweeper comes back to it."""
    act = act or (_go_forward if intent.state == Intent.State.OPEN else _undo)
    try:
        act(intent)
    except Fenced:
        log.warning("intent %s was taken over by another process", intent.pk)
        _look_once_more(intent)
    except (Unsettled, MetalakeError) as failure:
        _come_back(intent, str(failure))
    except Exception as bug:
        log.exception("intent %s failed; it is tried again", intent.pk)
        _come_back(intent, type(bug).__name__)


def _go_forward(intent: Intent) -> None:
    try:
        actor = actor_of(intent)
        if not any(each["status"] != PLANNED for each in intent.steps):
            _works[intent.verb].allowed(actor, intent)
        provider = provider_of(intent.in_catalog)
        for number, each in enumerate(intent.steps):
            if each["status"] in (DONE, ADOPTED):
                continue
            if not intent.attempts:
                _apply(provider, intent, number)
            elif _ends_a_move(number, each) and each["status"] in BEGUN:
                _drop_again(provider, intent, number)
            else:
                _recognise(provider, intent, number)
        point("applied")
        _publish(actor, intent)
        point("published")
    except OutcomeUnknown:
        raise
    except MetalakeError as refusal:
        _give_up(intent, refusal)


def _apply(provider: ExternalProvider, intent: Intent, number: int) -> None:
    each = intent.steps[number]
    _mark(intent, number, DOING)
    point(f"before {number}")
    try:
        outcome, each["result"] = Outcome.DONE, remote.run(provider, each["verb"], each["arguments"])
    except OutcomeUnknown as lost:
        _mark(intent, number, UNKNOWN)
        outcome, each["result"] = _read_back(provider, intent, number)
        if outcome is Outcome.NOT_DONE:
            raise ProviderUnavailable(f"{lost.message} It was not done; try again.", kind=lost.kind) from lost
        if outcome is Outcome.OTHERS and not each["may_adopt"]:
            raise AlreadyExists(f"{intent.full_name} already exists.", kind=lost.kind) from lost
    except MetalakeError as refusal:
        outcome = Outcome.NOT_DONE
        if isinstance(refusal, (AlreadyExists, NotFound)):  # an earlier try, within the provider, may have done it
            outcome, each["result"] = _look(provider, each, intent)
        if outcome is Outcome.NOT_DONE or (outcome is Outcome.OTHERS and not each["may_adopt"]):
            each["result"] = None
            _mark(intent, number, PLANNED)  # it certainly did nothing
            raise
    point(f"after {number}")
    _mark(intent, number, DONE if outcome is Outcome.DONE else ADOPTED)
    point(f"marked {number}")


def _read_back(provider: ExternalProvider, intent: Intent, number: int) -> tuple[Outcome, Any]:
    """What became of a call whose answer was lost.

    A creation that arrives later is found by its marker and undone; what cannot be undone is given time to arrive.
    """
    each = intent.steps[number]
    deadline, pause = time.monotonic() + READ_BACK, 0.2
    while True:
        is_late = time.monotonic() + pause > deadline
        try:
            outcome, found = _look(provider, each, intent)
        except Unsettled:
            if is_late:
                raise
        else:
            if outcome is not Outcome.NOT_DONE or each["verb"] in outcomes.CREATIONS:
                return outcome, found
            if is_late and _ends_a_move(number, each):
                raise Unsettled(f"{provider.label} did not say what became of {each['verb']}.")
            if is_late:
                return outcome, found
        time.sleep(pause)
        pause *= 2


def _ends_a_move(number: int, each: dict[str, Any]) -> bool:
    """The drop that follows a copy: once begun it may arrive at any time, so the copy is never taken back."""
    return number > 0 and each["verb"] in outcomes.DROPS


def _drop_again(provider: ExternalProvider, intent: Intent, number: int) -> None:
    """A drop names the identity of what it drops, so it may be made twice."""
    each = intent.steps[number]
    _mark(intent, number, DOING)
    point(f"before {number} again")
    try:
        remote.run(provider, each["verb"], each["arguments"])
    except NotFound:
        pass
    except MetalakeError as failure:
        raise Unsettled(failure.message) from failure
    _mark(intent, number, DONE)


def _recognise(provider: ExternalProvider, intent: Intent, number: int) -> None:
    """After a crash: go on from a step only if it is there; nothing is created or altered a second time."""
    outcome, found = _look(provider, intent.steps[number], intent)
    if outcome is not Outcome.DONE:
        raise ProviderUnavailable(f"{provider.label} was not reached before the server stopped; try again.")
    intent.steps[number]["result"] = found
    _mark(intent, number, DONE)
    point(f"recognised {number}")


def _look(provider: ExternalProvider, each: dict[str, Any], intent: Intent) -> tuple[Outcome, Any]:
    try:
        return outcomes.look(provider, each["verb"], each["arguments"], str(intent.pk))
    except (ProviderUnavailable, OutcomeUnknown) as failure:
        raise Unsettled(failure.message) from failure


def _publish(actor: Actor, intent: Intent) -> None:
    """Raises what forbids it, and Unsettled where it may be tried again."""

    def act(actor: Actor) -> None:
        held = Intent.objects.select_for_update().filter(pk=intent.pk, fence=intent.fence, state=Intent.State.OPEN)
        if not held.values_list("pk", flat=True):
            raise Fenced
        point("publishing")
        intent.reservations.all().delete()  # what is published below is no longer on its way
        token = request_id.set(intent.request_id)
        try:
            _works[intent.verb].publish(actor, intent)
        finally:
            request_id.reset(token)
        _save(intent, state=Intent.State.COMMITTED, ended_at=timezone.now(), lease_until=None)
        point("committing")

    try:
        write(actor, act, kind="catalog")
    except (Conflict, ProviderUnavailable) as failure:  # others were in the way, or the database
        raise Unsettled(failure.message) from failure


def _mark(intent: Intent, number: int, status: str) -> None:
    """Write down where the intent is, and keep it for as long as one more call takes. Raises Fenced."""
    intent.steps[number]["status"] = status
    _save(intent, steps=intent.steps, lease_until=timezone.now() + LEASE)


def _save(intent: Intent, **fields: Any) -> None:
    if not Intent.objects.filter(pk=intent.pk, fence=intent.fence).update(**fields):
        raise Fenced


# Undo and recover


def _give_up(intent: Intent, reason: MetalakeError) -> None:
    intent.state, intent.error = Intent.State.UNDOING, error_as_json(reason)
    _save(intent, state=intent.state, error=intent.error, lease_until=timezone.now() + LEASE)
    point("giving up")
    _undo(intent)


def _undo(intent: Intent) -> None:
    """Take back what is certainly ours and nobody uses, innermost first; leave the rest and say so.

    Also of an intent that has ended: a call that was on its way may have arrived since.
    """
    for number in reversed(range(len(intent.steps))):
        each = intent.steps[number]
        if each["status"] not in BEGUN and not each["late"]:
            continue
        each["late"] |= each["status"] in (DOING, UNKNOWN)
        point(f"undoing {number}")
        try:
            is_gone = outcomes.undo(provider_of(intent.in_catalog), each, str(intent.pk))
        except MetalakeError as failure:
            raise Unsettled(failure.message) from failure
        point(f"undone {number}")
        _mark(intent, number, UNDONE if is_gone else LEFT)
    _abort(intent)
    point("aborted")


def _abort(intent: Intent) -> None:
    leaves = any(each["status"] == LEFT for each in intent.steps)
    state = Intent.State.RESIDUE if leaves else Intent.State.ABORTED
    if intent.ended_at is not None:
        _save(intent, state=state, lease_until=None)
        return
    now = timezone.now()
    looks_again = now + LATE if any(each["late"] for each in intent.steps) else None
    with transaction.atomic():
        intent.reservations.all().delete()
        _save(intent, state=state, ended_at=now, lease_until=looks_again)
        record(_aborted(intent, leaves))
        point("aborting")


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


def _come_back(intent: Intent, why: str) -> None:
    stuck = {"state": Intent.State.STUCK} if intent.attempts >= MAX_ATTEMPTS else {}
    due = timezone.now() + min(timedelta(seconds=2**intent.attempts), MAX_BACKOFF)
    mine = Intent.objects.filter(pk=intent.pk, fence=intent.fence).exclude(state=Intent.State.COMMITTED)
    if mine.update(lease_until=due, last_failure=why[:1000], **stuck) and stuck:
        log.error("intent %s needs an operator: %s", intent.pk, why)


def sweep() -> int:
    """Take up, one by one, what crashed or could not be settled; returns how many intents were taken up."""
    started, taken = timezone.now(), 0
    while (intent := _claim(started)) is not None:
        taken += 1
        point("claimed")
        try:
            _carry_on(intent)
        except DatabaseError:
            log.exception("intent %s is left to the next round", intent.pk)
    Intent.objects.filter(ended_at__lt=started - KEPT, lease_until=None).delete()
    return taken


def _claim(before: datetime) -> Intent | None:
    """One that was due then, by a new fence: sweepers share the work, and a sleeper is shut out."""
    settled = [Intent.State.STUCK, Intent.State.COMMITTED]
    with transaction.atomic():
        due = Intent.objects.filter(lease_until__lte=before).exclude(state__in=settled)
        first = due.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
        for row in first.order_by("lease_until")[:1]:
            return _take(due, row.pk, row.fence, attempts=F("attempts") + 1)
    return None


def retry(intent: Intent) -> None:
    """An operator's word that a stuck intent may be tried again."""
    Intent.objects.filter(pk=intent.pk, state=Intent.State.STUCK).update(
        state=Intent.State.UNDOING if intent.error else Intent.State.OPEN, attempts=1, lease_until=timezone.now()
    )


def provider_of(catalog: Catalog) -> ExternalProvider:
    provider = provider_for(catalog.provider, catalog.pk, vault.properties_of(catalog.pk))
    assert isinstance(provider, ExternalProvider)
    return provider


def actor_of(intent: Intent) -> Actor:
    """Who promised it, with the rights they have now."""
    active = intent.standing.get("active")
    return Actor(
        id=intent.actor_id,
        name=intent.actor_name,
        policy=snapshot.latest(),
        claimed=tuple(intent.standing.get("claimed") or ()),
        active=None if active is None else tuple(active),
    )


def error_as_json(error: MetalakeError) -> dict[str, Any]:
    said = {"class": type(error).__name__, "message": error.message, "kind": error.kind}
    if isinstance(error, ProviderUnavailable):
        said |= {"retryable": error.retryable, "retry_after": error.retry_after}
    return said


def error_from_json(said: dict[str, Any]) -> MetalakeError:
    error = getattr(errors, said["class"], Conflict)(said["message"], kind=said["kind"])
    if isinstance(error, ProviderUnavailable):
        error.retryable, error.retry_after = said["retryable"], said["retry_after"]
    return error
