"""Resolves securable objects without depending on catalogs, schemas or tables.

The package with those tables registers a Finder at startup; metalakes and roles are looked up here.
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
MOST_EXTRA = 8  # unescaped dots within the names of a full name
DOTS = "Write a dot inside a name as its percent escape, 2E."
T = TypeVar("T")


class Finder(Protocol):
    """The interface to the package with catalogs, schemas and tables. It checks no permissions."""

    def find(self, address: Address, asker: Actor | None = None) -> Sequence[Node] | None:
        """The object with its ancestors, metalake first; None if missing.

        An object that exists only in an outside system is imported on behalf of the asker, as a load does. A miss runs
        the same queries as denying the asker a hidden object, so that timing does not differ.
        """

    def discover(self, actor: Actor, addresses: Sequence[Address]) -> bool:
        """Import objects without rows from outside systems, if the actor may load or grant on them; True if any was.

        No remote calls in a transaction. Raises ProviderUnavailable, also if time ran out.
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
    """Call it once at startup; a later call replaces the finder."""
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
    """As `address_of`; surplus dots in a full name are resolved as level separators or parts of names.

    Only such a name is looked up, among objects with rows that the viewer can see. Raises Invalid if no or several
    objects match.
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
    """The possible full names: every suffix as the leaf, every division of the rest into levels."""
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
    """An object by its full name, `resolved` for the viewer, by default the asker.

    Raises NotFound and Invalid of kind "object". With an `asker`, a miss takes as long as denying them a hidden object.
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
    """As `find_object`, for reads: an object only in an outside system that is unavailable counts as missing."""
    try:
        return find_object(metalake, kind, full_name, asker)
    except StoreUnavailable:
        raise
    except ProviderUnavailable:
        return find_object(metalake, kind, full_name, viewer=asker)


def discover(actor: Actor, metalake: str, addresses: Sequence[Address]) -> None:
    """Before a change that names these objects: import those that exist only in an outside system."""
    top = find_metalake(metalake)
    absent = [address for address, id in _ids_of(top.id, addresses).items() if id is None] if top and addresses else []
    if absent:
        finder().discover(actor, absent)


def locate_anywhere(actor: Actor, top: Located, addresses: Collection[Address]) -> dict[Address, Located]:
    """As `locate_all`, importing objects from outside systems if the actor may load or grant on them."""
    located = locate_all(top, addresses)
    absent = [address for address in addresses if address not in located]
    if absent and finder().discover(actor, absent):
        located |= locate_all(top, absent)
    return located


def id_of(metalake: str, kind: Kind, full_name: str, viewer: Actor | None = None) -> list[int]:
    """The id of the object that `find_object` returns, as a list; empty if it raises, and for a role."""
    try:
        target = find_object(metalake, kind, full_name, viewer=viewer)
    except (Invalid, NotFound):
        return []
    return [] if target.kind is Kind.ROLE else [target.id]


def ids_at(metalake: str, addresses: Sequence[Address]) -> list[int]:
    """The ids of existing objects at these addresses, without metalakes."""
    top = find_metalake(metalake)
    if top is None:
        return []
    return [id for id in _ids_of(top.id, addresses).values() if id is not None]


def beside(top: Located, kind: Kind, name: str) -> Located | None:
    """The role or top leaf with this name in a metalake."""
    row = Securable.objects.filter(parent_id=top.id, slot=slot_of(kind), name=name).values_list(*Node._fields).first()
    return top.below(Node(*row)) if row else None


def _ids_of(metalake_id: int, addresses: Iterable[Address]) -> dict[Address, int | None]:
    """The ids of objects at these addresses below the metalake; None if missing, and for a role."""
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
    """Many objects of a metalake, yielded one by one, in a constant number of statements.

    Raises NotFound only on reaching a missing one, so that the caller can first deny a hidden one before it.
    """
    located = locate_all(metalake, addresses)
    for address in addresses:
        if address not in located:
            raise missing(address.kind, address.names, error_kind="object")
        yield located[address]


def locate_all(metalake: Located, addresses: Iterable[Address]) -> dict[Address, Located]:
    """The objects at these addresses; missing ones are left out."""
    ids: dict[Address, int | None] = {Address(metalake=metalake.name): metalake.id}
    ids |= _ids_of(metalake.id, addresses)
    located = by_ids(id for id in ids.values() if id is not None)
    return {address: located[id] for address, id in ids.items() if id is not None and id in located}


def by_ids(ids: Iterable[int]) -> dict[int, Located]:
    """These objects with their ancestors, in two statements per batch; missing ones are left out."""
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
    """The items in lists of this size, by default what fits into one statement."""
    waiting = iter(items)
    while some := list(islice(waiting, size)):
        yield some
