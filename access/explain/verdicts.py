"""Whether a grant or ownership is effective for its holder, according to the evaluator, and what blocks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from access.explain.cases import in_words
from access.explain.grants_on import Granted, Sorted
from access.explain.permissions import Redactor
from access.explain.reasons import Piece, What, remedies
from authz import operations, policy
from authz.actor import Actor
from authz.operations import SELF, Operation
from authz.policy import Rights
from metalake.kinds import grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege


class Verdict(StrEnum):
    """An active DENY is effective; an ALLOW is if its holder can use the privilege and no DENY overrides it."""

    EFFECTIVE = "effective"
    BEATEN = "beaten"
    BROKEN = "broken"
    LATER = "later"


class Missing(NamedTuple):
    """What a broken way lacks: the privilege on `on` or above it, or that a DENY of it on `on` is lifted.

    `on` is the nearest object that the privilege may be granted on; None if the asker may not see it.
    """

    privilege: Privilege
    on: Located | None
    is_denied: bool = False


class Judgement(NamedTuple):
    """`says` is why the access path is not effective, "" if it is."""

    verdict: Verdict
    says: str = ""
    missing: tuple[Missing, ...] = ()


EFFECTIVE = Judgement(Verdict.EFFECTIVE)


@dataclass(frozen=True)
class Evaluator:
    """Evaluates grants and ownership on one lineage; equal cases are evaluated once.

    `alone`: groups or roles, each as if a member held only that; sentences say so.
    """

    sight: Redactor
    granted: Sorted
    role_names: dict[int, str]
    alone: bool = False
    _rights: dict[tuple, Rights] = field(default_factory=dict, repr=False)
    _broken: dict[tuple, Judgement] = field(default_factory=dict, repr=False)

    def of_grant(self, who: Actor, grant: Granted) -> Judgement:
        """The verdict on a grant of a role that `who` holds."""
        if grant.is_ahead(who.now):
            return Judgement(Verdict.LATER, f"Begins on {in_words(datetime.fromtimestamp(grant.starts, UTC))}.")
        if grant.effect is Effect.DENY:
            return EFFECTIVE
        rights = self.rights(who)
        if rights.denies(grant.privilege):
            return Judgement(Verdict.BEATEN, f"Beaten: {self._denying(self._denies(who, grant.privilege)[0])}.")
        on = self._nearest(grant.privilege)
        operation = operations.use_of(grant.privilege, on.kind)
        if policy.decide(operation, rights, on.kind):
            return EFFECTIVE
        return self._lacking(who, operation, on, grant.privilege)

    def of_owner(self, who: Actor, owned: Located) -> Judgement:
        """The verdict on owning one of the objects of the lineage: whether owning counts on the target."""
        on = self.sight.target
        operation = operations.own(on.kind)
        if policy.decide(operation, self.rights(who), on.kind):
            return EFFECTIVE
        return self._lacking(who, operation, on, f"owner of {self.sight.named(owned)}")

    def rights(self, who: Actor) -> Rights:
        nodes = self.sight.target.nodes
        key = who.is_member(nodes[0].id), who.roles, who.allowing_roles, tuple(map(who.owns, nodes))
        if key not in self._rights:
            self._rights[key] = policy.rights_on(who, self.sight.target)
        return self._rights[key]

    def _nearest(self, privilege: Privilege) -> Located:
        """The target, or the nearest object above it, that the privilege can be granted on."""
        return next(on for on in reversed(self.sight.lineage) if on.kind in grantable_on(privilege))

    def _lacking(self, who: Actor, operation: Operation, on: Located, what: str) -> Judgement:
        """Why the evaluator says no: the smallest change that makes it say yes."""
        rights = self.rights(who)
        key = what, rights, who.roles
        if key not in self._broken:
            levels = {SELF, *(node.kind for node in on.nodes)}
            pieces = remedies(operation, rights, on.kind, levels)[0]
            lacks = [lack for piece in pieces for lack in self._lacks(who, piece)]
            says = f"{'held alone: ' if self.alone else ''}{what}, but {' and '.join(words for words, _ in lacks)}"
            self._broken[key] = Judgement(Verdict.BROKEN, says, tuple(missing for _, missing in lacks))
        return self._broken[key]

    def _lacks(self, who: Actor, piece: Piece) -> list[tuple[str, Missing]]:
        """What to grant or lift for this piece of rights, as text and as data."""
        if piece.what is What.NO_DENY:
            denies = self._denies(who, piece.privilege)
            return [(self._denying(deny), Missing(piece.privilege, self._on(deny), is_denied=True)) for deny in denies]
        on = self._nearest(piece.privilege)
        return [(f"no {piece.of} on {self.sight.named(on)}", Missing(piece.privilege, self.sight.shown(on)))]

    def _denying(self, deny: Granted) -> str:
        on = self.sight.named(self.sight.lineage[deny.depth])
        return f"role {self.role_names.get(deny.role_id, '')} denies {deny.privilege} on {on}"

    def _denies(self, who: Actor, privilege: Privilege) -> list[Granted]:
        """The DENYs of the privilege in force for `who`, the nearest to the object first."""
        by_role = self.granted.get((Effect.DENY, privilege), {})
        denies = [deny for role in who.roles for deny in by_role.get(role, ()) if not deny.is_ahead(who.now)]
        return sorted(denies, key=lambda deny: -deny.depth)

    def _on(self, grant: Granted) -> Located | None:
        return self.sight.shown(self.sight.lineage[grant.depth])
