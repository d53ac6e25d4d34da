"""What somebody sees in a metalake, as regions of the tree in which the same kinds of objects may be loaded.

It makes no decisions: rights change only at objects that the actor has grants on or owns, so the evaluator runs once at
each of these, and its answer holds for everything below down to the next one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from django.db.models import Q

from access.explain.reach import granted_to
from access.history.current import Now
from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from authz.snapshot import ALLOWS
from metalake.kinds import BESIDE_CATALOGS, CONTAINERS, IN_CATALOGS, Kind
from metalake.lineage import Located
from metalake.models import below

MOST_HEADS = 1000  # objects with a grant or an owner of their own that are examined
MOST_RANGES = 200  # per query


@dataclass(frozen=True)
class Region:
    """Everything below `head` but the subtrees of `holes`: of it, the actor sees the objects of these kinds.

    `hidden` are leaves with a DENY of their own, which are evaluated separately, as the holes are.
    """

    head: Located
    kinds: frozenset[Kind]
    holes: list[Located] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)

    def rows(self, place: str = "lineage") -> Q:
        """A filter for the rows of the region; `place` is the field with the lineage."""
        inside = below(self.head.lineage, place) & Q(kind__in=self.kinds)
        if self.hidden:
            inside &= ~Q(pk__in=self.hidden)
        for hole in self.holes:
            inside &= ~_at_or_below(place, hole)
        return inside


@dataclass(frozen=True)
class Seen:
    """The heads, each to be evaluated separately, and the non-empty regions below them.

    `is_cut`: the actor has more grants, or owns more, than were examined.
    """

    heads: list[Located]
    regions: list[Region]
    is_cut: bool = False


def seen_by(actor: Actor, top: Located) -> Seen:
    """What the actor sees of a metalake: one region if rights are uniform, else several per grant."""
    granted = granted_to(actor)
    denied = 0
    for mask in granted.values():
        denied |= mask & ~ALLOWS
    whole = frozenset((Kind.CATALOG, *IN_CATALOGS))
    if _kinds_below(actor, top, denied) == whole:
        return Seen([top], [Region(top, whole)])
    heads, is_cut = heads_of(actor, top, granted)
    if is_cut and denied:
        return Seen([top, *heads], [], True)  # the rest may have a DENY
    regions = _regions(actor, [top, *heads], {id for id, mask in granted.items() if mask & ~ALLOWS})
    few = [region for region in regions if len(region.holes) <= MOST_RANGES][:MOST_RANGES]
    return Seen([top, *heads], few, is_cut or len(few) < len(regions))


def heads_of(actor: Actor, top: Located, granted: Mapping[int, int]) -> tuple[list[Located], bool]:
    """The objects below the metalake that carry a grant to the actor or are theirs, parents first; whether that is
    only some of them.
    """
    owned = [int(lineage.rpartition("/")[2]) for lineage in Now(top).owned(actor, top, "", MOST_HEADS + 1)]
    ids = [*sorted(granted)[:MOST_HEADS], *owned[:MOST_HEADS]]
    inside = [each for each in by_ids(ids).values() if each.metalake.id == top.id and each.id != top.id]
    heads = sorted((each for each in inside if each.kind not in BESIDE_CATALOGS), key=lambda head: head.lineage)
    return heads, len(granted) > MOST_HEADS or len(owned) > MOST_HEADS


def _regions(actor: Actor, heads: list[Located], denying: Container[int]) -> list[Region]:
    """The regions that are not empty; `heads` come parents first, and `denying` are the ids that carry a DENY."""
    above: list[Region] = []
    regions: list[Region] = []
    for head in heads:
        while above and not head.lineage.startswith(f"{above[-1].head.lineage}/"):
            above.pop()
        around = above[-1] if above else None
        if head.kind not in CONTAINERS:
            if around and head.id in denying:
                around.hidden.append(head.id)
            continue
        kinds = _kinds_below(actor, head)
        if around and kinds == around.kinds - {Kind.CATALOG}:
            continue
        if around:
            around.holes.append(head)
        region = Region(head, kinds)
        above.append(region)
        regions.append(region)
    return [region for region in regions if region.kinds]


def _kinds_below(actor: Actor, head: Located, more: int = 0) -> frozenset[Kind]:
    """The kinds of objects below a container that the actor sees by what they hold on it and above it.

    `more` is a mask of their additional rights.
    """
    rights = policy.rights_on(actor, head)
    inherited = replace(rights, mask=rights.mask | more, owned=rights.owned - {operations.SELF})
    kinds = (Kind.CATALOG, *IN_CATALOGS) if head.kind is Kind.METALAKE else IN_CATALOGS
    return frozenset(kind for kind in kinds if policy.may_see_name(inherited, kind))


def _at_or_below(place: str, head: Located) -> Q:
    return Q(**{f"{place}__gte": head.lineage, f"{place}__lt": f"{head.lineage}0"})
