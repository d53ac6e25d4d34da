"""Objects by the beginning of a name or by a path, among what an actor sees.

Names are compared without regard to the case of ASCII letters. A region of up to SMALL objects is read, so that words
inside names are looked up there too; in larger ones the index of names gives those that begin with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat, Lower

from access.explain.regions import Region, Seen
from authz import policy
from authz.actor import Actor
from authz.objects import by_ids, finder
from metalake.full_names import undotted
from metalake.kinds import CONTAINERS, LEAVES, Kind, slot_of
from metalake.lineage import Located
from metalake.models import Securable

SMALL = 5000
READ_REGIONS = 50  # that are read one by one
MOST_PARENTS = 5  # containers of one name that a path is followed in

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_LAST = chr(0x10FFFF)


class Matches(NamedTuple):
    """Objects, the best first. `is_cut`: there may be more. `beginnings_only`: words inside names were not searched
    everywhere.
    """

    objects: list[Located]
    is_cut: bool = False
    beginnings_only: bool = False


def fold(text: str) -> str:
    """The text as the database's index of names has it: ASCII letters in lower case."""
    return text.translate(_LOWER)


def starts_word(name: str, text: str) -> bool:
    """Whether a word of the name begins with the folded text; words are divided by all but letters and digits."""
    return re.search(r"(?<![^\W_])" + re.escape(text), fold(name)) is not None


def by_name(actor: Actor, seen: Seen, text: str, limit: int) -> Matches:
    """The objects of a metalake in whose name a word begins with the text; `seen` is what the actor sees of it."""
    wanted = fold(text)
    return _matching(actor, seen, limit, wanted, lambda name: starts_word(name, wanted), f"{wanted}{_LAST}")


def by_path(actor: Actor, seen: Seen, text: str, limit: int) -> Matches:
    """The objects at the end of a path, or of its last part, whose last name may be cut: `lake.travel:n`, `travel:n`.

    Everything but a leaf may stand at its beginning. No object for a text that is no path.
    """
    first, *middle = steps = [fold(step) for step in _steps(text)]
    if len(steps) < 2:
        return Matches([])
    first_ones = _matching(actor, seen, MOST_PARENTS, first, lambda name: fold(name) == first, first)
    parents = [each for each in first_ones.objects if each.kind in CONTAINERS]
    for step in middle[:-1]:
        parents = _children(actor, parents, Q(folded=step), MOST_PARENTS)
    last = Q(folded__gte=middle[-1], folded__lte=f"{middle[-1]}{_LAST}")
    objects = _children(actor, parents, last, limit + 1)
    return Matches(objects[:limit], first_ones.is_cut or len(objects) > limit)


def _steps(text: str) -> list[str]:
    """The names in a path: divided by dots, and within the second one by the separator of levels."""
    return [level for part in text.split(".") for name in undotted(part) for level in finder().levels(name)]


def _matching(actor: Actor, seen: Seen, limit: int, first: str, matches: Callable[[str], bool], last: str) -> Matches:
    """The objects whose name matches; in large regions those whose folded name lies between `first` and `last`."""
    # With what lies above a head, which the actor may see as the way to it.
    ids = [node.id for head in seen.heads for node in head.nodes if matches(node.name)]
    small, large = _by_size(seen)
    for region in small:
        rows = Securable.objects.filter(region.rows()).values_list("id", "name")
        ids += [id for id, name in rows if matches(name)]
    if large:
        ids += _in_index(large, Q(folded__gte=first, folded__lte=last))[: limit + 1]
    ordered = sorted(_seen(actor, ids), key=lambda each: rank(each, first))
    return Matches(ordered[:limit], seen.is_cut or len(ordered) > limit, bool(large))


def rank(located: Located, wanted: str) -> tuple:
    """The order of matches: the whole name, its beginning, a word in it; containers first; by name and place."""
    name = fold(located.name)
    place = 0 if name == wanted else 1 if name.startswith(wanted) else 2
    return place, len(located.nodes), name, [node.name for node in located.nodes]


def _by_size(seen: Seen) -> tuple[list[Region], list[Region]]:
    """The regions that are read whole, SMALL objects altogether, and those that the index is asked about."""
    room = SMALL
    small: list[Region] = []
    large: list[Region] = list(seen.regions[READ_REGIONS:])
    for region in seen.regions[:READ_REGIONS]:
        # Only what the actor sees is counted, or the figure would tell of the rest.
        size = Securable.objects.filter(region.rows()).order_by("lineage")[: room + 1].count()
        if size > room:
            large.append(region)
        else:
            room -= size
            small.append(region)
    return small, large


def _in_index(regions: Iterable[Region], names: Q) -> QuerySet[Securable, int]:
    """The ids of the rows in these regions with such names, by name.

    The lineage is compared as an expression, so that the database reads the index of names in its order.
    """
    inside = Q()
    for region in regions:
        inside |= region.rows("place")
    rows = Securable.objects.annotate(folded=Lower("name"), place=Concat("lineage", Value("")))
    return rows.filter(names, inside).order_by("folded", "id").values_list("id", flat=True)


def _seen(actor: Actor, ids: Iterable[int]) -> list[Located]:
    """These objects without those that the evaluator hides after all."""
    return [each for each in by_ids(ids).values() if policy.sees(actor, each)]


def _children(actor: Actor, parents: Iterable[Located], names: Q, limit: int) -> list[Located]:
    """The children that the actor sees, at most `limit` of each kind in each parent; the best first."""
    ids: list[int] = []
    for parent in parents:
        rows = Securable.objects.filter(parent_id=parent.id).annotate(folded=Lower("name")).filter(names)
        for visible in _visible_children(actor, parent, rows):
            ids += visible.order_by("name").values_list("id", flat=True)[:limit]
    return sorted(_seen(actor, ids), key=lambda each: rank(each, ""))[:limit]


def _visible_children(actor: Actor, parent: Located, rows: QuerySet[Securable]) -> list[QuerySet]:
    if parent.kind == Kind.METALAKE:
        return [policy.visible_catalogs(actor, parent, rows.filter(kind=Kind.CATALOG))]
    schemas = policy.visible_schemas(actor, parent, rows.filter(slot=slot_of(Kind.SCHEMA)))
    if parent.kind == Kind.CATALOG:
        return [schemas]
    return [schemas, *(policy.visible_leaves(actor, parent, rows.filter(kind=kind), kind) for kind in LEAVES)]
