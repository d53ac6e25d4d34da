from __future__ import annotations

from typing import Any

from authz.actor import Actor
from authz.locks import Lock
from authz.operations import OPERATIONS, create_of
from catalogs.services.cascade import remove
from catalogs.services.resolution import find
from catalogs.services.writes import Target, Write, write_to
from catalogs.stores import store_for
from metalake.events import event_of, gone, record
from metalake.lineage import Address, Located


def create_gadget(actor: Actor, address: Address, place: str) -> Located:
    home = Target(address.of_schema(), create_of(address.kind), Lock.HANGS, makes=address.kind)
    return write_to(actor, home, _create, address, place)


def _create(write: Write, address: Address, place: str) -> Located:
    store_for(write.home, address.kind).create(write.actor, write.home, address.leaf, place)
    return find(write.actor, address)


def drop_gadget(actor: Actor, address: Address) -> Any:
    return write_to(actor, Target(address, OPERATIONS[f"drop_{address.kind}"], Lock.MOVES), _drop)


def _drop(write: Write) -> Any:
    gadget = write.located
    places = remove(gadget)
    name, event = gadget.full_name, f"{gadget.kind}.dropped"
    record(event_of(write.actor, event, gadget.kind, gadget.id, name, gadget.metalake.id, [gone(gadget.id)]))
    return places
