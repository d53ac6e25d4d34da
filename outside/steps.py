"""The remote calls of an intent: each is made once, read back where its answer is lost, and taken back.

Where an intent is with them is written down before and after each call, by whoever holds its newest fence.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from catalogs import vault
from catalogs.models import Intent
from metalake import leases
from metalake.errors import AlreadyExists, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable
from providers import outcomes, remote
from providers.base import Provider
from providers.outcomes import CannotTell, Outcome
from providers.registry import provider_for
from providers.verbs import VERBS

LEASE = timedelta(seconds=remote.TOTAL + 5)
READ_BACK = 8.0  # seconds to learn what a lost answer was

PLANNED, DOING, UNKNOWN, DONE, ADOPTED = "planned", "doing", "unknown", "done", "adopted"
UNDONE, LEFT = "undone", "left"
BEGUN = (DOING, UNKNOWN, DONE)


def step(verb: str, *, may_adopt: bool = False, **arguments: Any) -> dict[str, Any]:
    """One remote call of an intent; `may_adopt` takes what is there already for what it would make."""
    progress = {"status": PLANNED, "result": None, "late": False}  # late: it may arrive after it was undone
    return {"verb": verb, "arguments": arguments, "may_adopt": may_adopt} | progress


class Unsettled(Exception):
    """What the outside system did cannot be told now, or what it did cannot be published yet."""


class Undecidable(Exception):
    """What the outside system did it can never tell: somebody has to look there and decide."""


def point(name: str) -> None:
    """A place where a crash must lose nothing; the tests stop here."""


def mark(intent: Intent, number: int, status: str) -> None:
    """Write down where the intent is, and keep it for as long as one more call takes. Raises TakenOver."""
    intent.steps[number]["status"] = status
    save(intent, steps=intent.steps, lease_until=leases.over(LEASE))


def save(intent: Intent, **fields: Any) -> None:
    """Raises TakenOver."""
    leases.write(intent, **fields)


def make(intent: Intent) -> None:
    """Make the calls that are not made yet; after a crash only go on from what is there.

    Raises what refuses one, Unsettled, TakenOver.
    """
    provider = provider_of(intent)
    for number, each in enumerate(intent.steps):
        if each["status"] in (DONE, ADOPTED):
            continue
        if not intent.attempts:
            _apply(provider, intent, number)
        elif _ends_a_move(number, each) and each["status"] in BEGUN:
            _drop_again(provider, intent, number)
        else:
            _recognise(provider, intent, number)


def _apply(provider: Provider, intent: Intent, number: int) -> None:
    each = intent.steps[number]
    mark(intent, number, DOING)
    point(f"before {number}")
    try:
        outcome, each["result"] = Outcome.DONE, remote.run(provider, each["verb"], each["arguments"])
    except OutcomeUnknown as lost:
        mark(intent, number, UNKNOWN)
        outcome, each["result"] = _read_back(provider, intent, number)
        if outcome is Outcome.NOT_DONE:
            raise ProviderUnavailable(f"{lost.message} It was not done; try again.", kind=lost.kind) from lost
        if outcome is Outcome.OTHERS and not each["may_adopt"]:
            raise AlreadyExists(f"{intent.full_name} already exists.", kind=lost.kind) from lost
    except MetalakeError as refusal:
        outcome = Outcome.NOT_DONE
        if isinstance(refusal, VERBS[each["verb"]].refusals):  # the first may have done it
            outcome, each["result"] = _look_after_refusal(provider, each, intent)
        if outcome is Outcome.NOT_DONE or (outcome is Outcome.OTHERS and not each["may_adopt"]):
            each["result"] = None
            mark(intent, number, PLANNED)  # it certainly did nothing
            raise
    point(f"after {number}")
    mark(intent, number, DONE if outcome is Outcome.DONE else ADOPTED)
    point(f"marked {number}")


def _look_after_refusal(provider: Provider, each: dict[str, Any], intent: Intent) -> tuple[Outcome, Any]:
    """Whether a call that was refused was made all the same; where that is never told, the refusal is believed."""
    try:
        return _look(provider, each, intent)
    except Undecidable:
        return Outcome.NOT_DONE, None
    except Unsettled:
        if VERBS[each["verb"]].leaves_nothing:
            return Outcome.NOT_DONE, None
        raise


def _read_back(provider: Provider, intent: Intent, number: int) -> tuple[Outcome, Any]:
    """What became of a call whose answer was lost.

    A creation that arrives later is found by its marker and undone. What cannot be undone is given time to arrive, and
    then its caller is not told that it failed: who believed that might remove what it needs.
    """
    each = intent.steps[number]
    deadline, pause = time.monotonic() + READ_BACK, 0.2
    while True:
        is_late = time.monotonic() + pause > deadline
        try:
            outcome, there = _look(provider, each, intent)
        except Unsettled:
            if is_late:
                raise
        else:
            if outcome is not Outcome.NOT_DONE or VERBS[each["verb"]].undone_by:
                return outcome, there
            if is_late:
                raise Unsettled(f"{provider.label} did not say what became of {each['verb']}.")
        time.sleep(pause)
        pause *= 2


def _ends_a_move(number: int, each: dict[str, Any]) -> bool:
    """The drop that follows a copy: once begun it may arrive at any time, so the copy is never taken back."""
    return number > 0 and VERBS[each["verb"]].may_repeat


def _drop_again(provider: Provider, intent: Intent, number: int) -> None:
    """A drop names the identity of what it drops, so it may be made twice."""
    each = intent.steps[number]
    mark(intent, number, DOING)
    point(f"before {number} again")
    try:
        remote.run(provider, each["verb"], each["arguments"])
    except NotFound:
        pass
    except (ProviderUnavailable, OutcomeUnknown) as failure:
        raise Unsettled(failure.message) from failure
    mark(intent, number, DONE)


def _recognise(provider: Provider, intent: Intent, number: int) -> None:
    """After a crash: go on from a step only if it is there; nothing is created or altered a second time."""
    outcome, there = _look(provider, intent.steps[number], intent)
    if outcome is not Outcome.DONE:
        raise ProviderUnavailable(f"{provider.label} was not reached before the server stopped; try again.")
    intent.steps[number]["result"] = there
    mark(intent, number, DONE)
    point(f"recognised {number}")


def _look(provider: Provider, each: dict[str, Any], intent: Intent) -> tuple[Outcome, Any]:
    try:
        return outcomes.outcome_of(provider, each["verb"], each["arguments"], str(intent.pk))
    except CannotTell as never:
        raise Undecidable(str(never)) from never
    except MetalakeError as failure:  # what is not there is no failure to look
        raise Unsettled(failure.message) from failure


def take_back(intent: Intent) -> None:
    """Undo what was begun and nobody uses, innermost first; what others use is LEFT. Raises TakenOver, Unsettled."""
    for number in reversed(range(len(intent.steps))):
        each = intent.steps[number]
        if each["status"] not in BEGUN and not each["late"]:
            continue
        each["late"] |= each["status"] in (DOING, UNKNOWN)
        point(f"undoing {number}")
        try:
            is_gone = outcomes.undo(provider_of(intent), each, str(intent.pk))
        except CannotTell as never:
            raise Undecidable(str(never)) from never
        except MetalakeError as failure:
            raise Unsettled(failure.message) from failure
        point(f"undone {number}")
        mark(intent, number, UNDONE if is_gone else LEFT)


def may_still_arrive(intent: Intent) -> bool:
    """Whether a call is on its way, for all that is known, that could not be undone."""
    lost = [each for each in intent.steps if each["late"] or each["status"] in (DOING, UNKNOWN)]
    return any(not VERBS[each["verb"]].undone_by for each in lost)


def is_begun(intent: Intent) -> bool:
    return any(each["status"] != PLANNED for each in intent.steps)


def provider_of(intent: Intent) -> Provider:
    """Raises Unsettled where something was begun and there is no way to the outside system now."""
    catalog = intent.in_catalog
    try:
        return provider_for(catalog.provider, catalog.pk, vault.properties_of(catalog.pk))
    except MetalakeError as failure:
        if is_begun(intent):
            raise Unsettled(failure.message) from failure
        raise
