"""Who may query access: everybody their own; others' only with the right to grant on the object.

Ancestors that are hidden from the caller are redacted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from access.history.current import State
from access.history.past import state_at
from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from authz.services.authority import require
from authz.services.change import enter, enter_with
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.lineage import Lineage, Located, missing

HIDDEN = "an object you may not see"


@dataclass(frozen=True)
class Redactor:
    """What the caller sees of the objects from the metalake down to the target, in the queried state."""

    asker: Actor
    state: State
    target: Located

    @cached_property
    def lineage(self) -> list[Located]:
        """The objects from the metalake down to the target, each with its lineage."""
        return [Located(nodes=self.target.nodes[: depth + 1]) for depth in range(len(self.target.nodes))]

    def at(self, object_id: int) -> Located:
        return next(located for located in self.lineage if located.id == object_id)

    def named(self, on: Located) -> str:
        return policy.describe(on) if self.is_known(on) else HIDDEN

    def shown(self, on: Located) -> Located | None:
        return on if self.is_known(on) else None

    def is_known(self, on: Located) -> bool:
        """Whether this object may be shown to the caller: they named it, they see it today, or it no longer exists."""
        if on.id not in self._known:
            self._known[on.id] = on.id == self.target.id or self._is_seen(on)
        return self._known[on.id]

    @cached_property
    def _known(self) -> dict[int, bool]:
        return {}

    def _is_seen(self, on: Located) -> bool:
        today = self._today.get(on.id)
        return today is None or reads_access(self.asker, today) or policy.sees(self.asker, today)

    @cached_property
    def _today(self) -> dict[int, Located]:
        if self.state.at is None:
            return {located.id: located for located in self.lineage}
        return by_ids(node.id for node in self.target.nodes)


def reads_access(actor: Actor, on: Lineage) -> bool:
    """Whether the actor may read other people's access to this object; no for a role, which has none."""
    operation = operations.FAMILIES["read_access"].get(Kind(on.nodes[-1].kind))
    return operation is not None and policy.permits(actor, operation, on)


class Place(NamedTuple):
    """An object by its dotted full name."""

    kind: Kind
    full_name: str


def open_on(actor: Actor, metalake: str, on: Place | Located, as_of: datetime | None = None) -> tuple[State, Located]:
    """The state of a metalake's rights, now or at a moment, with one object in it.

    A name resolves to the object that had it at that moment; an object located by id stays the same, whatever its name
    was then. Raises NotFound, NotInUse, and Invalid for a kind without access queries.
    """
    if isinstance(on, Place):
        state = open_state(actor, metalake, as_of)
        return state, locate(actor, state, on)
    return (state := state_at(enter_with(actor, on), as_of)), state.same(on)


def locate(actor: Actor, state: State, on: Place) -> Located:
    """The object of this name in that state. Raises NotFound, and Invalid for a kind without access queries."""
    if on.kind not in operations.FAMILIES["read_access"]:
        kinds = ", ".join(operations.FAMILIES["read_access"])
        raise Invalid(f"Access is asked about on {kinds}, not on a {on.kind}.", kind="object")
    return state.locate(*on, actor)


def open_state(actor: Actor, metalake: str, as_of: datetime | None = None) -> State:
    """The state of a metalake's rights, now or at a moment, for its members. Raises NotFound, NotInUse, Invalid."""
    return state_at(enter(actor, metalake), as_of)


def subject(actor: Actor, state: State, target: Located, user: str | None, on: Collection[int] | None = None) -> Actor:
    """The subject of a query: the caller (`user` is None or their own name), or the member of that name.

    Their policy is as of the state's moment, with at least the grants on the objects `on`. Raises NotFound if the
    object is hidden from the caller, Forbidden if they may not ask about others.
    """
    if user is not None and user != actor.name:
        require_reader(actor, state, target)
        return state.actor(user, state.policy_on(on))
    myself = actor if state.at is None else state.actor(actor.name, state.policy_on(on))
    if not _knows(actor, myself, state, target):
        policy.unseen(actor, target)  # runs the same path checks as for a missing object, against timing attacks
        raise missing(target.kind, target.full_name, error_kind="object")
    return myself


def require_reader(actor: Actor, state: State, target: Located) -> None:
    """Raise NotFound or Forbidden unless the caller may grant today on the object, or its nearest existing parent."""
    today = _today(state, target)
    require(actor, operations.read_access(today.kind), today)


def is_reader(actor: Actor, state: State, target: Located) -> bool:
    """Whether the caller passes `require_reader`."""
    return reads_access(actor, _today(state, target))


def _today(state: State, target: Located) -> Located:
    return as_of_today([target])[0] if state.at is not None else target


def as_of_today(targets: Sequence[Located]) -> list[Located]:
    """Each object of the past as it is today, or its nearest existing parent; two queries for all."""
    today = by_ids(node.id for each in targets for node in each.nodes)
    return [next(today[node.id] for node in reversed(each.nodes) if node.id in today) for each in targets]


def _knows(actor: Actor, myself: Actor, state: State, target: Located) -> bool:
    if state.at is None:
        # Whoever may ask about others may ask about themselves, even if they may not load the object.
        return policy.sees(actor, target) or reads_access(actor, target)
    if target.kind is Kind.METALAKE or policy.permits(myself, operations.load_of(target.kind), target):
        return True
    (today,) = as_of_today([target])
    return today.id == target.id and policy.sees(actor, today)
