"""Find objects by their names, even those that have no row yet because only an outside system has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TypeVar

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.objects import beside, find_metalake, locate_all
from authz.operations import Operation
from authz.services.change import enter
from catalogs import lookup
from catalogs.leaf_stores import listing_until
from catalogs.lookup import nearest
from catalogs.services.alterations import require_enabled
from catalogs.services.creation_hooks import check_home
from catalogs.stores import store_for
from metalake import prefetch
from metalake.errors import NotFound, ProviderBusy, ProviderUnavailable, StoreUnavailable, Unsupported
from metalake.kinds import IN_CATALOGS, TOP_LEAVES, Kind
from metalake.lineage import Address, Located, Node, missing

T = TypeVar("T")
LOOKS, MOST_CONTAINERS, SECONDS = 10, 20, 30.0  # of one request about many names


def find(actor: Actor, address: Address) -> Located:
    """The object, as `lookup.find` returns it; one without a row is looked up by its store.

    The store looks only for an actor who could load the object if it existed. Not for use in a transaction, but for
    top leaves, which are all rows; for these it raises NotInUse too.
    """
    if address.kind in TOP_LEAVES:
        return _find_top_leaf(actor, address)
    nearest_one = nearest(address)
    if nearest_one is not None and lookup.is_whole(address, nearest_one):
        return nearest_one
    if not look_outside(actor, address, nearest_one):
        raise lookup.miss(actor, address, nearest_one)
    return lookup.find(actor, address)


def look_outside(actor: Actor, address: Address, nearest_one: Located | None) -> bool:
    """Import an object that has no row yet; returns whether it has one now. Do not call in a transaction."""
    if nearest_one is None or lookup.is_whole(address, nearest_one) or nearest_one.disabled:
        return False
    if not _meet(actor, nearest_one, address):
        return False
    prefetch.forget()  # it was read before the object was imported
    return True


def discover(actor: Actor, addresses: Sequence[Address]) -> None:
    """Have the stores look for objects that have no row yet, as `find` does for one, but in few calls.

    Up to LOOKS names in one container are asked for one by one, more by its listing; MOST_CONTAINERS at most, and for
    SECONDS. Not for use in a transaction. Raises ProviderUnavailable, and ProviderBusy if some were met and others
    stayed unasked.
    """
    top, until = find_metalake(addresses[0].metalake), monotonic() + SECONDS
    places = _places(actor, top, addresses) if top else []
    is_over = len(places) > MOST_CONTAINERS
    for container, some in places[:MOST_CONTAINERS]:
        with naming_catalog(container):
            for number, address in enumerate(some):
                if number == 1 and len(some) > LOOKS and _list(actor, container, {each.kind for each in some}, until):
                    break
                if number == LOOKS or monotonic() > until:
                    is_over = True
                    break
                look_outside(actor, address, nearest(address))
    # If nothing was met, another try would get no further: then the first name is refused, which was asked for.
    if is_over and top and locate_all(top, addresses).keys() & set(addresses):
        message = "Not all outside objects of the request could be imported in time. Send it again to continue."
        raise ProviderBusy(message, kind=Kind.CATALOG)


def _places(actor: Actor, top: Located, addresses: Sequence[Address]) -> list[tuple[Address, list[Address]]]:
    """The containers that the actor may have looked into, with the addresses in each, in their order."""
    inside = defaultdict[Address, list[Address]](list)
    for address in addresses:
        if address.kind in IN_CATALOGS:
            inside[address.of_catalog() if address.leaf is None else address.of_schema()].append(address)
    known = locate_all(top, {*inside, *(container.of_catalog() for container in inside)})

    def may_look_into(container: Address, some: Sequence[Address]) -> bool:
        near = known.get(container) or known.get(container.of_catalog())
        kinds = {each.kind for each in some} if near and near.kind is Kind.SCHEMA else {Kind.SCHEMA}
        return near is not None and any(may_look(actor, near, kind) for kind in kinds)

    return [(container, some) for container, some in inside.items() if may_look_into(container, some)]


@contextmanager
def naming_catalog(address: Address) -> Iterator[None]:
    """Whatever an outside system refuses in the block is refused with the name of its catalog."""
    try:
        yield
    except ProviderUnavailable as failure:
        if not isinstance(failure, StoreUnavailable):
            failure.message = f"Catalog {address.catalog}: {failure.message}"
            failure.args = (failure.message,)
        raise


def _list(actor: Actor, container: Address, kinds: Collection[Kind], until: float) -> bool:
    """List what is in a container; whether that answers for all in it: one from before knows no new names."""
    near, begun = nearest(container), timezone.now()
    if near is None or near.disabled or not lookup.is_whole(container, near):
        return True
    is_new = True
    for kind in kinds:
        with suppress(NotFound, Unsupported), listing_until(until):
            if may_look(actor, near, kind):
                taken_at = store_for(near, kind).listing(actor, near, refresh=False).taken_at
                is_new &= taken_at is None or taken_at >= begun
    return is_new


def may_look(actor: Actor, container: Located, kind: Kind, name: str = "") -> bool:
    """Whether the actor could load an object of this kind there, or grant on it, if it were the catalog's owner's."""
    owner = container.catalog
    as_if = container.below(Node(0, kind, name, owner.owner_user_id, owner.owner_group_id))
    return any(policy.permits(actor, asked, as_if) for asked in (operations.load_of(kind), operations.grant_on(kind)))


def find_schema(actor: Actor, address: Address) -> Located:
    """The schema of an address, as `find` returns it."""
    return find(actor, address.of_schema())


def _find_top_leaf(actor: Actor, address: Address) -> Located:
    """The same in a metalake that the actor is a member of."""
    top, kind, (name,) = enter(actor, address.metalake), address.kind, address.names
    located = beside(top, kind, name)
    if located is None:
        policy.check_as_hidden(actor, top.below(Node(0, kind, "", lookup.NO_OWNER, None)))
        raise missing(kind, [name])
    return located


def of_kind(actor: Actor, located: Located, kind: Kind) -> Located:
    """The located object if it is of this kind, since kinds may share a name space. Raises NotFound otherwise."""
    if located.kind != kind:
        if not policy.sees(actor, located.above()):
            raise policy.hidden(actor, operations.load_of(kind), located.above())
        raise missing(kind, located.full_name)
    return located


def require_table(actor: Actor, located: Located) -> Located:
    """The located object if it is a table. Raises NotFound otherwise."""
    return of_kind(actor, located, Kind.TABLE)


def find_leaf(actor: Actor, address: Address, kind: Kind) -> Located:
    """The object of an address that has a row, in a transaction: calls no outside system. Raises NotFound."""
    return of_kind(actor, lookup.find(actor, address), kind)


def find_table(actor: Actor, address: Address) -> Located:
    return find_leaf(actor, address, Kind.TABLE)


def located_now(located: Located) -> Located:
    """Re-read the object by id, with its current names. Raises NotFound."""
    fresh = lookup.by_id(located.id)
    if fresh is None:
        raise located.missing()
    return fresh


def require_home(actor: Actor, address: Address, asks: Operation = operations.CREATE_TABLE) -> Located:
    """The schema to create something in, after checking the right. A hidden one is answered like a missing one."""
    return as_home(actor, lookup.find(actor, address.of_schema()), asks)


def as_home(actor: Actor, home: Located, asks: Operation) -> Located:
    """The schema, after checking that the actor may create an object in it or move one there."""
    policy.require(actor, asks, home)
    require_enabled(home)
    check_home(actor, home)
    return home


def resolve_parent(actor: Actor, address: Address, asks: Operation = operations.CREATE_TABLE) -> Located:
    """As `require_home`, but a schema without a row is looked up in its own system. Not for use in a transaction."""
    return as_home(actor, find_schema(actor, address), asks)


def _meet(actor: Actor, container: Located, address: Address) -> bool:
    """Have the stores look for the next objects on the way; whether they exist after all."""
    if container.kind == Kind.CATALOG and address.schema is not None:
        if not store_for(container, Kind.SCHEMA).discover(actor, container, address.schema):
            return False
        prefetch.forget()
        schema = nearest(address)
        return address.leaf is None or (schema is not None and _meet(actor, schema, address))
    if container.kind == Kind.SCHEMA and address.leaf is not None:
        try:
            store = store_for(container, address.leaf_kind)
        except Unsupported:
            return False
        return store.discover(actor, container, address.leaf)
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
