"""What is true at a moment, now or in the past: objects, people and grants, as questions about access need them.

Both states answer alike, so that one evaluator decides on either; the past reads the newest fact of each thing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from authz import objects, snapshot
from authz.actor import NOBODY, Actor
from authz.history.facts import newest
from authz.models import Fact, Grant, Group, Member, Role, User, unended
from authz.objects import address_of, finder
from authz.snapshot import Snapshot
from metalake.errors import Invalid, NotFound
from metalake.kinds import BESIDE_CATALOGS, CONTAINERS, KINDS, Kind
from metalake.lineage import Address, Located, Node, missing
from metalake.models import Securable
from metalake.privileges import Effect, Privilege


class GrantRow(NamedTuple):
    """One grant of a role on an object, with who granted it and when."""

    role_id: int
    object_id: int
    privilege: Privilege
    effect: Effect
    grantor: str
    granted_at: datetime
    starts_at: datetime | None
    ends_at: datetime | None


class Placed(NamedTuple):
    """An object as a walk over a metalake meets it, parents before what is below them."""

    id: int
    kind: str
    name: str
    lineage: str
    owner_user_id: int | None
    owner_group_id: int | None


class State(Protocol):
    """What is true in one metalake at `at` (seconds since 1970; None is now)."""

    @property
    def top(self) -> Located: ...

    @property
    def at(self) -> float | None: ...

    def locate(self, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
        """Raises NotFound and Invalid of kind "object"; `asker` as for find_object."""

    def locate_all(self, addresses: Collection[Address]) -> dict[Address, Located]:
        """What is at these addresses, in as many statements as one takes; misses are left out."""

    def policy_on(self, object_ids: Collection[int] | None = None) -> Snapshot:
        """Who holds what; with the grants on these objects at least, or on all."""

    def grants(self, object_ids: Collection[int], role_ids: Collection[int] | None = None) -> list[GrantRow]:
        """The grants on these objects that have not ended, of these roles or of all."""

    def members(self) -> dict[str, int]:
        """The enabled members' ids by name."""

    def roles(self, ids: Collection[int] | None = None) -> dict[int, str]:
        """The names of these roles of the metalake, or of all."""

    def groups(self, ids: Collection[int] | None = None) -> dict[int, str]:
        """The names of these groups of the metalake, or of all."""

    def walk(self, below: Located, start: str = "", size: int = 10_000) -> list[Placed]:
        """At most so many of an object and all below it, by lineage, from one on; roles are left out."""

    def lineages(self, ids: Collection[int]) -> Iterator[str]:
        """The lineages of these objects, in any order."""

    def owned(self, actor: Actor, below: Located, start: str, size: int) -> list[str]:
        """At most so many lineages of what the actor owns at or below an object, in order, from one on."""

    def actor(self, name: str, policy: Snapshot) -> Actor:
        """The member of that name, or today's former one who kept something; else an actor without any right."""


