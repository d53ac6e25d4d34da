"""The objects that changes of rights may affect, as a tree; leaves without grants are only counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import Count, Q

from authz.objects import batches, finder
from metalake.kinds import BESIDE_CATALOGS, CONTAINERS, Kind
from metalake.lineage import Located
from metalake.models import Securable, below

FEW = 100


@dataclass(slots=True, eq=False)
class Node:
    """An object, or `count` identical leaves."""

    id: int
    kind: Kind
    owner_user: int | None
    owner_group: int | None
    parent: Node | None
    catalog_type: str | None
    count: int = 1
    children: dict[int, Node] = field(default_factory=dict)


class Tree:
    """The objects at and below some regions of a metalake, with their ancestors.

    Leaves in `separate` are separate nodes; the others are one node per schema, kind and owner.
    `owned` are the nodes of each owner ("user" or "group", id). About `room` objects are read (None: all), the first
    ones of each region; `is_cut` says that there are more.
    """

    def __init__(self, top: Located, regions: Collection[int], separate: Collection[int], room: int | None) -> None:
        self.top = top
        self.nodes: dict[int, Node] = {}
        self.owned: dict[tuple[str, int], set[Node]] = defaultdict(set)
        self.types: dict[int, str] = {}
        rows = list(_by_ids(regions))
        leaves = [row for row in rows if row.kind not in CONTAINERS]
        ways = _outermost({row.lineage for row in rows if row.kind in CONTAINERS})
        if len(ways) > FEW:
            ways = [self.top.lineage]
        ranges = [_range(way, room and room // len(ways)) for way in ways]
        self.is_cut = any(is_cut for _, is_cut in ranges)
        containers = [row for objects, _ in ranges for row in _rows(objects, kind__in=CONTAINERS)]
        self._add([*_by_ids({self.top.id}), *containers, *leaves])
        inside = set(separate) - self.nodes.keys()
        known = [row for row in _by_ids(inside) if row.kind not in CONTAINERS and _is_in(row, ways)]
        alike: Counter[tuple] = Counter()
        for objects, _ in ranges:
            leaf = Securable.objects.filter(objects).exclude(kind__in=[*CONTAINERS, *BESIDE_CATALOGS]).order_by()
            for *key, count in leaf.values_list("parent_id", "kind", "owner_user_id", "owner_group_id").annotate(
                count=Count("id")
            ):
                alike[tuple(key)] += count
        self._add(known)
        for row in {row.id: row for row in [*leaves, *known] if _is_in(row, ways)}.values():
            alike[int(row.lineage.split("/")[-2]), row.kind, row.owner_user, row.owner_group] -= 1
        for place, ((parent, kind, user, group), count) in enumerate(alike.items(), 1):
            if count > 0 and parent in self.nodes:
                self._place(-place, kind, user, group, self.nodes[parent], count)

    def _add(self, rows: list[_Row]) -> None:
        """Add nodes for these rows, parents first; missing parents are read too."""
        steps = {int(step) for row in rows for step in row.lineage[1:].split("/")}
        missing = steps - {row.id for row in rows} - self.nodes.keys()
        by_id = {row.id: row for row in [*rows, *_by_ids(missing)]}
        catalogs = {row.id for row in by_id.values() if row.kind == Kind.CATALOG} - self.types.keys()
        if catalogs:
            self.types |= finder().catalog_types(catalogs)
        for row in sorted(by_id.values(), key=lambda row: row.lineage.count("/")):
            if row.id in self.nodes:
                continue
            above = row.lineage.split("/")[-2]
            parent = self.nodes.get(int(above)) if above else None
            if parent or not above:
                self._place(row.id, row.kind, row.owner_user, row.owner_group, parent, 1)

    def _place(self, id: int, kind: str, user: int | None, group: int | None, parent: Node | None, count: int) -> None:
        type_ = self.types.get(id) if kind == Kind.CATALOG else parent.catalog_type if parent else None
        node = Node(id, Kind(kind), user, group, parent, type_, count)
        self.nodes[id] = node
        if parent:
            parent.children[id] = node
        self.owned[("user", user) if user is not None else ("group", group or 0)].add(node)


class _Row(NamedTuple):
    id: int
    kind: str
    lineage: str
    owner_user: int | None
    owner_group: int | None


_FIELDS = ("id", "kind", "lineage", "owner_user_id", "owner_group_id")


def _rows(where: Q, **also: Any) -> list[_Row]:
    return [_Row(*row) for row in Securable.objects.filter(where, **also).values_list(*_FIELDS)]


def _by_ids(ids: Iterable[int]) -> Iterator[_Row]:
    for some in batches(ids):
        yield from _rows(Q(pk__in=some))


def _range(way: str, room: int | None) -> tuple[Q, bool]:
    """A filter for what is at or below a lineage, at most the first `room` below it, and whether there are more."""
    end = f"{way}0"
    if room is not None:
        inside = Securable.objects.filter(below(way)).order_by("lineage").values_list("lineage", flat=True)
        if beyond := list(inside[room : room + 1]):
            return Q(lineage__gte=way, lineage__lt=beyond[0]), True
    return Q(lineage__gte=way, lineage__lt=end), False


def _is_in(row: _Row, ways: Iterable[str]) -> bool:
    return any(row.lineage.startswith(f"{way}/") for way in ways)


def _outermost(ways: set[str]) -> list[str]:
    """The lineages that do not lie below another of them."""
    outermost: list[str] = []
    for way in sorted(ways, key=lambda way: way.split("/")):
        if not outermost or not f"{way}/".startswith(f"{outermost[-1]}/"):
            outermost.append(way)
    return outermost
