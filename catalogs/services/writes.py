"""The one way to write to objects found by name: lock them, find them once more, then change them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from django.db import connection

from authz.actor import Actor
from authz.locks import Lock, hold
from authz.transactions import Stale, write
from catalogs.lookup import refreshed_at
from metalake.lineage import Address, Located

T = TypeVar("T")
Locks = Sequence[tuple[Located, Lock]]


def hold_each(locks: Locks) -> None:
    """Lock rows in the given order, containers first; neighbours with the same lock by order of id."""
    for lock, some in groupby(locks, key=itemgetter(1)):
        hold(lock, *(each.id for each, _ in some))


def write_to(
    actor: Actor,
    locate: Callable[[Actor], Locks],
    act: Callable[..., T],
    *,
    kind: str,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
    at: Address | None = None,
) -> T:
    """Run `act` with the actor and the objects of `locate`, under their locks; what it returns.

    `locate` finds by name the objects to write to, containers first, and checks the rights; it changes nothing. It is
    called before any lock, so that only who may write waits, and again under the locks; if it finds other objects then,
    all begins again. `before` and `after` take further locks, before these and after them. `at` is the address that
    `locate` looks up first: the transaction reads it together with the policy.
    """
    locked_ids: list[int] | None = None
    latest = actor

    def holds() -> None:
        nonlocal locked_ids
        locks = locate(latest)
        if before is not None:
            before()
        hold_each(locks)
        if after is not None:
            after()
        locked_ids = [each.id for each, _ in locks]

    def run(actor: Actor) -> T:
        nonlocal latest
        latest = actor  # with rights as of now, so that the next attempt locates with the same rights
        targets = [each for each, _ in locate(actor)]
        if locked_ids is not None and [each.id for each in targets] != locked_ids:
            raise Stale
        return act(actor, *targets)

    locks = holds if connection.features.has_select_for_update else None
    return write(actor, run, holds=locks, kind=kind, refresh=partial(refreshed_at, at) if at else None)
