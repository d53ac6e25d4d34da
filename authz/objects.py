"""Finds the objects that rights are about, without knowing catalogs, schemas or tables.

The room that has those tables registers a Finder at start; metalakes and roles are looked up here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from authz import policy
from authz.actor import Actor
from metalake.errors import Invalid, NotFound, ProviderUnavailable, StoreUnavailable
from metalake.full_names import undotted
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import BESIDE_CATALOGS, IN_CATALOGS, KINDS, TOP_LEAVES, Kind, slot_of
from metalake.lineage import Address, Located, Node, logical, missing
from metalake.models import Metalake, Securable

BATCH = 5000
MOST_EXTRA = 8  # dots inside the names of a full name that does not escape them
DOTS = "Write a dot inside a name as its percent escape, 2E."
T = TypeVar("T")


class Finder(Protocol):
    """What authz asks of the room that has catalogs, schemas and tables. It checks no permission."""

    def find(self, address: Address, asker: Actor | None = None) -> Sequence[Node] | None:
        """The object with all above it, the metalake first; None if it is missing.

        What only an outside system has is met on behalf of the asker, as a load meets it. A miss runs the queries that
        refusing a hidden object to the asker runs, so that timing does not differ.
        """

    def discover(self, actor: Actor, addresses: Sequence[Address]) -> bool:
        """Have outside systems asked for objects without a row that the actor may load or grant on; whether any was.

        Nothing is asked in a transaction. Raises ProviderUnavailable, also if there was no time for all.
        """

    def ids_of(self, metalake_id: int, addresses: Sequence[Address]) -> list[int | None]:
        """The ids at these addresses, in a constant number of statements."""

    def levels(self, schema: str) -> list[str]:
        """The levels of a nested schema's name."""

    def separator(self) -> str:
        """The text between the levels of a nested schema's name; never a dot or a percent sign."""

    def catalog_types(self, catalog_ids: Iterable[int]) -> dict[int, str]:
        """The type of each of these catalogs, by id."""


_finder: Finder | None = None


def register_finder(finder: Finder) -> None:
    """To be called once at start; a later call replaces the finder."""
    global _finder
    _finder = finder


def finder() -> Finder:
    assert _finder is not None, "no app has registered a finder"
    return _finder


def address_of(metalake: str, kind: Kind, full_name: str) -> Address:
    """The address of a dotted full name; a column's is its table's. Raises Invalid for the wrong number of parts."""
    kind, names = Kind(kind), tuple(undotted(full_name))
    if kind is Kind.COLUMN and len(names) > 3:
        kind, names = Kind.TABLE, names[:3]
    if kind is Kind.COLUMN or len(names) != max(KINDS[kind].depth - 1, 1) or not all(names) or "\x00" in full_name:
        about_dots = f" {DOTS}" if kind in IN_CATALOGS and len(names) >= KINDS[kind].depth else ""
        raise Invalid(f"{full_name!r} is not the full name of a {kind}.{about_dots}", kind="object")
    if kind is Kind.METALAKE:
        return Address(metalake=names[0])
    if kind is Kind.CATALOG:
        return Address(metalake=metalake, catalog=names[0])
    if kind is Kind.SCHEMA:
        return Address(metalake=metalake, catalog=names[0], schema=names[1])
    catalog, schema = names[:2] if len(names) == 3 else (None, None)
    return Address(metalake=metalake, catalog=catalog, schema=schema, leaf=names[-1], leaf_kind=kind)


def resolved(metalake: str, kind: Kind, full_name: str, viewer: Actor | None = None) -> Address:
    """As `address_of`; dots too many in a full name divide levels, or stand in names, of the one object it can mean.

    Only such a name is looked up, among the objects with rows, and what the viewer does not see does not count. Raises
    Invalid for none, and for two objects that are called so.
    """
    parts = full_name.split(".")
    extra = len(parts) - max(KINDS[Kind(kind)].depth - 1, 1)
    if viewer is None or kind not in IN_CATALOGS or not 0 < extra <= MOST_EXTRA:
        return address_of(metalake, kind, full_name)
    readings = [address_of(metalake, kind, ".".join(each)) for each in _spelled(kind, parts)]
    seen = [
        each for each in readings if (nodes := finder().find(each)) and policy.sees(viewer, Located(nodes=tuple(nodes)))
    ]
    if len(seen) > 1:
        ways = " and ".join(
            f"{each.leaf!r} in schema {logical(each.schema or '')!r}" if each.leaf else f"schema {each.names[-1]!r}"
            for each in seen
        )
        way = f"write a dot inside a name as its percent escape, 2E, and {finder().separator()!r} between levels"
        raise Invalid(f"{full_name} may be {ways}: {way}.", kind="object")
    return seen[0] if seen else address_of(metalake, kind, full_name)


def _spelled(kind: Kind, parts: Sequence[str]) -> Iterator[list[str]]:
    """The full names that these parts may mean: every end as the leaf, every division of the rest into levels."""
    for cut in [len(parts)] if kind is Kind.SCHEMA else range(2, len(parts)):
        path = HierarchicalSchema(tuple(parts[1:cut]))
        for each in (path, *path.twins):
            schema = finder().separator().join(each.segments)
            yield [name.replace(".", "%2E") for name in (parts[0], schema, ".".join(parts[cut:])) if name]


def find_metalake(name: str) -> Located | None:
    row = Metalake.objects.filter(parent__isnull=True, name=name).values_list(*Node._fields).first()
    return Located(nodes=(Node(*row),)) if row else None


