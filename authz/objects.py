"""How rights find the objects they are about, without knowing catalogs, schemas or tables.

Whoever keeps those tables registers a Finder at start; the metalake and its roles are found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from authz.actor import Actor
from authz.models import Role
from metalake.errors import Invalid, NotFound
from metalake.kinds import KINDS, Kind
from metalake.lineage import Address, Located, Node, missing
from metalake.models import Metalake, Securable
from metalake.names import undotted

BATCH = 5000
T = TypeVar("T")


class Finder(Protocol):
    """What authz asks of those who keep the tables; asks no permission."""

    def find(self, address: Address, asker: Actor | None = None) -> Sequence[Node] | None:
        """The object with all above it, the metalake first. Of a miss the store is asked what the asker's refusal
        asks of a hidden object.
        """

    def ids_of(self, metalake_id: int, addresses: Sequence[Address]) -> list[int | None]:
        """The ids at these addresses, in a constant number of statements."""

    def levels(self, schema: str) -> list[str]:
        """The levels of a nested schema's name."""

    def separator(self) -> str:
        """What stands between the levels of a nested schema's name; never a dot or a percent sign."""

    def catalog_types(self, catalog_ids: Iterable[int]) -> dict[int, str]:
        """What each of these catalogs holds."""


_finder: list[Finder] = []


def register_finder(finder: Finder) -> None:
    """Called once at start; a later call replaces the finder."""
    _finder[:] = [finder]


def finder() -> Finder:
    return _finder[0]


NODE = ("id", "kind", "name", "owner_user_id", "owner_group_id")


def address_of(metalake: str, kind: Kind, full_name: str) -> Address:
    """Where a dotted full name points; a column's points to its table. Raises Invalid for the wrong number of parts."""
    kind, names = Kind(kind), tuple(undotted(full_name))
    if kind is Kind.COLUMN and len(names) > 3:
        kind, names = Kind.TABLE, names[:3]
    if kind is Kind.COLUMN or len(names) != max(KINDS[kind].depth - 1, 1) or not all(names) or "\x00" in full_name:
        raise Invalid(f"{full_name!r} is not the full name of a {kind}.", kind="object")
    if kind is Kind.METALAKE:
        return Address(metalake=names[0])
    if kind is Kind.CATALOG:
        return Address(metalake=metalake, catalog=names[0])
    if kind is Kind.SCHEMA:
        return Address(metalake=metalake, catalog=names[0], schema=names[1])
    catalog, schema = names[:2] if len(names) == 3 else (None, None)
    return Address(metalake=metalake, catalog=catalog, schema=schema, leaf=names[-1], leaf_kind=kind)


def find_metalake(name: str) -> Located | None:
    row = Metalake.objects.filter(parent__isnull=True, name=name).values_list(*NODE).first()
    return Located(nodes=(Node(*row),)) if row else None


def find_object(metalake: str, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
    """The object of a metalake by its full name. Raises NotFound and Invalid of kind "object".

    Where its `asker` is refused what is hidden, a miss takes as long.
    """
    address = address_of(metalake, kind, full_name)
    if address.kind is Kind.METALAKE:
        located = find_metalake(metalake) if address.metalake == metalake else None
    elif address.kind is Kind.ROLE:
        located = find_role(metalake, address.names[0])
    else:
        nodes = finder().find(address, asker)
        located = Located(nodes=tuple(nodes)) if nodes else None
    if located is None:
        raise missing(address.kind, address.names, told_as="object")
    return located


def id_of(metalake: str, kind: Kind, full_name: str) -> list[int]:
    """The id that `find_object` finds; none where it refuses, and of a role."""
    try:
        target = find_object(metalake, kind, full_name)
    except (Invalid, NotFound):
        return []
    return [] if target.kind is Kind.ROLE else [target.id]


def ids_at(metalake: str, addresses: Sequence[Address]) -> list[int]:
    """The ids that `find_objects` finds, of what is there."""
    top = find_metalake(metalake)
    if top is None:
        return []
    below = [address for address in addresses if address.kind is not Kind.METALAKE]
    return [id for some in batches(below) for id in finder().ids_of(top.id, some) if id is not None]


def find_role(metalake: str, name: str) -> Located | None:
    top = find_metalake(metalake)
    if top is None:
        return None
    row = Role.objects.filter(parent_id=top.id, name=name).values_list(*NODE).first()
    return top.below(Node(*row)) if row else None


def find_objects(metalake: Located, addresses: Sequence[Address]) -> Iterator[Located]:
    """Many objects of a metalake, one by one, in a constant number of statements.

    Raises NotFound on reaching one that is missing: one before it that is hidden is refused first, or it would be told.
    """
    located = locate_all(metalake, addresses)
    for address in addresses:
        if address not in located:
            raise missing(address.kind, address.names, told_as="object")
        yield located[address]


def locate_all(metalake: Located, addresses: Iterable[Address]) -> dict[Address, Located]:
    """The objects at these addresses, as find_objects; what is missing is left out."""
    ids: dict[Address, int | None] = {Address(metalake=metalake.name): metalake.id}
    for some in batches(address for address in addresses if address.kind is not Kind.METALAKE):
        ids |= zip(some, finder().ids_of(metalake.id, some), strict=True)
    located = by_ids(id for id in ids.values() if id is not None)
    return {address: located[id] for address, id in ids.items() if id is not None and id in located}


def by_ids(ids: Iterable[int]) -> dict[int, Located]:
    """These objects with all above them, in two statements for each batch; what is gone is left out."""
    found = {row[0]: row for row in _securables(ids)}
    lineages = {id: tuple(int(part) for part in lineage[1:].split("/")) for id, *_, lineage in found.values()}
    above = {id for lineage in lineages.values() for id in lineage} - found.keys()
    nodes = {row[0]: Node(*row[:-1]) for row in [*found.values(), *_securables(above)]}
    return {
        id: Located(nodes=tuple(nodes[step] for step in lineage))
        for id, lineage in lineages.items()
        if all(step in nodes for step in lineage)
    }


def _securables(ids: Iterable[int]) -> Iterator[tuple]:
    for some in batches(set(ids)):
        yield from Securable.objects.filter(pk__in=some).values_list(*NODE, "lineage")


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """As many at a time as one statement may name."""
    waiting = iter(items)
    while some := list(islice(waiting, BATCH)):
        yield some
