"""How every change of rights runs: one at a time, on the policy as of now, with one epoch, and recorded.

The epoch's row is locked before rights are read, not when the epoch moves: two changes that each take away the
other's right cannot both pass, and what a change publishes is still true when it commits. The objects of a change are
locked first (docs/decisions/locks.md), so that each still has the name that it was looked up by.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar, TypeVarTuple

from authz import policy, snapshot
from authz.actor import Actor
from authz.locks import Lock, hold
from authz.models import PolicyEpoch
from authz.objects import find_metalake
from authz.transactions import Stale, write
from metalake.errors import NotFound, NotInUse
from metalake.events import Event, event_of, record
from metalake.kinds import Kind
from metalake.lineage import Located, Node
from metalake.models import Metalake

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def change(
    actor: Actor,
    metalake: str,
    perform: Callable[[Actor, Located, *Ts], T],
    *args: *Ts,
    kind: str,
    on: Callable[[], Collection[int]] = tuple,
    lock: Lock = Lock.HANGS,
) -> T:
    """Run `perform(actor, top, ...)` in one transaction, with the policy of now and the metalake; returns its result.

    `on` returns the ids of the objects that the change is about, which are locked to keep their names and places.
    Roles need no lock, since changes of rights run one at a time. Raises NotFound if the actor sees no such metalake,
    NotInUse if it is disabled.
    """
    locked: set[int] = set()

    def holds() -> None:
        top, ids = find_metalake(metalake), on()
        locked.clear()
        locked.update(ids, [top.id if top else 0])  # the query runs for a missing metalake too, as for a hidden one
        if lock is Lock.HANGS:
            hold(lock, *locked)
        else:
            hold(Lock.HANGS, *locked.difference(ids))
            hold(lock, *ids)

    def run(actor: Actor) -> T:
        actor = alone(actor)
        top = enter(actor, metalake)
        if not locked.issuperset([top.id, *on()]):
            raise Stale
        return perform(actor, top, *args)

    return write(actor, run, holds=holds, kind=kind)


def alone(actor: Actor) -> Actor:
    """Wait for other changes of rights to end; returns the actor on the policy as of then."""
    epoch, stamp = PolicyEpoch.objects.select_for_update().values_list("value", "stamp").get(pk=1)
    return replace(actor, policy=snapshot.at(epoch, stamp))


def enter(actor: Actor, metalake: str) -> Located:
    """The metalake, if the actor is a member. Raises NotFound, and NotInUse if it is disabled."""
    row = Metalake.objects.filter(parent__isnull=True, name=metalake).values_list(*Node._fields, "enabled").first()
    if row is None:
        raise NotFound(f"Metalake {metalake} does not exist.", kind=Kind.METALAKE)
    *node, enabled = row
    return _enter(actor, Located(nodes=(Node(*node),)), is_enabled=enabled)


def enter_with(actor: Actor, target: Located) -> Located:
    """The metalake of an object that this request located by its id. Raises as `enter` does."""
    return _enter(actor, target.top, is_enabled=target.disabled != Kind.METALAKE)


def _enter(actor: Actor, top: Located, *, is_enabled: bool) -> Located:
    policy.require_member(actor, top)
    if not is_enabled:
        raise NotInUse(f"Metalake {top.name} is disabled; enable it first.", kind=Kind.METALAKE)
    return top


def publish_events(*events: Event) -> None:
    """Record the events, and publish those of their facts that change the policy to every node."""
    record(*events)
    facts = [fact for event in events for fact in event.facts]
    snapshot.publish([fact for fact in facts if fact[0] in snapshot.TOPICS])


def event(
    actor: Actor,
    top: Located,
    name: str,
    kind: str,
    object_id: int,
    full_name: Sequence[str],
    facts: Sequence[list[Any]] = (),
    **details: Any,
) -> Event:
    return event_of(actor, name, kind, object_id, full_name, top.id, facts, **details)
