"""Address -> lineage, in one statement. Checks no permissions, but a miss does not reveal hidden objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from authz import policy, snapshot
from authz.actor import Actor
from authz.callers.identity import EPOCH
from catalogs.lookup_statement import BY_ID, BY_NAMES, COLUMNS, parameters_of, statement
from metalake import prefetch
from metalake.errors import NotFound
from metalake.hierarchy import split_logical
from metalake.kinds import CONTAINERS, KINDS, Kind
from metalake.lineage import Address, Located, Node, logical, missing
from metalake.prefetch import ReadAhead
from metalake.statements import Row, fetch

NO_OWNER = -1  # an id that no account has


def nearest(address: Address) -> Located | None:
    """The object, or the deepest existing container on its path; None if the metalake does not exist.

    A table's nearest container is its schema itself, a schema's its catalog.
    """
    if (ahead := prefetch.take(address)) is not None:
        return ahead.located
    return nearest_in(address, fetch(statement(BY_NAMES), parameters_of(address)))


def nearest_in(address: Address, rows: Sequence[Row]) -> Located | None:
    """The same from the rows of the statement for this address."""
    located = _located_in(rows)
    return located if located and located.metalake.name == address.metalake else None


@contextmanager
def refreshed_at(address: Address, actor: Actor) -> Iterator[Actor]:
    """The actor with the current policy; the object at the address is prefetched by the same statement."""
    rows = fetch(statement(BY_NAMES, EPOCH), [*parameters_of(address), 1])
    if not rows:
        yield actor.refreshed()
        return
    fresh = replace(actor, policy=snapshot.at(*rows[0][COLUMNS:]))
    with ReadAhead(address, nearest_in(address, rows)):
        yield fresh


def find(actor: Actor, address: Address) -> Located:
    """The object, whether the actor may see it or not.

    Raises NotFound for the first missing object on the path; if an object above that is hidden, for the hidden one.
    """
    located = nearest(address)
    if located is None or not is_whole(address, located):
        raise miss(actor, address, located)
    return located


def is_whole(address: Address, located: Located) -> bool:
    """Whether `located` is the object of the address, not a container on its path."""
    return KINDS[located.kind].depth >= address.depth


def miss(actor: Actor, address: Address, nearest: Located | None) -> NotFound:
    """The NotFound for an address that leads only as far as `nearest`.

    Runs every check that a hidden object would get, the store's included, so that both take equally long.
    """
    kind = _missing_kind(address, nearest)
    absent = Located(nodes=(*(nearest.nodes if nearest else ()), *_absent(kind, address)))
    policy.check_as_hidden(actor, absent)
    if kind == Kind.SCHEMA and address.leaf is not None:
        policy.check_as_hidden(actor, Located(nodes=(*absent.nodes, *_absent(address.leaf_kind, address))))
    unseen = policy.unseen(actor, absent)
    return unseen if unseen.kind != kind else missing(kind, _names_down_to(kind, address))


def _absent(kind: Kind, address: Address) -> list[Node]:
    """Placeholder nodes for the missing object, without name or real owner; one per level of a schema."""
    levels = 1
    if kind == Kind.SCHEMA and address.schema is not None:
        levels = len(split_logical(address.schema) if isinstance(address.schema, str) else address.schema)
    return [Node(0, kind, "", NO_OWNER, None)] * levels


def by_id(securable_id: int) -> Located | None:
    return _located_in(fetch(statement(BY_ID), [securable_id]))


def _located_in(rows: Sequence[Row]) -> Located | None:
    if not rows:
        return None
    is_in_catalog = len(rows) > 1 and rows[1][1] == Kind.CATALOG
    own, properties = (rows[1][5], rows[1][7]) if is_in_catalog else ("  ", None)
    catalog_type, _, provider = own[2:].partition(" ")
    return Located(
        nodes=tuple([Node(*row[:5]) for row in rows]),
        disabled=next((row[1] for row in rows if row[5] is not None and row[5][0] == "0"), None),
        nested=own[1] == "1",
        catalog_type=catalog_type or None,
        provider=provider or None,
        properties=properties,
        own_properties=rows[-1][7],
        metadata_location=rows[-1][6],
    )


def _missing_kind(address: Address, nearest: Located | None) -> Kind:
    """The kind of the first missing object of the address."""
    known = KINDS[nearest.kind].depth if nearest else 0
    return CONTAINERS[known] if known < len(CONTAINERS) else address.leaf_kind


def _names_down_to(kind: Kind, address: Address) -> list[str]:
    """The names of the address down to the object of this kind."""
    if kind == Kind.METALAKE:
        return [address.metalake]
    names = [address.catalog or ""]
    if kind != Kind.CATALOG:
        names.append(logical(address.schema or ""))
    if kind not in CONTAINERS:
        names.append(address.leaf or "")
    return names
