"""The one way to write to what was found by its name: held, and looked for once more, before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from django.db import connection

from authz.actor import Actor
from authz.locks import Lock, hold
from authz.writing import Stale, write
from metalake.lineage import Located

T = TypeVar("T")
Held = Sequence[tuple[Located, Lock]]


def hold_each(found: Held) -> None:
    """Containers first, as they are named; those that are locked alike by their ids."""
    for lock, some in groupby(found, key=itemgetter(1)):
        hold(lock, *(each.id for each, _ in some))


def write_to(
    actor: Actor,
    look: Callable[[Actor], Held],
    act: Callable[..., T],
    *,
    kind: str,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
) -> T:
    """What `act` returns, which is given the actor and what `look` found, on the rights as of now.

    `look` finds by name what is written to, containers first, and asks the rights; it changes nothing. It is asked
    before anybody is waited for, so that only who may write waits, and again when the rows are held. `before` and
    `after` wait for more, ahead of these rows and behind them.
    """
    held: list[int] | None = None
    latest = actor

    def holds() -> None:
        nonlocal held
        found = look(latest)
        if before is not None:
            before()
        hold_each(found)
        if after is not None:
            after()
        held = [each.id for each, _ in found]

    def run(actor: Actor) -> T:
        nonlocal latest
        latest = actor  # who gained a right meanwhile finds the same the next time
        found = [each for each, _ in look(actor)]
        if held is not None and [each.id for each in found] != held:
            raise Stale
        return act(actor, *found)

    return write(actor, run, holds=holds if connection.features.has_select_for_update else None, kind=kind)
