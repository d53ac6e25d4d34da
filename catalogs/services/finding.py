"""Find objects by their names, even those that have no row yet because only an outside system has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import TypeVar

from authz import operations, policy
from authz.actor import Actor
from authz.objects import beside
from authz.services.changing import enter
from catalogs import lookup
from catalogs.lookup import nearest
from catalogs.stores import store_for
from metalake import read_ahead
from metalake.errors import NotFound, Unsupported
from metalake.kinds import IN_CATALOGS, Kind
from metalake.lineage import Address, Located, Node, missing

T = TypeVar("T")
LOOKS, MOST_CONTAINERS, SECONDS = 10, 20, 30.0  # of one request about many names


def find(actor: Actor, address: Address) -> Located:
    """The object, as `lookup.find` returns it; one without a row is looked up by its store.

    The store looks only for an actor who could load the object if it existed. Not for use in a transaction.
    """
    nearest_one = nearest(address)
    if nearest_one is not None and lookup.is_whole(address, nearest_one):
        return nearest_one
    if not look_outside(actor, address, nearest_one):
        raise lookup.miss(actor, address, nearest_one)
    return lookup.find(actor, address)


def look_outside(actor: Actor, address: Address, nearest_one: Located | None) -> bool:
    """Have the stores look for an object that has no row yet; whether it has one now. Not for use in a transaction."""
    if nearest_one is None or lookup.is_whole(address, nearest_one) or nearest_one.disabled:
        return False
    if not _meet(actor, nearest_one, address):
        return False
    read_ahead.forget()  # it was read before the object was met
    return True


def meet(actor: Actor, addresses: Iterable[Address]) -> bool:
    """Have the stores look for objects that have no row yet, as `find` does for one; whether any may have one now.

    Up to LOOKS names in one container are asked for one by one, more by its listing; MOST_CONTAINERS at most, and for
    SECONDS, after which the others stay unmet. Not for use in a transaction. Raises ProviderUnavailable.
    """
    inside = defaultdict[Address, list[Address]](list)
    for address in addresses:
        if address.kind in IN_CATALOGS:
            inside[address.of_catalog() if address.leaf is None else address.of_schema()].append(address)
    until, anything = monotonic() + SECONDS, False
    for container, some in islice(inside.items(), MOST_CONTAINERS):
        if monotonic() > until:
            break
        for address in some if len(some) <= LOOKS else some[:1]:
            anything |= look_outside(actor, address, nearest(address))
        if len(some) > LOOKS:
            anything |= _list(actor, nearest(container), {address.kind for address in some})
    return anything


def _list(actor: Actor, container: Located | None, kinds: Iterable[Kind]) -> bool:
    if container is None or container.disabled:
        return False
    for kind in kinds:
        with suppress(NotFound, Unsupported):
            if may_look(actor, container, kind):
                store_for(container, kind).listing(actor, container, refresh=True)
    return True


def may_look(actor: Actor, container: Located, kind: Kind, name: str = "") -> bool:
    """Whether the actor could load an object of this kind there, or grant on it, if it were the catalog's owner's."""
    owner = container.catalog
    as_if = container.below(Node(0, kind, name, owner.owner_user_id, owner.owner_group_id))
    return any(policy.permits(actor, asked, as_if) for asked in (operations.load_of(kind), operations.grant_on(kind)))


def find_schema(actor: Actor, address: Address) -> Located:
    """The schema of an address, as `find` returns it."""
    return find(actor, address.of_schema())


def find_template(actor: Actor, address: Address) -> Located:
    """The job template of an address, whether the actor may see it or not. Raises NotFound, NotInUse."""
    assert address.leaf is not None
    top = enter(actor, address.metalake)
    located = beside(top, Kind.JOB_TEMPLATE, address.leaf)
    if located is None:
        policy.check_as_hidden(actor, top.below(Node(0, Kind.JOB_TEMPLATE, "", lookup.NO_OWNER, None)))
        raise missing(Kind.JOB_TEMPLATE, [address.leaf])
    return located


def of_kind(actor: Actor, located: Located, kind: Kind) -> Located:
    """The located object if it is of this kind, since kinds may share a name space. Raises NotFound otherwise."""
    if located.kind != kind:
        if not policy.sees(actor, located.above()):
            raise policy.hidden(actor, operations.load_of(kind), located.above())
        raise missing(kind, located.full_name)
    return located


def _meet(actor: Actor, container: Located, address: Address) -> bool:
    """Have the stores look for the next objects on the way; whether they exist after all."""
    if container.kind == Kind.CATALOG and address.schema is not None:
        if not store_for(container, Kind.SCHEMA).meet(actor, container, address.schema):
            return False
        read_ahead.forget()
        schema = nearest(address)
        return address.leaf is None or (schema is not None and _meet(actor, schema, address))
    if container.kind == Kind.SCHEMA and address.leaf is not None:
        try:
            store = store_for(container, address.leaf_kind)
        except Unsupported:
            return False
        return store.meet(actor, container, address.leaf)
    return False


def read_or_namesake(
    address: Address, target: Located, allow: Callable[[Located], None], read: Callable[[Located], T]
) -> T:
    """Read the object; if it turns out to be gone and another one has its name by now, read that one.

    `allow` checks the rights on each of them, since rights on the first say nothing about the other.
    """
    allow(target)
    try:
        return read(target)
    except NotFound:
        other = nearest(address)
        if other is None or other.kind != target.kind or other.id == target.id:
            raise
    allow(other)
    return read(other)
