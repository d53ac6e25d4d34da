"""Who may ask about access, and about whom: oneself everyone, others whoever may grant there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from authz import operations, policy
from authz.actor import Actor
from authz.history.past import state_at
from authz.history.state import State
from authz.objects import by_ids
from authz.services.authority import require
from authz.services.changing import enter
from metalake.kinds import Kind
from metalake.lineage import Located, missing


def open_state(actor: Actor, metalake: str, as_of: datetime | None = None) -> State:
    """What is true in the metalake now or was at a moment, for its members. Raises NotFound, NotInUse, Invalid."""
    return state_at(enter(actor, metalake), as_of)


def subject(actor: Actor, state: State, target: Located, user: str | None, on: Collection[int] | None = None) -> Actor:
    """Whom the question is about: the caller (None, or by name) as they are seen to be, or a member of that name.

    On the policy of the moment with the grants on these objects at least. Raises NotFound where the caller may not know
    of the object, Forbidden where they may not ask about others.
    """
    if user is not None and user != actor.name:
        require_reader(actor, state, target)
        return state.actor(user, state.policy_on(on))
    myself = actor if state.at is None else state.actor(actor.name, state.policy_on(on))
    if not _knows(actor, myself, state, target):
        policy.unseen(actor, target)  # which asks of the way to it what a miss asks
        raise missing(target.kind, target.full_name, told_as="object")
    return myself


def require_reader(actor: Actor, state: State, target: Located) -> None:
    """Raise NotFound or Forbidden unless the caller may grant on the object today, or where it was if it is gone."""
    at = standing([target])[0] if state.at is not None else target
    require(actor, operations.read_access(at.kind), at)


def standing(found: Sequence[Located]) -> list[Located]:
    """Each object of the past as it is today, or what is left of the way to it; two statements for all of them."""
    today = by_ids(node.id for each in found for node in each.nodes)
    return [next(today[node.id] for node in reversed(each.nodes) if node.id in today) for each in found]


def _knows(actor: Actor, myself: Actor, state: State, target: Located) -> bool:
    if state.at is None:
        # Whoever may ask about others there may ask about themselves, though they may not load it.
        return policy.sees(actor, target) or policy.permits(actor, operations.read_access(target.kind), target)
    if target.kind is Kind.METALAKE or policy.permits(myself, operations.load_of(target.kind), target):
        return True
    (today,) = standing([target])
    return today.id == target.id and policy.sees(actor, today)