def find_object(
    metalake: str, kind: Kind, full_name: str, asker: Actor | None = None, *, viewer: Actor | None = None
) -> Located:
    """The object of a metalake by its full name, `resolved` for the viewer, who is the asker if not given.

    Raises NotFound and Invalid of kind "object". With an `asker`, a miss takes as long as refusing a hidden object to
    them.
    """
    address = resolved(metalake, kind, full_name, viewer or asker)
    if address.kind is Kind.METALAKE:
        located = find_metalake(metalake) if address.metalake == metalake else None
    elif address.kind in BESIDE_CATALOGS:
        top = find_metalake(metalake)
        located = top and beside(top, address.kind, address.names[0])
    else:
        nodes = finder().find(address, asker)
        located = Located(nodes=tuple(nodes)) if nodes else None
    if located is None:
        raise missing(address.kind, address.names, error_kind="object")
    return located


def find_asked(metalake: str, kind: Kind, full_name: str, asker: Actor | None) -> Located:
    """As `find_object`, for a question: what only a system has that does not answer is missing."""
    try:
        return find_object(metalake, kind, full_name, asker)
    except StoreUnavailable:
        raise
    except ProviderUnavailable:
        return find_object(metalake, kind, full_name, viewer=asker)


def discover(actor: Actor, metalake: str, addresses: Sequence[Address]) -> None:
    """Before a change that names these objects: those that only an outside system has get their rows."""
    top = find_metalake(metalake)
    absent = [address for address, id in _ids_of(top.id, addresses).items() if id is None] if top and addresses else []
    if absent:
        finder().discover(actor, absent)


def locate_anywhere(actor: Actor, top: Located, addresses: Collection[Address]) -> dict[Address, Located]:
    """As `locate_all`, with what only an outside system has, as far as the actor may load it or grant on it."""
    located = locate_all(top, addresses)
    absent = [address for address in addresses if address not in located]
    if absent and finder().discover(actor, absent):
        located |= locate_all(top, absent)
    return located


def id_of(metalake: str, kind: Kind, full_name: str, viewer: Actor | None = None) -> list[int]:
    """The id of the object that `find_object` finds; empty if it raises, and for a role."""
    try:
        target = find_object(metalake, kind, full_name, viewer=viewer)
    except (Invalid, NotFound):
        return []
    return [] if target.kind is Kind.ROLE else [target.id]


def ids_at(metalake: str, addresses: Sequence[Address]) -> list[int]:
    """The ids of the objects at these addresses that exist, metalakes left out."""
    top = find_metalake(metalake)
    if top is None:
        return []
    return [id for id in _ids_of(top.id, addresses).values() if id is not None]


def beside(top: Located, kind: Kind, name: str) -> Located | None:
    """The role or top leaf of this name in a metalake."""
    row = Securable.objects.filter(parent_id=top.id, slot=slot_of(kind), name=name).values_list(*Node._fields).first()
    return top.below(Node(*row)) if row else None


def _ids_of(metalake_id: int, addresses: Iterable[Address]) -> dict[Address, int | None]:
    """The ids of the objects at these addresses below the metalake, None for a missing one and for a role."""
    below = [address for address in addresses if address.kind is not Kind.METALAKE]
    ids: dict[Address, int | None] = dict.fromkeys(below)
    for some in batches(address for address in below if address.kind not in BESIDE_CATALOGS):
        ids |= zip(some, finder().ids_of(metalake_id, some), strict=True)
    for kind in TOP_LEAVES:
        for some in batches(address for address in below if address.kind is kind):
            rows = Securable.objects.filter(parent_id=metalake_id, slot=slot_of(kind))
            named = dict(rows.filter(name__in=[address.names[0] for address in some]).values_list("name", "pk"))
            ids |= {address: named.get(address.names[0]) for address in some}
    return ids


def find_objects(metalake: Located, addresses: Sequence[Address]) -> Iterator[Located]:
    """Many objects of a metalake, one by one, in a constant number of statements.

    Raises NotFound on reaching one that is missing, so that the caller can refuse a hidden one before it first.
    """
    located = locate_all(metalake, addresses)
    for address in addresses:
        if address not in located:
            raise missing(address.kind, address.names, error_kind="object")
        yield located[address]


def locate_all(metalake: Located, addresses: Iterable[Address]) -> dict[Address, Located]:
    """The objects at these addresses, as find_objects finds them; missing ones are left out."""
    ids: dict[Address, int | None] = {Address(metalake=metalake.name): metalake.id}
    ids |= _ids_of(metalake.id, addresses)
    located = by_ids(id for id in ids.values() if id is not None)
    return {address: located[id] for address, id in ids.items() if id is not None and id in located}


def by_ids(ids: Iterable[int]) -> dict[int, Located]:
    """These objects with all above them, in two statements for each batch; missing ones are left out."""
    rows = {row[0]: row for row in _securables(ids)}
    lineages = {id: tuple(int(part) for part in lineage[1:].split("/")) for id, *_, lineage in rows.values()}
    above = {id for lineage in lineages.values() for id in lineage} - rows.keys()
    nodes = {row[0]: Node(*row[:-1]) for row in [*rows.values(), *_securables(above)]}
    return {
        id: Located(nodes=tuple(nodes[step] for step in lineage))
        for id, lineage in lineages.items()
        if all(step in nodes for step in lineage)
    }


def _securables(ids: Iterable[int]) -> Iterator[tuple]:
    for some in batches(set(ids)):
        yield from Securable.objects.filter(pk__in=some).values_list(*Node._fields, "lineage")


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The items in lists of this size, by default as many as one statement may name."""
    waiting = iter(items)
    while some := list(islice(waiting, size)):
        yield some
