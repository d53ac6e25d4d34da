"""The facts of the history that bear on the access to one object, and the names that they are told by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, ExpressionWrapper, F, Q

from authz.facts import lineage_in
from authz.models import Fact
from metalake.lineage import Located

LINKS = ("user_roles", "user_groups", "group_roles")
# The sum keeps databases from reading by an index all that ever happened in a metalake.
_METALAKE = ExpressionWrapper(F("metalake_id") + 0, output_field=BigIntegerField())


class Window(NamedTuple):
    """The facts after the moment `since`, by time; `is_cut`: it is later than asked, since there are too many."""

    facts: list[Fact]
    since: datetime
    is_cut: bool


def read_window(top: int, ids: Sequence[int], since: datetime, until: datetime, most: int) -> Window:
    """The newest facts between two moments, at most so many of each sort; `ids` are those of `lineage_ever`."""
    between = Fact.objects.filter(at__gt=since, at__lte=until)
    sorts = (
        between.annotate(of=_METALAKE).filter(of=top, topic__in=LINKS),
        between.filter(topic="members", holder=top),
        between.filter(topic="object", about__in=ids),
        between.filter(Q(about__in=ids) | Q(about=0, holder__in=_roles_ever(ids)), topic="grants"),
    )
    facts: list[Fact] = []
    begin = since
    for sort in sorts:
        some = list(sort.order_by("-at", "-id")[: most + 1])
        if len(some) > most:
            begin = max(begin, some[-1].at)
        facts += some
    in_order = sorted((fact for fact in facts if fact.at > begin), key=lambda fact: (fact.at, fact.pk))
    return Window(in_order, begin, begin > since)


def lineage_ever(target: Located) -> list[int]:
    """The ids of the target and of all objects that were ever above it."""
    ids = {node.id for node in target.nodes}
    for state in Fact.objects.filter(topic="object", about=target.id).values_list("state", flat=True):
        ids.update(lineage_in(state))
    return sorted(ids)


def _roles_ever(ids: Sequence[int]) -> Any:
    """The ids of the roles that ever had grants on these objects."""
    return Fact.objects.filter(topic="grants", about__in=ids).values("holder")


@dataclass(frozen=True)
class Names:
    """The last names of a metalake's users and groups, and of the roles that ever had grants on these objects."""

    top: int
    ids: Sequence[int]

    @cached_property
    def users(self) -> dict[int, str]:
        return _names(Q(topic="members", holder=self.top))

    @cached_property
    def groups(self) -> dict[int, str]:
        return _names(Q(topic="group", holder=self.top))

    @cached_property
    def roles(self) -> dict[int, str]:
        return _names(Q(topic="object", about__in=_roles_ever(self.ids)))


def _names(which: Q) -> dict[int, str]:
    return dict(Fact.objects.filter(which).exclude(name="").order_by("id").values_list("about", "name"))
