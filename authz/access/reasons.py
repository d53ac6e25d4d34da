"""Why the evaluator says yes or no: it is asked again, with less than what is held or with more.

More membership, ALLOW and ownership never takes a right away, and more DENY never gives one. So a yes is explained by
the smallest parts of what is held that suffice, and a no by the smallest changes that would turn it into a yes.
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
"""What may be owned on the way to an object, nearest first."""


class What(Enum):
    """What rights are made of: being a member, an ALLOW, a DENY that does not stand, owning."""

    MEMBER = auto()
    ALLOW = auto()
    NO_DENY = auto()
    OWN = auto()


class Piece(NamedTuple):
    """`of` is a privilege for ALLOW and NO_DENY, and one of LEVELS for OWN."""

    what: What
    of: str = ""

    @property
    def privilege(self) -> Privilege:
        return Privilege(self.of)


Pieces = tuple[Piece, ...]
MEMBER = Piece(What.MEMBER)


def supports(operation: Operation, held: Rights, kind: str) -> list[Pieces]:
    """The smallest parts of these rights, which allow the operation, that still do; every DENY stays."""
    pieces = [MEMBER]
    pieces += [Piece(What.ALLOW, privilege) for privilege in mentioned(operation) if held.allows(privilege)]
    pieces += [Piece(What.OWN, level) for level in LEVELS if level in held.owned & operation.owners]
    denies = sum(mask_of(privilege, Effect.DENY) for privilege in Privilege if held.denies(privilege))
    return _smallest(operation, Rights(member=False, mask=denies, owned=frozenset()), kind, pieces)


def remedies(operation: Operation, held: Rights, kind: str, levels: Collection[str]) -> list[Pieces]:
    """The smallest sets of changes with which these rights, which refuse the operation, would allow it.

    To own one of these levels is a remedy only where nothing else helps.
    """
    asked = mentioned(operation)
    pieces = [] if held.member else [MEMBER]
    pieces += [Piece(What.NO_DENY, privilege) for privilege in asked if held.denies(privilege)]
    pieces += [Piece(What.ALLOW, privilege) for privilege in asked if not held.allows(privilege)]
    if not decide(operation, given(held, pieces), kind):
        asked_levels = operation.owners & set(levels) - held.owned
        pieces += [Piece(What.OWN, level) for level in LEVELS if level in asked_levels]
    return _smallest(operation, held, kind, pieces)


def mentioned(operation: Operation) -> list[Privilege]:
    """The privileges that the answer may depend on: those of the way, those that suffice, those that block."""
    found: list[Privilege] = []
    if operation.traversal is not Traversal.NONE:
        found.append(Privilege.USE_CATALOG)
    if operation.traversal is Traversal.SCHEMA:
        found.append(Privilege.USE_SCHEMA)
    found += (privilege for needed in operation.sufficient for privilege in sorted(needed))
    found += (privilege for privilege, _ in operation.blocked_by)
    return list(dict.fromkeys(found))


def given(held: Rights, pieces: Iterable[Piece]) -> Rights:
    """The rights with these pieces besides."""
    for what, of in pieces:
        match what:
            case What.MEMBER:
                held = replace(held, member=True)
            case What.ALLOW:
                held = replace(held, mask=held.mask | mask_of(Privilege(of), Effect.ALLOW))
            case What.NO_DENY:
                held = replace(held, mask=held.mask & ~mask_of(Privilege(of), Effect.DENY))
            case What.OWN:
                held = replace(held, owned=held.owned | {of})
    return held


def _smallest(operation: Operation, held: Rights, kind: str, pieces: Sequence[Piece]) -> list[Pieces]:
    """The first few of the smallest sets with which the rights suffice; none of them contains another."""
    found: list[Pieces] = []
    for size in range(len(pieces) + 1):
        for some in combinations(pieces, size):
            if any(set(smaller) <= set(some) for smaller in found):
                continue
            if decide(operation, given(held, some), kind):
                found.append(some)
                if len(found) == MAX_SETS:
                    return found
    return found
