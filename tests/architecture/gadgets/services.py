from __future__ import annotations

from typing import Any

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from catalogs.services.cascade import remove
from catalogs.services.resolution import find
from catalogs.services.writes import Locks, write_to
from catalogs.stores import store_for
from metalake.events import event_of, gone, record
from metalake.lineage import Address, Located


def create_gadget(actor: Actor, address: Address, place: str) -> Located:
    def look(actor: Actor) -> Locks:
        home = find(actor, address.of_schema())
        policy.require(actor, operations.create_of(address.kind), home)
        return [(home, Lock.HANGS)]

    def act(actor: Actor, home: Located) -> Located:
        store_for(home, address.kind).create(actor, home, address.leaf, place)
        return find(actor, address)

    return write_to(actor, look, act, kind=address.kind)


def drop_gadget(actor: Actor, address: Address) -> Any:
    def look(actor: Actor) -> Locks:
        gadget = find(actor, address)
        policy.require(actor, operations.OPERATIONS[f"drop_{address.kind}"], gadget)
        return [(gadget, Lock.MOVES)]

    def act(actor: Actor, gadget: Located) -> Any:
        places = remove(gadget)
        name = gadget.full_name
        event = f"{gadget.kind}.dropped"
        record(event_of(actor, event, gadget.kind, gadget.id, name, gadget.metalake.id, [gone(gadget.id)]))
        return places

    return write_to(actor, look, act, kind=address.kind)
