"""How a service writes to what it finds by name: check the rights, lock, find and check again, change it.

docs/decisions/locks.md says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import Concatenate, Generic, ParamSpec, TypeVar

from django.db import connection

from authz import policy
from authz.actor import Actor
from authz.locks import Lock, hold, hold_owner
from authz.operations import Operation, create_of
from authz.transactions import Stale, write
from catalogs import lookup
from catalogs.lookup import refreshed_at
from catalogs.services import resolution
from catalogs.services.alterations import require_enabled
from catalogs.services.creation_hooks import check_home
from catalogs.services.provider_of import provider_at
from metalake.kinds import KINDS, TOP_LEAVES, Kind
from metalake.lineage import Address, Located
from providers.base import Provider

P = ParamSpec("P")
T = TypeVar("T")
Locks = Sequence[tuple[Located, Lock]]


@dataclass(frozen=True)
class Target:
    """What a write is about: the object at an address, the right that it takes on it, and its lock until the end.

    Without an operation, only `check` decides who may write.
    """

    address: Address
    operation: Operation | None
    lock: Lock = Lock.CHANGES
    _: KW_ONLY
    check: Callable[[Actor, Located], Locks | None] | None = None  # raises what else forbids it; returns further rows
    while_disabled: bool = False  # it may be disabled itself; what lies above it may not
    id: int | None = None  # of the object that was found before; another one of its name is a miss
    makes: Kind | None = None  # what is made in it, whose owner-to-be is locked last
    kind: str = ""  # what a conflict is about, if it is not the object nor what is made
    first: Callable[[], object] | None = None  # takes locks before the rows
    then: Callable[[], object] | None = None  # takes locks after them
    ahead: Address | None = None  # read together with the policy, in one statement

    def find(self, actor: Actor, find: Callable[[Actor, Address], Located] = lookup.find) -> Located:
        """The object, whether the actor may see it or not; `find` may ask outside systems. Raises NotFound."""
        if self.address.kind in TOP_LEAVES:
            return resolution.find(actor, self.address)
        located = find(actor, self.address)
        return located if self.address.leaf is None else resolution.of_kind(actor, located, self.address.leaf_kind)

    def locate(self, actor: Actor) -> Locks:
        """The rows to lock, after all checks; itself first. Raises NotFound, Forbidden, NotInUse, and as `check`."""
        located = self.find(actor)
        if self.operation is not None:
            policy.require(actor, self.operation, located)
            if not self.while_disabled:
                require_enabled(located)
            elif located.kind is not Kind.METALAKE:
                require_enabled(located.above())
        further = self.check(actor, located) if self.check is not None else None
        if self.id not in (None, located.id):
            raise located.missing()
        return [(located, self.lock), *(further or ())]

    def permitted(self, actor: Actor) -> Located:
        """The object, after the same checks, not locked."""
        return self.locate(actor)[0][0]


def new_in_schema(address: Address, kind: Kind, home: Located) -> Target:
    """The schema that is to hold a new object; `home` is the one that was found before."""
    return Target(address.of_schema(), create_of(kind), Lock.HANGS, check=check_home, id=home.id, makes=kind)


@dataclass(frozen=True)
class Write:
    """A write in its transaction: the actor with current rights, and the locked rows."""

    actor: Actor
    rows: tuple[Located, ...]

    @property
    def located(self) -> Located:
        """The target object."""
        return self.rows[0]

    @property
    def home(self) -> Located:
        """What holds the object from now on."""
        return self.rows[-1]

    @cached_property
    def provider(self) -> Provider:
        """The provider of the catalog, its secrets opened once."""
        return provider_at(self.located)


def write_to(
    actor: Actor,
    target: Target | Sequence[Target],
    perform: Callable[Concatenate[Write, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run `perform(write, ...)` in a transaction that holds the target, and return its result.

    The rights are checked before any lock, so that only who may write waits, and again under the locks; if the names
    lead to other objects then, all begins again. Several targets are checked in their order, and locked containers
    first. `perform` may run several times, so it must change nothing outside the database. Raises as
    `authz.transactions.write` does.
    """
    targets = (target,) if isinstance(target, Target) else target
    first = targets[0]
    attempts = _Attempts(actor, targets, lambda write: perform(write, *args, **kwargs))
    return write(
        actor,
        attempts.run,
        holds=attempts.hold if connection.features.has_select_for_update else None,
        kind=first.kind or first.makes or first.address.kind,
        refresh=partial(refreshed_at, first.ahead) if first.ahead else None,
    )


class _Attempts(Generic[T]):
    """The attempts of one write; each has the rights that the one before it read last."""

    def __init__(self, actor: Actor, targets: Sequence[Target], perform: Callable[[Write], T]) -> None:
        self.actor, self.targets, self.perform = actor, targets, perform
        self.locked: list[int] | None = None

    def hold(self) -> None:
        locks = [lock for target in self.targets for lock in target.locate(self.actor)]
        first = self.targets[0]
        if first.first is not None:
            first.first()
        hold_each(sorted(locks, key=_depth))
        if first.then is not None:
            first.then()
        if first.makes is not None:
            hold_owner(self.actor.id)
        self.locked = [located.id for located, _ in locks]

    def run(self, actor: Actor) -> T:
        self.actor = actor
        rows = tuple(located for target in self.targets for located, _ in target.locate(actor))
        if self.locked is not None and [located.id for located in rows] != self.locked:
            raise Stale
        return self.perform(Write(actor, rows))


def _depth(lock: tuple[Located, Lock]) -> int:
    return KINDS[lock[0].kind].depth


def hold_each(locks: Locks) -> None:
    """Lock rows in the given order, containers first; neighbours with the same lock by order of id."""
    for lock, some in groupby(locks, key=itemgetter(1)):
        hold(lock, *(each.id for each, _ in some))
