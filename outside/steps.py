"""The remote calls of an intent: make each once, read it back if its answer is lost, and undo it.

Progress is stored before and after each call, under the newest fence.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from catalogs import vault
from catalogs.models import LEVELS, Intent, Mirror
from metalake import leases
from metalake.errors import AlreadyExists, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable
from metalake.kinds import Kind, Slot
from providers import outcomes, remote
from providers.base import Provider
from providers.outcomes import Outcome, OutcomeUnknowable
from providers.registry import provider_for
from providers.verbs import VERBS

LEASE = timedelta(seconds=remote.TOTAL + 5)
READ_BACK = 8.0  # seconds to read back the outcome of a lost answer

PLANNED, DOING, UNKNOWN, DONE, ADOPTED = "planned", "doing", "unknown", "done", "adopted"
UNDONE, LEFT = "undone", "left"
BEGUN = (DOING, UNKNOWN, DONE)


def step(verb: str, *, may_adopt: bool = False, **arguments: Any) -> dict[str, Any]:
    """One remote call of an intent; with `may_adopt`, an existing object is adopted instead of created."""
    return {
        "verb": verb,
        "arguments": arguments,
        "may_adopt": may_adopt,
        "status": PLANNED,
        "result": None,
        "answered": False,  # whether the result is the call's own answer, not what was read back
        "late": False,  # whether it may arrive after it was undone
    }


class OutcomePending(Exception):
    """A call's outcome cannot be read back or published yet; to be retried."""


class Undecidable(Exception):
    """A call's outcome can never be read back; an operator has to look there and decide."""


def point(name: str) -> None:
    """A point where a crash must lose nothing; tests replace this to crash here."""


def mark(intent: Intent, number: int, status: str) -> None:
    """Store a step's status, and renew the lease for one more call. Raises TakenOver."""
    intent.steps[number]["status"] = status
    save(intent, steps=intent.steps, lease_until=leases.over(LEASE))


def save(intent: Intent, **fields: Any) -> None:
    """Store fields of the intent. Raises TakenOver."""
    leases.write(intent, **fields)


def make(intent: Intent) -> None:
    """Make the remaining calls; after a crash, no creation or alteration is repeated.

    Raises a call's refusal, OutcomePending, TakenOver.
    """
    provider = provider_of(intent)
    for number, call in enumerate(intent.steps):
        if call["status"] in (DONE, ADOPTED):
            continue
        if not intent.attempts:
            _apply(provider, intent, number)
        elif _ends_a_move(number, call) and call["status"] in BEGUN:
            _drop_again(provider, intent, number)
        else:
            _recognise(provider, intent, number)


def _apply(provider: Provider, intent: Intent, number: int) -> None:
    call = intent.steps[number]
    mark(intent, number, DOING)
    point(f"before {number}")
    try:
        outcome, call["result"] = Outcome.DONE, remote.run(provider, call["verb"], call["arguments"])
        call["answered"] = True
    except OutcomeUnknown as lost:
        mark(intent, number, UNKNOWN)
        outcome, call["result"] = _read_back(provider, intent, number)
        if outcome is Outcome.NOT_DONE:
            raise ProviderUnavailable(f"{lost.message} It was not done; try again.", kind=lost.kind) from lost
        if outcome is Outcome.OTHERS and not call["may_adopt"]:
            raise AlreadyExists(f"{intent.full_name} already exists.", kind=lost.kind) from lost
    except MetalakeError as refusal:
        outcome = Outcome.NOT_DONE
        verb = VERBS[call["verb"]]
        if isinstance(refusal, verb.refusals):
            # The first of two tries may have been made; without markers nothing is sent twice, so it is believed.
            if provider.store(verb.store).carries_markers:
                outcome, call["result"] = _look_after_refusal(provider, call, intent)
            elif call["may_adopt"]:
                place = {"schema": call["arguments"]["schema"]}
                outcome, call["result"] = Outcome.OTHERS, remote.run(provider, "load_schema", place)
        if outcome is Outcome.NOT_DONE or (outcome is Outcome.OTHERS and not call["may_adopt"]):
            call["result"] = None
            mark(intent, number, PLANNED)  # the call certainly did nothing
            raise
    point(f"after {number}")
    mark(intent, number, DONE if outcome is Outcome.DONE else ADOPTED)
    point(f"marked {number}")


def _look_after_refusal(provider: Provider, call: dict[str, Any], intent: Intent) -> tuple[Outcome, Any]:
    """Whether a refused call took effect all the same; if that can never be read back, the refusal is trusted."""
    try:
        return _look(provider, call, intent)
    except Undecidable:
        return Outcome.NOT_DONE, None
    except OutcomePending:
        if VERBS[call["verb"]].leaves_nothing:
            return Outcome.NOT_DONE, None
        raise


