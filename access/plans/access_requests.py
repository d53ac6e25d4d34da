"""What somebody wants people to be given, and what is proposed for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from access.explain.queries import Place, Whom
from access.explain.remedies import By, Step
from access.plans.desired import Change
from access.plans.plan import Planned
from authz.services.grant_entries import Entries
from metalake.lineage import Located
from metalake.privileges import Privilege

USES = frozenset({Privilege.USE_CATALOG, Privilege.USE_SCHEMA})


@dataclass(frozen=True)
class Wish:
    """Users and groups, an object, and how they are to be given privileges there.

    `role` chooses a role by name, or names a new one; people may be left out then. `with_use` are the USE_* privileges
    that are also given where they lack them on the way to the object.
    """

    people: tuple[Whom, ...]
    on: Place
    entries: Entries
    role: str | None = None
    with_use: frozenset[Privilege] = USES


class Note(NamedTuple):
    """What a wish comes to for one person and privilege, and why.

    `verdict`: "new"; "effective", so already; "later", begins later; "beaten" by a DENY; "broken", since a USE_* is
    lacking or the user is disabled.
    """

    whom: Whom
    privilege: Privilege
    verdict: str
    says: str


class Use(NamedTuple):
    """A USE_* privilege that people lack on the way.

    `is_offered`: the caller may give it, and it helps; `by` says who may where the caller may not.
    """

    privilege: Privilege
    on: Located
    lacking: tuple[Whom, ...]
    is_offered: bool
    is_added: bool
    says: str
    by: By | None = None


class OtherHolders(NamedTuple):
    """Who holds the proposed role beside the people of the wish: the first few by name, and how many there are."""

    names: tuple[str, ...]
    total: int


NOBODY_ELSE = OtherHolders((), 0)


class Alternative(NamedTuple):
    """A role of others that holds exactly what is wished, to be chosen by its name."""

    role: str
    reason: str
    other_holders: OtherHolders


@dataclass(frozen=True)
class Proposal:
    """A role for a wish, and why this one; `role` is None where nothing is to be done or others have to be asked.

    `changes` are what to plan and `planned` the plan of them; both are empty where all is effective already, and where
    the caller may not do all of it: then `asks` says whom to ask. `other_holders` is None where the caller may not
    know who holds the role. `alternatives` are roles of others that hold exactly this.
    """

    role: str | None
    is_new: bool
    reason: str
    changes: tuple[Change, ...] = ()
    planned: Planned | None = None
    notes: tuple[Note, ...] = ()
    use: tuple[Use, ...] = ()
    asks: tuple[Step, ...] = ()
    other_holders: OtherHolders | None = field(default=None)
    alternatives: tuple[Alternative, ...] = ()
