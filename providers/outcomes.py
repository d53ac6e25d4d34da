"""Read back what a call did in the outside system, and undo it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from metalake.errors import NotEmpty, NotFound
from metalake.kinds import LEAVES
from providers import remote
from providers.base import Provider
from providers.remote_objects import Remote
from providers.stores import Outcome as Outcome
from providers.stores import OutcomeUnknowable as OutcomeUnknowable
from providers.stores import RemoteStore
from providers.verbs import VERBS, present

READ_BACK = 10.0  # seconds for one call


def outcome_of(provider: Provider, verb: str, arguments: Mapping[str, Any], marker: str) -> tuple[Outcome, Any]:
    """The outcome of a call, and its object's current state as JSON.

    Raises ProviderUnavailable if the system does not respond, OutcomeUnknowable if it has no way to tell.
    """
    store = provider.store(VERBS[verb].store)
    outcome, there = store.outcome(verb, present(verb, dict(arguments)), marker, partial(_read, provider))
    return outcome, None if there is None else there.as_json()


def _read(provider: Provider, verb: str, **arguments: Any) -> Remote | None:
    try:
        return Remote(**remote.run(provider, verb, arguments, total=READ_BACK))
    except NotFound:
        return None


def undo(provider: Provider, step: dict[str, Any], marker: str) -> bool:
    """Undo a creation that is certainly ours and not in use yet; returns whether nothing of it is left.

    Only creations are undone: an alteration or drop that succeeded is published, one that failed left no trace.
    Raises the errors of `outcome_of`.
    """
    verb, arguments = step["verb"], step["arguments"]
    if not VERBS[verb].undone_by:
        return True
    outcome, there = outcome_of(provider, verb, arguments, marker)
    if outcome is Outcome.OTHERS:
        return True
    if there is not None and not _is_certainly_ours(provider.store(VERBS[verb].store), step, there):
        raise OutcomeUnknowable(f"{provider.label} does not say who made {there['name']}.")
    if there is not None and not _dropped(provider, step, there):
        return False
    if discard := VERBS[verb].discarded_by:
        written = {name: arguments[name] for name in ("definition", "plan") if name in arguments}
        remote.run(provider, discard, written, total=READ_BACK)
    return True


def _is_certainly_ours(store: RemoteStore, step: dict[str, Any], there: dict[str, Any]) -> bool:
    """Whether an object may be dropped: it carries our marker, or is as the call itself answered it."""
    return store.carries_markers or (step.get("answered", False) and step["result"] == there)


def _dropped(provider: Provider, step: dict[str, Any], there: dict[str, Any]) -> bool:
    where = {name: step["arguments"][name] for name in ("schema", *LEAVES) if name in step["arguments"]}
    if not where.keys().isdisjoint(LEAVES) and step["result"] and step["result"]["version"] != there["version"]:
        return False  # another writer has changed it since
    try:
        remote.run(provider, VERBS[step["verb"]].undone_by, where | {"identity": there["identity"]})
    except NotFound:
        return True
    except NotEmpty:
        return False
    return True