@dataclass(frozen=True)
class Now:
    top: Located
    at: float | None = None

    def locate(self, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
        return objects.find_object(self.top.name, kind, full_name, asker)

    def locate_all(self, addresses: Collection[Address]) -> dict[Address, Located]:
        return objects.locate_all(self.top, addresses)

    def policy_on(self, object_ids: Collection[int] | None = None) -> Snapshot:
        return snapshot.latest()

    def grants(self, object_ids: Collection[int], role_ids: Collection[int] | None = None) -> list[GrantRow]:
        rows = Grant.objects.filter(unended(timezone.now()), content_object__in=object_ids, group__role__isnull=False)
        if role_ids is not None:
            # Named groups are probed in the index; joined, PostgreSQL reads every grant on a busy catalog.
            rows = rows.filter(group__in=list(Role.objects.filter(pk__in=role_ids).values_list("group_id", flat=True)))
        found = rows.order_by("pk").values_list(
            "group__role", "content_object_id", "permission__codename", "effect",
            "grantor", "granted_at", "starts_at", "ends_at",
        )  # fmt: skip
        return [
            GrantRow(role_id, object_id, Privilege(codename), Effect(effect), grantor, granted_at, starts_at, ends_at)
            for role_id, object_id, codename, effect, grantor, granted_at, starts_at, ends_at in found
        ]

    def members(self) -> dict[str, int]:
        rows = Member.objects.filter(metalake_id=self.top.id, enabled=True)
        return dict(rows.order_by("user__username").values_list("user__username", "user_id"))

    def roles(self, ids: Collection[int] | None = None) -> dict[int, str]:
        return _names(Role.objects.filter(parent_id=self.top.id), ids)

    def groups(self, ids: Collection[int] | None = None) -> dict[int, str]:
        return _names(Group.objects.filter(metalake_id=self.top.id), ids)

    def walk(self, below: Located, start: str = "", size: int = 10_000) -> list[Placed]:
        with connection.cursor() as cursor:
            cursor.execute(_WALK, [max(start, below.lineage), f"{below.lineage}0", size])
            return list(map(Placed._make, cursor.fetchall()))

    def lineages(self, ids: Collection[int]) -> Iterator[str]:
        every = sorted(ids)
        for first in range(0, len(every), 5000):
            rows = Securable.objects.filter(pk__in=every[first : first + 5000])
            yield from rows.values_list("lineage", flat=True)

    def owned(self, actor: Actor, below: Located, start: str, size: int) -> list[str]:
        # A statement for each owner reads one index in order; for all at once, everything owned would be sorted.
        owners = [Q(owner_user_id=actor.id), *(Q(owner_group_id=group) for group in actor.groups)]
        found = [_from(Securable.objects.filter(owner), below, start) for owner in owners]
        return sorted(lineage for rows in found for lineage in rows.values_list("lineage", flat=True)[:size])[:size]

    def actor(self, name: str, policy: Snapshot) -> Actor:
        belongs = Q(memberships__metalake=self.top.id)
        # Former members, whom links that carry a DENY have outlived.
        belongs |= Q(groups__role__parent=self.top.id) | Q(metalake_groups__metalake=self.top.id)
        user_id = User.objects.filter(belongs, username=name).values_list("pk", flat=True)
        return Actor(user_id.first() or NOBODY, name, policy)


_LEFT_OUT = ", ".join(f"'{kind}'" for kind in BESIDE_CATALOGS)
# Composing it anew would cost as much as running it, a thousand times for one answer.
_WALK = (
    "SELECT id, kind, name, lineage, owner_user_id, owner_group_id FROM metalake_securable "  # noqa: S608
    f"WHERE lineage >= %s AND lineage < %s AND kind NOT IN ({_LEFT_OUT}) ORDER BY lineage LIMIT %s"
)


def _from(rows: QuerySet[Securable], below: Located, start: str) -> QuerySet[Securable]:
    """What is at or below an object, from a lineage on; the character behind a slash is 0."""
    lineage = below.lineage
    return rows.filter(lineage__gte=max(start, lineage), lineage__lt=f"{lineage}0").order_by("lineage")


def _names(rows: QuerySet, ids: Collection[int] | None) -> dict[int, str]:
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    return dict(rows.order_by("name").values_list("pk", "name"))


@dataclass(frozen=True)
class Past:
    """As the history tells it. Claims of tokens are in no history: groups are the stored ones."""

    top: Located
    at: float
    facts: QuerySet[Fact]

    def locate(self, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
        address = address_of(self.top.name, kind, full_name)
        located = self.locate_all([address]).get(address)
        if located is None:
            raise missing(address.kind, address.names, told_as="object")
        return located

    def locate_all(self, addresses: Collection[Address]) -> dict[Address, Located]:
        waiting, found = {address: self._readings(address) for address in addresses}, dict[Address, Located]()
        while waiting:
            found |= self._down({address: paths[0] for address, paths in waiting.items()})
            left = {address: paths[1:] for address, paths in waiting.items() if address not in found}
            waiting = {address: paths for address, paths in left.items() if paths}
        return found

    def _readings(self, address: Address) -> list[list[str]]:
        """Where an address may lead: a schema's name is read as levels first, and as one name of a flat catalog."""
        names = [*address.names]
        if address.kind is Kind.METALAKE:
            return [[] if address.metalake == self.top.name else names]
        if len(names) == 1:
            return [names]
        return [[names[0], *finder().levels(names[1]), *names[2:]], names]

    def _down(self, paths: Mapping[Address, list[str]]) -> dict[Address, Located]:
        """Step by step from the metalake, all at once: what had the name there, and still had it at the moment."""
        ways = dict.fromkeys(paths, self.top.nodes)
        for depth in range(max(map(len, paths.values()))):
            steps = {
                at: (ways[at][-1].id, path[depth]) for at, path in paths.items() if at in ways and depth < len(path)
            }
            children = self._children(set(steps.values()))
            for at, step in steps.items():
                is_last = depth == len(paths[at]) - 1
                fit = next((node for node in children[step] if _fits(node, at.kind, is_last)), None)
                if fit:
                    ways[at] = (*ways[at], fit)
                else:
                    del ways[at]
        return {at: Located(nodes=nodes) for at, nodes in ways.items() if nodes[-1].kind == at.kind}

    def _children(self, steps: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], list[Node]]:
        """What had these names below these parents, in two statements."""
        found: defaultdict[tuple[int, str], list[Node]] = defaultdict(list)
        for fact in self._standing(self.facts.filter(topic="object", about__in=_ever_called(steps))):
            found[fact.holder, fact.name].append(_node(fact))
        return found

    @staticmethod
    def _standing(facts: QuerySet[Fact]) -> list[Fact]:
        return [fact for fact in newest(facts, "about") if fact.state]

    def policy_on(self, object_ids: Collection[int] | None = None) -> Snapshot:
        grants = self.facts.filter(topic="grants")
        if object_ids is not None:
            grants = grants.filter(about__in=object_ids)
        held = newest(grants, "holder", "about")
        alive = self.roles({fact.holder for fact in held})
        changes: list[list[Any]] = [
            ["grants", fact.holder, fact.about, fact.state] for fact in held if fact.holder in alive
        ]
        users = self.members().values()
        changes += [["members", self.top.id, user, True] for user in users]
        links = newest(self.facts.filter(topic__in=("user_roles", "user_groups"), holder__in=users), "topic", "holder")
        groups = {group for fact in links if fact.topic == "user_groups" for group in fact.state or ()}
        groups.update(self.groups())
        links += newest(self.facts.filter(topic="group_roles", holder__in=groups), "topic", "holder")
        changes += [[fact.topic, fact.holder, fact.state or []] for fact in links]
        return _EMPTY.after(0, "", changes)

    def grants(self, object_ids: Collection[int], role_ids: Collection[int] | None = None) -> list[GrantRow]:
        facts = self.facts.filter(topic="grants", about__in=object_ids)
        if role_ids is not None:
            facts = facts.filter(holder__in=role_ids)
        held = newest(facts, "holder", "about")
        alive = self.roles({fact.holder for fact in held})
        return [
            row
            for fact in held
            if fact.holder in alive
            for entry in fact.state or ()
            if (row := _grant_row(fact, entry)).ends_at is None or row.ends_at.timestamp() > self.at
        ]

    def members(self) -> dict[str, int]:
        facts = newest(self.facts.filter(topic="members", holder=self.top.id), "about")
        return dict(sorted((fact.name, fact.about) for fact in facts if fact.state))

    def roles(self, ids: Collection[int] | None = None) -> dict[int, str]:
        facts = self.facts.filter(topic="object")
        if ids is None:
            ids = set(facts.filter(holder=self.top.id).values_list("about", flat=True))
        facts = facts.filter(about__in=ids)
        return {fact.about: fact.name for fact in self._standing(facts) if _node(fact).kind == Kind.ROLE}

    def groups(self, ids: Collection[int] | None = None) -> dict[int, str]:
        facts = self.facts.filter(topic="group", holder=self.top.id)
        if ids is not None:
            facts = facts.filter(about__in=ids)
        return {fact.about: fact.name for fact in self._standing(facts)}

    def walk(self, below: Located, start: str = "", size: int = 10_000) -> list[Placed]:
        return self._objects[self._place(max(start, below.lineage)) : self._place(f"{below.lineage}0")][:size]

    def lineages(self, ids: Collection[int]) -> Iterator[str]:
        return (row.lineage for row in self._objects if row.id in ids)

    def owned(self, actor: Actor, below: Located, start: str, size: int) -> list[str]:
        places = range(self._place(max(start, below.lineage)), self._place(f"{below.lineage}0"))
        rows = map(self._objects.__getitem__, places)
        is_theirs = (row for row in rows if row.owner_user_id == actor.id or row.owner_group_id in actor.groups)
        return [row.lineage for row in islice(is_theirs, size)]

    def _place(self, lineage: str) -> int:
        return bisect_left(self._objects, lineage, key=attrgetter("lineage"))

    @cached_property
    def _objects(self) -> list[Placed]:
        """By lineage, roles left out: held in memory, as far as the metalake's objects of that moment are."""
        rows = [_placed(fact) for fact in self._standing(self.facts.filter(topic="object", metalake_id=self.top.id))]
        alive = {row.id for row in rows} | {self.top.id}
        return sorted(
            (
                row
                for row in rows
                if row.kind not in BESIDE_CATALOGS and alive.issuperset(map(int, row.lineage[1:].split("/")))
            ),
            key=attrgetter("lineage"),
        )

    def actor(self, name: str, policy: Snapshot) -> Actor:
        return Actor(self.members().get(name, NOBODY), name, policy, at=self.at)


def _fits(node: Node, kind: Kind, is_last: bool) -> bool:
    """Whether a step on the way to an object of a kind leads on: a role and a catalog, a schema and a table of one
    parent may have one name.
    """
    return KINDS[Kind(node.kind)].slot == KINDS[kind].slot if is_last else node.kind in CONTAINERS


_EMPTY = Snapshot(epoch=0, stamp="", members={}, user_roles={}, user_groups={}, group_roles={}, grants={})


def _ever_called(steps: Collection[tuple[int, str]]) -> list[int]:
    """The objects that have had these names below these parents, by pairs: each name below each would be a million."""
    if not steps:
        return []
    values = ", ".join(["(%s, %s)"] * len(steps))
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH wanted(holder, name) AS (VALUES {values}) SELECT DISTINCT f.about FROM wanted "  # noqa: S608
            "JOIN authz_fact f ON f.topic = 'object' AND f.holder = wanted.holder AND f.name = wanted.name",
            [part for step in steps for part in step],
        )
        return [about for (about,) in cursor.fetchall()]


