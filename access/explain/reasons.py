"""Finds why the evaluator says yes or no, by re-evaluating with fewer or more rights.

Rights are monotonic: adding membership, an ALLOW or ownership never removes a right, and adding a DENY never gives one.
So a yes is explained by the minimal sufficient subsets of the rights, and a no by the minimal changes to a yes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum, auto
from itertools import combinations
from typing import NamedTuple

from authz import operations
from authz.operations import Operation, Traversal
from authz.policy import Rights, decide
from authz.snapshot import mask_of
from metalake.kinds import CONTAINERS
from metalake.privileges import Effect, Privilege

MAX_SETS = 5
LEVELS: tuple[str, ...] = (operations.SELF, *reversed(CONTAINERS))
"""The levels of a lineage that may be owned, nearest to the object first."""


class What(Enum):
    """The sorts of pieces that rights consist of: membership, an ALLOW, the absence of a DENY, ownership."""

    MEMBER = auto()
    ALLOW = auto()
    NO_DENY = auto()
    OWN = auto()


class Piece(NamedTuple):
    """A piece that rights consist of. `of` is a privilege for ALLOW and NO_DENY, and one of LEVELS for OWN."""

    what: What
    of: str = ""

    @property
    def privilege(self) -> Privilege:
        return Privilege(self.of)


Pieces = tuple[Piece, ...]
MEMBER = Piece(What.MEMBER)


def supports(operation: Operation, rights: Rights, kind: str) -> list[Pieces]:
    """The smallest subsets of these rights that still allow the operation, with every DENY left in place."""
    pieces = [MEMBER]
    pieces += [Piece(What.ALLOW, privilege) for privilege in mentioned(operation) if rights.allows(privilege)]
    pieces += [Piece(What.OWN, level) for level in LEVELS if level in rights.owned & operation.owners]
    denies = sum(mask_of(privilege, Effect.DENY) for privilege in Privilege if rights.denies(privilege))
    return _smallest(operation, Rights(member=False, mask=denies, owned=frozenset()), kind, pieces)


def remedies(operation: Operation, rights: Rights, kind: str, levels: Collection[str]) -> list[Pieces]:
    """The smallest sets of pieces that, added to these rights, would allow the refused operation.

    Ownership of a level is offered only if nothing else helps.
    """
    asked = mentioned(operation)
    pieces = [] if rights.member else [MEMBER]
    pieces += [Piece(What.NO_DENY, privilege) for privilege in asked if rights.denies(privilege)]
    pieces += [Piece(What.ALLOW, privilege) for privilege in asked if not rights.allows(privilege)]
    if not decide(operation, given(rights, pieces), kind):
        asked_levels = operation.owners & set(levels) - rights.owned
        pieces += [Piece(What.OWN, level) for level in LEVELS if level in asked_levels]
    return _smallest(operation, rights, kind, pieces)


def mentioned(operation: Operation) -> list[Privilege]:
    """The privileges that the answer may depend on: those traversed, those that suffice, those that block."""
    privileges: list[Privilege] = []
    if operation.traversal is not Traversal.NONE:
        privileges.append(Privilege.USE_CATALOG)
    if operation.traversal is Traversal.SCHEMA:
        privileges.append(Privilege.USE_SCHEMA)
    privileges += (privilege for needed in operation.sufficient for privilege in sorted(needed))
    privileges += (privilege for privilege, _ in operation.blocked_by)
    return list(dict.fromkeys(privileges))


def given(rights: Rights, pieces: Iterable[Piece]) -> Rights:
    """The rights with these pieces added."""
    for what, of in pieces:
        match what:
            case What.MEMBER:
                rights = replace(rights, member=True)
            case What.ALLOW:
                rights = replace(rights, mask=rights.mask | mask_of(Privilege(of), Effect.ALLOW))
            case What.NO_DENY:
                rights = replace(rights, mask=rights.mask & ~mask_of(Privilege(of), Effect.DENY))
            case What.OWN:
                rights = replace(rights, owned=rights.owned | {of})
    return rights


def _smallest(operation: Operation, rights: Rights, kind: str, pieces: Sequence[Piece]) -> list[Pieces]:
    """The smallest sets of pieces with which the rights suffice, MAX_SETS at most; none contains another."""
    sets: list[Pieces] = []
    for size in range(len(pieces) + 1):
        for some in combinations(pieces, size):
            if any(set(smaller) <= set(some) for smaller in sets):
                continue
            if decide(operation, given(rights, some), kind):
                sets.append(some)
                if len(sets) == MAX_SETS:
                    return sets
    return sets
