"""The past state of a metalake's rights: the newest fact about each thing up to that moment."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from access.history.current import GrantRow, Now, Placed, State
from authz.actor import NOBODY, Actor
from authz.facts import lineage_in, newest
from authz.models import Fact
from authz.objects import address_of, finder
from authz.snapshot import Snapshot
from metalake.errors import Invalid, NotFound
from metalake.kinds import BESIDE_CATALOGS, CONTAINERS, KINDS, Kind
from metalake.lineage import Address, Located, Node, missing
from metalake.privileges import Effect, Privilege


@dataclass(frozen=True)
class Past:
    """The state at `at`, read from the history; only stored groups, since token claims have no history."""

    top: Located
    at: float
    facts: QuerySet[Fact]

    def locate(self, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
        address = address_of(self.top.name, kind, full_name)
        located = self.locate_all([address]).get(address)
        if located is None:
            raise missing(address.kind, address.names, error_kind="object")
        return located

    def locate_all(self, addresses: Collection[Address]) -> dict[Address, Located]:
        waiting, located = {address: self._readings(address) for address in addresses}, dict[Address, Located]()
        while waiting:
            located |= self._down({address: paths[0] for address, paths in waiting.items()})
            left = {address: paths[1:] for address, paths in waiting.items() if address not in located}
            waiting = {address: paths for address, paths in left.items() if paths}
        return located

    def same(self, on: Located) -> Located:
        objects = self.facts.filter(topic="object")
        lineage = [step for fact in self._standing(objects.filter(about=on.id)) for step in lineage_in(fact.state)]
        nodes = {fact.about: node_of(fact) for fact in self._standing(objects.filter(about__in=lineage))}
        nodes[self.top.id] = self.top.node
        if not lineage or not nodes.keys() >= set(lineage):
            raise missing(on.kind, on.full_name, error_kind="object")
        return Located(nodes=tuple(nodes[step] for step in lineage))

    def _readings(self, address: Address) -> list[list[str]]:
        """The paths that an address may mean: a schema's name is read as levels first, then as one name."""
        names = [*address.names]
        if address.kind is Kind.METALAKE:
            return [[] if address.metalake == self.top.name else names]
        if len(names) == 1:
            return [names]
        return [[names[0], *finder().levels(names[1]), *names[2:]], names]

    def _down(self, paths: Mapping[Address, list[str]]) -> dict[Address, Located]:
        """Resolve all paths from the metalake level by level; misses are left out."""
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
        """The objects with these names below these parents at the moment, in two queries."""
        children: defaultdict[tuple[int, str], list[Node]] = defaultdict(list)
        for fact in self._standing(self.facts.filter(topic="object", about__in=_ever_called(steps))):
            children[fact.holder, fact.name].append(node_of(fact))
        return children

    @staticmethod
    def _standing(facts: QuerySet[Fact]) -> list[Fact]:
        return [fact for fact in newest(facts, "about") if fact.state]

    def policy_on(self, object_ids: Collection[int] | None = None) -> Snapshot:
        grants = self.facts.filter(topic="grants")
        if object_ids is not None:
            grants = grants.filter(about__in=object_ids)
        newest_grants = newest(grants, "holder", "about")
        alive = self.roles({fact.holder for fact in newest_grants})
        changes: list[list[Any]] = [
            ["grants", fact.holder, fact.about, fact.state] for fact in newest_grants if fact.holder in alive
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
        newest_grants = newest(facts, "holder", "about")
        alive = self.roles({fact.holder for fact in newest_grants})
        return [
            row
            for fact in newest_grants
            if fact.holder in alive
            for entry in fact.state or ()
            if (row := grant_row(fact, entry)).ends_at is None or row.ends_at.timestamp() > self.at
        ]

    def members(self) -> dict[str, int]:
        facts = newest(self.facts.filter(topic="members", holder=self.top.id), "about")
        return dict(sorted((fact.name, fact.about) for fact in facts if fact.state))

    def roles(self, ids: Collection[int] | None = None) -> dict[int, str]:
        facts = self.facts.filter(topic="object")
        if ids is None:
            ids = set(facts.filter(holder=self.top.id).values_list("about", flat=True))
        facts = facts.filter(about__in=ids)
        return {fact.about: fact.name for fact in self._standing(facts) if node_of(fact).kind == Kind.ROLE}

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
        """All objects of the metalake at the moment except roles, by lineage; held in memory."""
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
    """Whether a node can be this step of the path to an object of the kind.

    The name alone does not decide: a role and a catalog of one metalake may have the same name.
    """
    return KINDS[Kind(node.kind)].slot == KINDS[kind].slot if is_last else node.kind in CONTAINERS


_EMPTY = Snapshot(epoch=0, stamp="", members={}, user_roles={}, user_groups={}, group_roles={}, grants={})


def _ever_called(steps: Collection[tuple[int, str]]) -> list[int]:
    """Ids of objects that ever had one of these (parent id, name) pairs."""
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


def node_of(fact: Fact) -> Node:
    state: Any = fact.state
    return Node(fact.about, state["kind"], fact.name, state["owner_user"], state["owner_group"])


def _placed(fact: Fact) -> Placed:
    state: Any = fact.state
    return Placed(fact.about, state["kind"], fact.name, state["lineage"], state["owner_user"], state["owner_group"])


def grant_row(fact: Fact, entry: Mapping[str, str]) -> GrantRow:
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
    """The state of the metalake now (None), or at a moment.

    Raises Invalid for a moment in the future, or from before the metalake's history.
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
    # Requests and responses use its current name.
    return Past(Located(nodes=(node_of(own[0])._replace(name=top.name),)), moment.timestamp(), facts)
