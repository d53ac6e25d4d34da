"""Which objects on the lineage of a question the asker may know of: the others are not named to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from access.history.current import State
from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from metalake.lineage import Lineage, Located

HIDDEN = "an object you may not see"


@dataclass(frozen=True)
class Sight:
    """What the asker sees of the objects from the metalake down to the target, in the state that is asked about."""

    asker: Actor
    state: State
    target: Located

    @cached_property
    def lineage(self) -> list[Located]:
        """The objects from the metalake down to the target, each with its own lineage."""
        return [Located(nodes=self.target.nodes[: depth + 1]) for depth in range(len(self.target.nodes))]

    def at(self, object_id: int) -> Located:
        return next(located for located in self.lineage if located.id == object_id)

    def named(self, on: Located) -> str:
        return policy.describe(on) if self.is_known(on) else HIDDEN

    def shown(self, on: Located) -> Located | None:
        return on if self.is_known(on) else None

    def is_known(self, on: Located) -> bool:
        """Whether the asker may know of this object: they named it, they see it today, or it no longer exists."""
        if on.id not in self._known:
            self._known[on.id] = on.id == self.target.id or self._is_seen(on)
        return self._known[on.id]

    @cached_property
    def _known(self) -> dict[int, bool]:
        return {}

    def _is_seen(self, on: Located) -> bool:
        today = self._today.get(on.id)
        return today is None or policy.sees(self.asker, today) or reads_access(self.asker, today)

    @cached_property
    def _today(self) -> dict[int, Located]:
        if self.state.at is None:
            return {located.id: located for located in self.lineage}
        return by_ids(node.id for node in self.target.nodes)


def reads_access(actor: Actor, on: Lineage) -> bool:
    """Whether the actor may read other people's access to this object."""
    return policy.permits(actor, operations.read_access(on.nodes[-1].kind), on)
