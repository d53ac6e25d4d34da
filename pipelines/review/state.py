"""A consistent state of a metalake for a review: objects, members, roles and grants as of one history position."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from pipelines.review.grants import DENY, Given
from pipelines.review.regions import Lineage, Mark

Json = dict[str, Any]
STEPS = 30  # attempts at a random walk down a tree


class Object(NamedTuple):
    parent: int
    name: str
    kind: str
    owner_user: int | None
    owner_group: int | None


class Named(NamedTuple):
    """An object as named in results."""

    lineage: Lineage
    kind: str
    name: str


class Grant(NamedTuple):
    """A grant as named in results."""

    given: Given
    on: Named
    grantor: str
    granted: float


class Principal(NamedTuple):
    """A member with all roles, direct or through groups, and owned objects."""

    name: str
    roles: tuple[int, ...]
    owned: tuple[Named, ...]


@dataclass
class World:
    """The metalake's state, read once, line by line. `separator` separates the levels of a schema's name."""

    separator: str
    place: int = 0
    moment: str = ""
    objects: dict[int, Object] = field(default_factory=dict)
    members: dict[int, str] = field(default_factory=dict)
    links: dict[str, dict[int, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    callers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _grants: list[Json] = field(default_factory=list)
    _lineages: dict[int, Lineage | None] = field(default_factory=dict)
    _children: dict[int, list[int]] = field(default_factory=dict)

    def read(self, lines: Iterable[Json]) -> Iterator[int]:
        """Load the lines of a state stream; yields the count from time to time."""
        kinds: dict[str, str] = {}
        for count, line in enumerate(lines):
            topic = line.get("topic")
            if topic == "object":
                kind = kinds.setdefault(line["kind"], line["kind"])
                owners = line.get("ownerUser"), line.get("ownerGroup")
                self.objects[line["id"]] = Object(line["parent"] or 0, line["name"], kind, *owners)
            elif topic == "grants":
                self._grants.append(line)
            elif topic == "members":
                self.members[line["id"]] = line["name"]
            elif topic in ("user_roles", "user_groups", "group_roles"):
                self.links[topic][line["holder"]] = line["has"]
            elif topic is None:
                self.place, self.moment = line["place"], line["moment"]
            if count % 5000 == 0:
                yield count

    def lineage(self, id: int) -> Lineage | None:
        """The ids from the metalake to an object; None if it or an ancestor is gone."""
        if id not in self._lineages:
            one = self.objects.get(id)
            above: Lineage | None = () if one is not None and not one.parent else None
            if one is not None and one.parent:
                above = self.lineage(one.parent)
            self._lineages[id] = None if above is None else (*above, id)
        return self._lineages[id]

    def named(self, id: int) -> Named | None:
        lineage = self.lineage(id)
        return None if lineage is None else Named(lineage, self.objects[id].kind, self.full_name(lineage))

    def full_name(self, lineage: Lineage) -> str:
        """As in the API: `catalog.outer:inner.table`; for a metalake or a top leaf its own name."""
        parts: list[str] = []
        levels: list[str] = []
        for id in lineage[1:] or lineage:
            one = self.objects[id]
            (levels if one.kind == "schema" else parts).append(one.name)
        names = [*parts[:1], *([self.separator.join(levels)] if levels else []), *parts[1:]]
        return ".".join(name.replace("%", "%25").replace(".", "%2E") for name in names)

    def catalogs(self) -> list[int]:
        return [id for id, one in self.objects.items() if one.kind == "catalog"]

    def roles_of(self, user: int) -> tuple[int, ...]:
        through = (self.links["group_roles"].get(group, ()) for group in self.links["user_groups"].get(user, ()))
        return tuple(sorted({*self.links["user_roles"].get(user, ()), *(role for some in through for role in some)}))

    def asking(self, name: str, claimed: Iterable[int], active: Iterable[int] | None) -> str:
        """The caller's key in uses: the member's name, or one that includes claimed groups and activated roles.

        The roles behind the latter are added to `callers`.
        """
        claimed = (*claimed,)
        if not claimed and active is None:
            return name
        caller = f"{name}\0{claimed}\0{active}"
        if caller not in self.callers:
            user = self._ids.get(name)
            of_groups = (role for group in claimed for role in self.links["group_roles"].get(group, ()))
            roles = {*self.roles_of(user), *of_groups} if user is not None else set[int]()
            self.callers[caller] = tuple(sorted(roles if active is None else roles.intersection(active)))
        return caller

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: user for user, name in self.members.items()}

    def principals(self) -> list[Principal]:
        """The members, by name."""
        owned: dict[tuple[str, int], list[Named]] = defaultdict(list)
        for id, one in self.objects.items():
            owner = ("user", one.owner_user) if one.owner_user is not None else ("group", one.owner_group)
            if owner[1] is not None and (named := self.named(id)):
                owned[owner].append(named)  # type: ignore[index]
        of_groups = self.links["user_groups"]
        return [
            Principal(
                name,
                self.roles_of(user),
                (*owned["user", user], *(each for group in of_groups.get(user, ()) for each in owned["group", group])),
            )
            for user, name in sorted(self.members.items(), key=lambda member: member[1])
        ]

    def grants(self, seconds: dict[str, float]) -> Iterator[Grant]:
        """All grants of existing roles on existing objects; `seconds` caches parsed timestamps."""
        for line in self._grants:
            on = self.named(line["on"])
            if on is None or self.lineage(line["role"]) is None:
                continue
            for one in line["grants"]:
                times = (_seconds(one.get("starts"), seconds), _seconds(one.get("ends"), seconds))
                given = Given(line["role"], on.lineage, one["privilege"], one["effect"], *times)
                yield Grant(given, on, one.get("grantor") or "", _seconds(one.get("granted"), seconds) or 0.0)

    def below(self, id: int, kind: str, chance: random.Random) -> int | None:
        """A random object of a kind at or below another; None if STEPS attempts find none."""
        if not self._children:
            for child, one in self.objects.items():
                self._children.setdefault(one.parent, []).append(child)
        for _ in range(STEPS):
            at = id
            while self.objects[at].kind != kind and (inner := self._children.get(at)):
                at = chance.choice(inner)
            if self.objects[at].kind == kind:
                return at
        return None


def _seconds(text: str | None, known: dict[str, float]) -> float | None:
    if text is None:
        return None
    if text not in known:
        known[text] = datetime.fromisoformat(text).timestamp()
    return known[text]


def is_in_force(given: Given, now: float) -> bool:
    return (given.starts is None or given.starts <= now) and (given.ends is None or now < given.ends)


def marks(grants: Iterable[Grant], owned: Iterable[Named]) -> list[Mark]:
    """The marks of one principal: the grants of their roles by object, and ownership."""
    kinds: dict[Lineage, str] = {}
    says: dict[Lineage, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for grant in grants:
        kinds[grant.on.lineage] = grant.on.kind
        says[grant.on.lineage][grant.given.effect == DENY].add(grant.given.privilege)
    theirs = {each.lineage for each in owned}
    kinds |= {each.lineage: each.kind for each in owned}
    return [
        Mark(lineage, kind, frozenset(says[lineage][0]), frozenset(says[lineage][1]), lineage in theirs)
        for lineage, kind in kinds.items()
    ]
