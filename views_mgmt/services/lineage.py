"""View lineage, level by level: which views read an object, and what a view reads, limited to what the actor may load.

A view that the actor may not load hides everything behind it. Lineage is of the last analysed version
(`views_mgmt.services.dependencies`), shortly after a view's write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F, QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids, locate_all
from catalogs.models import Catalog
from catalogs.services import resolution
from catalogs.services.alterations import require_enabled
from metalake.blocking import all_of
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt.models import ViewRead
from views_mgmt.services.dependencies import Names, key_of, key_within

MOST_LEVELS = 16
MOST_LINKS = 2000  # in one direction


@dataclass(frozen=True)
class Link:
    """A lineage edge: a view reads an object; `level` is 1 next to the object of the request.

    `target` is None if it does not exist or may not be loaded; `names` are as in the SQL. `columns` are pairs of a
    view column and a column that it derives from. A guess is a second interpretation of the names.
    """

    view: Located
    names: Names
    target: Located | None
    level: int
    dialects: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    is_guess: bool

    def is_in(self, dialect: str) -> bool:
        """Whether a dialect has this edge; the dialect's case does not matter."""
        return dialect.casefold() in map(str.casefold, self.dialects)


Step = Callable[[Sequence[Located], int], list[Link]]


def readers_of(actor: Actor, address: Address) -> list[Link]:
    """The views that read a table or view, directly or through other views."""
    start = _loadable(actor, address)
    names = NamesIn(start.metalake.id)

    def step(targets: Sequence[Located], level: int) -> list[Link]:
        by_names = {names.of(target): target for target in targets}
        keys = {key_of(each) for each in by_names} | {key_within(each.catalog.id, names.of(each)) for each in targets}
        rows = all_of(reads_noted().filter(metalake_id=start.metalake.id, key__in=keys))
        views = _visible(actor, {row.view_id for row in rows})
        links = (_link(row, names, views, by_names.get(names.stored(row)), level) for row in rows)
        return [each for each in links if each is not None and each.target is not None]

    return _walk(start, step, lambda link: link.view)


def read_by(actor: Actor, address: Address) -> list[Link]:
    """What a view reads, directly or through other views."""
    start = _loadable(actor, address)
    names = NamesIn(start.metalake.id)

    def step(views: Sequence[Located], level: int) -> list[Link]:
        rows = all_of(reads_noted().filter(view_id__in=[view.id for view in views if view.kind is Kind.VIEW]))
        targets = targets_of(actor, start.top, {names.stored(row) for row in rows})
        known = {view.id: view for view in views}
        links = (_link(row, names, known, targets.get(names.stored(row)), level) for row in rows)
        return [each for each in links if each is not None and (each.target is not None or not each.is_guess)]

    return _walk(start, step, lambda link: link.target)


def _loadable(actor: Actor, address: Address) -> Located:
    target = resolution.of_kind(actor, resolution.find(actor, address), address.leaf_kind)
    policy.require(actor, operations.load_of(address.leaf_kind), target)
    require_enabled(target)
    return target


def _walk(start: Located, step: Step, leads_to: Callable[[Link], Located | None]) -> list[Link]:
    """The edges of each level, breadth-first; visited objects are not walked again, so cycles terminate."""
    links: list[Link] = []
    reached, frontier, level = {start.id}, [start], 1
    while frontier and level <= MOST_LEVELS and len(links) < MOST_LINKS:
        new = step(frontier, level)
        links += new
        ahead = {each.id: each for each in map(leads_to, new) if each is not None and each.id not in reached}
        reached |= ahead.keys()
        frontier, level = list(ahead.values()), level + 1
    return links[:MOST_LINKS]


def reads_noted() -> QuerySet[ViewRead]:
    """The ViewRead rows of existing views, annotated for `NamesIn.stored`."""
    rows = ViewRead.objects.filter(view__deleted_at=0).annotate(own_id=F("view__catalog_id"))
    return rows.order_by("view_id", "id")


def _link(row: ViewRead, names: NamesIn, views: dict[int, Located], target: Located | None, level: int) -> Link | None:
    view = views.get(row.view_id)
    if view is None:
        return None
    # Columns expanded from `*` are shown only for the object that they come from, which the actor may load.
    known = [] if target is None else [target.id]
    columns = tuple((one, other) for one, other, *of in row.columns if not of or of == known)
    return Link(view, names.written(row), target, level, tuple(row.dialects), columns, row.is_guess)


def _visible(actor: Actor, ids: Iterable[int]) -> dict[int, Located]:
    """The objects among these that the actor may load."""
    return {id: each for id, each in by_ids(ids).items() if policy.permits(actor, operations.load_of(each.kind), each)}


def targets_of(actor: Actor, metalake: Located, names: Iterable[Names]) -> dict[Names, Located]:
    """The tables and views with these names that the actor may load."""
    located = located_at(metalake, names).items()
    return {name: each for name, each in located if policy.permits(actor, operations.load_of(each.kind), each)}


def located_at(metalake: Located, names: Iterable[Names]) -> dict[Names, Located]:
    """The tables and views with these names, without a permission check."""
    addresses = {
        Address(
            metalake=metalake.name,
            catalog=catalog,
            schema=HierarchicalSchema.from_physical(schema).segments,
            leaf=name,
            leaf_kind=kind,
        ): (catalog, schema, name)
        for catalog, schema, name in names
        for kind in (Kind.TABLE, Kind.VIEW)
    }
    located = locate_all(metalake, addresses)
    return {addresses[address]: each for address, each in located.items() if address in addresses}


class NamesIn:
    """Names as stored in a metalake's catalogs: in lower case where a catalog folds case."""

    def __init__(self, metalake_id: int) -> None:
        catalogs = list(Catalog.objects.filter(parent_id=metalake_id).values_list("pk", "name", "folds_case"))
        self.by_id = {pk: name for pk, name, _ in catalogs}
        self.folding = frozenset(name for _, name, folds in catalogs if folds)

    def of(self, target: Located) -> Names:
        return self.folded((target.catalog.name, target.path.physical, target.name))

    def stored(self, row: ViewRead) -> Names:
        return self.folded(self.written(row))

    def written(self, row: ViewRead) -> Names:
        """As in the SQL, with the current name of the view's own catalog."""
        own_id: int = row.own_id  # type: ignore[attr-defined]
        catalog = self.by_id.get(own_id, "") if row.catalog == ViewRead.OWN else row.catalog
        return catalog, row.schema, row.name

    def folded(self, names: Names) -> Names:
        catalog, schema, name = names
        return (catalog, schema.lower(), name.lower()) if catalog in self.folding else names