def _node(fact: Fact) -> Node:
    state: Any = fact.state
    return Node(fact.about, state["kind"], fact.name, state["owner_user"], state["owner_group"])


def _placed(fact: Fact) -> Placed:
    state: Any = fact.state
    return Placed(fact.about, state["kind"], fact.name, state["lineage"], state["owner_user"], state["owner_group"])


def _grant_row(fact: Fact, entry: Mapping[str, str]) -> GrantRow:
    granted, starts, ends = (entry.get(key) for key in ("granted", "starts", "ends"))
    return GrantRow(
        fact.holder,
        fact.about,
        Privilege(entry["privilege"]),
        Effect(entry["effect"]),
        entry["grantor"],
        datetime.fromisoformat(granted or ""),
        datetime.fromisoformat(starts) if starts else None,
        datetime.fromisoformat(ends) if ends else None,
    )


def state_at(top: Located, moment: datetime | None) -> State:
    """What is true in the metalake now, or was at a moment.

    Raises Invalid for a moment ahead, or from before the metalake's history.
    """
    if moment is None:
        return Now(top)
    if moment > timezone.now():
        raise Invalid(f"{moment.isoformat()} lies ahead; asOf is a moment in the past.")
    facts = Fact.objects.filter(at__lte=moment)
    own = newest(facts.filter(topic="object", about=top.id), "about")
    if not own:
        begun = Fact.objects.filter(metalake_id=top.id).order_by("id").values_list("at", flat=True).first()
        since = f"begins at {begun.isoformat()}" if begun else "is empty"
        raise Invalid(f"The history of metalake {top.name} {since}: ask about a later moment.")
    if not own[0].state:
        raise NotFound(f"Metalake {top.name} does not exist.", kind=Kind.METALAKE)
    # Names of today address it; what it was called then is in what is answered.
    return Past(Located(nodes=(_node(own[0])._replace(name=top.name),)), moment.timestamp(), facts)
