from __future__ import annotations

from typing import Any

from authz.actor import Actor
from authz.locks import Lock
from authz.operations import OPERATIONS
from catalogs.lookup import find
from catalogs.services.cascade import remove
from catalogs.services.writes import Target, Write, write_to
from catalogs.stores import store_for
from metalake.events import event_of, gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located


def create_gadget(actor: Actor, address: Address, place: str) -> Located:
    home = Target(address.of_schema(), OPERATIONS["create_gadget"], Lock.HANGS, makes=Kind.GADGET)
    return write_to(actor, home, _create, address, place)


def _create(write: Write, address: Address, place: str) -> Located:
    store_for(write.home, Kind.GADGET).create(write.actor, write.home, address.leaf, place)
    return find(write.actor, address)


def drop_gadget(actor: Actor, address: Address) -> Any:
    return write_to(actor, Target(address, OPERATIONS["drop_gadget"], Lock.MOVES), _drop)


def _drop(write: Write) -> Any:
    gadget = write.located
    places = remove(gadget)
    name = gadget.full_name
    record(event_of(write.actor, "gadget.dropped", Kind.GADGET, gadget.id, name, gadget.metalake.id, [gone(gadget.id)]))
    return places
