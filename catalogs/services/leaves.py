"""List and describe the objects of a schema, of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from authz import operations, policy
from authz.actor import Actor
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.services.alterations import require_enabled
from catalogs.services.children import children_shown
from catalogs.services.resolution import find, of_kind, read_or_namesake
from catalogs.stores import store_for
from metalake.kinds import Kind
from metalake.lineage import Address, Located


@dataclass(frozen=True)
class LeafList:
    """Names in order; `taken_at` is when an outside system returned them."""

    names: list[str]
    taken_at: datetime | None = None


def list_leaves(
    actor: Actor,
    address: Address,
    kind: Kind,
    after: str | None = None,
    limit: int | None = None,
    *,
    refresh: bool = False,
) -> LeafList:
    """The names of a kind's objects in a schema that the actor may load, in order; after `after`, at most `limit`."""
    return leaves_of(actor, schema_to_list(actor, address, kind), kind, after, limit, refresh=refresh)


def leaves_of(
    actor: Actor,
    schema: Located,
    kind: Kind,
    after: str | None = None,
    limit: int | None = None,
    *,
    refresh: bool = False,
) -> LeafList:
    """The same for a schema that is located, and that the actor sees. Raises NotInUse."""
    require_enabled(schema)
    listing = store_for(schema, kind).listing(actor, schema, refresh=refresh)
    return visible_names(actor, schema, kind, listing, after, limit)


def schema_to_list(actor: Actor, address: Address, kind: Kind) -> Located:
    """The schema of an address, to list one kind of its objects. Raises unless it is in use and the actor sees it."""
    schema = find(actor, address)
    policy.require_seen(actor, schema, operations.listing(kind) if schema.kind is Kind.SCHEMA else None)
    require_enabled(schema)
    return schema


def visible_names(
    actor: Actor, schema: Located, kind: Kind, listing: LeafListing, after: str | None, limit: int | None
) -> LeafList:
    """The names in a listing that the actor may load, from the rows, which the listing has refreshed."""
    showing = policy.shows_leaves(actor, schema, kind)
    wanted = None if listing.names is not None else limit
    names = [name for _, name in children_shown(actor, schema, kind, showing, after, wanted)]
    if listing.names is not None:
        names = [name for name in names if name in listing.names][:limit]
    return LeafList(names, listing.taken_at)


def describe_leaf(actor: Actor, address: Address) -> tuple[Located, LeafDescription]:
    """The object that currently has this name, and its description."""
    kind = address.leaf_kind

    def allow(leaf: Located) -> None:
        policy.require(actor, operations.load_of(kind), leaf)
        require_enabled(leaf)

    def read(leaf: Located) -> tuple[Located, LeafDescription]:
        return leaf, store_for(leaf, kind).describe(actor, leaf)

    return read_or_namesake(address, of_kind(actor, find(actor, address), kind), allow, read)