def _read_back(provider: Provider, intent: Intent, number: int) -> tuple[Outcome, Any]:
    """The outcome of a call whose answer was lost, and its object.

    A creation may be reported as not done at once: a late arrival is recognised by its marker and undone. A call that
    cannot be undone gets time to arrive; then OutcomePending is raised, never "not done", since a caller relying on
    that might remove what the call needs.
    """
    call = intent.steps[number]
    deadline, pause = time.monotonic() + READ_BACK, 0.2
    while True:
        is_late = time.monotonic() + pause > deadline
        try:
            outcome, there = _look(provider, call, intent)
        except OutcomePending:
            if is_late:
                raise
        else:
            if outcome is not Outcome.NOT_DONE or VERBS[call["verb"]].undone_by:
                return outcome, there
            if is_late:
                raise OutcomePending(f"{provider.label} did not say what became of {call['verb']}.")
        time.sleep(pause)
        pause *= 2


def _ends_a_move(number: int, call: dict[str, Any]) -> bool:
    """Whether a call is the drop after a copy: once begun it may arrive at any time, so the copy is not undone."""
    return number > 0 and VERBS[call["verb"]].may_repeat


def _drop_again(provider: Provider, intent: Intent, number: int) -> None:
    """Repeat a drop, which is safe, since it names the object's identity."""
    call = intent.steps[number]
    mark(intent, number, DOING)
    point(f"before {number} again")
    try:
        remote.run(provider, call["verb"], call["arguments"])
    except NotFound:
        pass
    except (ProviderUnavailable, OutcomeUnknown) as failure:
        raise OutcomePending(failure.message) from failure
    mark(intent, number, DONE)


def _recognise(provider: Provider, intent: Intent, number: int) -> None:
    """After a crash, read back whether a call was made, and raise if it was not; it is not made a second time."""
    call = intent.steps[number]
    if call["status"] == PLANNED:  # so nothing was sent, and what is there now is another's
        outcome, there = Outcome.NOT_DONE, None
    else:
        outcome, there = _look(provider, call, intent)
    if outcome is not Outcome.DONE:
        raise ProviderUnavailable(f"{provider.label} was not reached before the server stopped; try again.")
    call["result"] = there
    mark(intent, number, DONE)
    point(f"recognised {number}")


def _look(provider: Provider, call: dict[str, Any], intent: Intent) -> tuple[Outcome, Any]:
    try:
        return outcomes.outcome_of(provider, call["verb"], call["arguments"], str(intent.pk))
    except OutcomeUnknowable as never:
        raise Undecidable(str(never)) from never
    except MetalakeError as failure:  # a missing object raises none of these: it is an outcome
        raise OutcomePending(failure.message) from failure


def take_back(intent: Intent) -> None:
    """Undo the begun calls, last first; objects in use are LEFT. Raises TakenOver, OutcomePending, Undecidable."""
    for number in reversed(range(len(intent.steps))):
        call = intent.steps[number]
        if call["status"] not in BEGUN and not call["late"]:
            continue
        call["late"] |= call["status"] in (DOING, UNKNOWN)
        point(f"undoing {number}")
        try:
            is_gone = outcomes.undo(provider_of(intent), call, str(intent.pk))
        except OutcomeUnknowable as never:
            if intent.ended_at is None or not _is_known(intent, call):
                raise Undecidable(str(never)) from never
            is_gone = True  # its names were freed when the write ended: what has a row by now is no residue of it
        except MetalakeError as failure:
            raise OutcomePending(failure.message) from failure
        point(f"undone {number}")
        mark(intent, number, UNDONE if is_gone else LEFT)


def _is_known(intent: Intent, call: dict[str, Any]) -> bool:
    """Whether the object that a call was to make has a row: another write made it, or a look into the system met it."""
    arguments = call["arguments"]
    known = Mirror.objects.filter(in_catalog_id=intent.in_catalog_id)
    schemas = known.filter(wire_name=LEVELS.join(arguments["schema"]), securable__kind=Kind.SCHEMA)
    kind = call["verb"].removeprefix("create_")
    if kind == Kind.SCHEMA:
        return schemas.exists()
    leaves = known.filter(securable__parent_id__in=schemas.values("pk"), securable__slot=Slot.TABULAR)
    return leaves.filter(wire_name=arguments[kind]).exists()


def may_still_arrive(intent: Intent) -> bool:
    """Whether a call that cannot be undone may still be in flight."""
    lost = [call for call in intent.steps if call["late"] or call["status"] in (DOING, UNKNOWN)]
    return any(not VERBS[call["verb"]].undone_by for call in lost)


def is_begun(intent: Intent) -> bool:
    return any(call["status"] not in (PLANNED, ADOPTED) for call in intent.steps)


def provider_of(intent: Intent) -> Provider:
    """The provider of an intent's catalog. Raises OutcomePending if a call has begun and it cannot be created."""
    try:
        name, properties = vault.provider_and_properties(intent.in_catalog_id)
        return provider_for(name, intent.in_catalog_id, properties)
    except MetalakeError as failure:
        if is_begun(intent):
            raise OutcomePending(failure.message) from failure
        raise
