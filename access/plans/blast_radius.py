"""The blast radius of access changes: who gains and who loses the use of which privileges, on how many objects.

It diffs the evaluator's answers on the current and the changed policy. It evaluates once for all users with the same
roles who own nothing, once for all leaves of a schema without grants and with the same owner, and once for every
branch where two users have the same rights.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from access.explain import reach
from access.history.current import Now
from access.plans import remaining_denies
from access.plans.blast_report import MOST_PEOPLE, SHOWN, BlastRadius, Line, PersonLine, Side, rank
from access.plans.blast_tree import Node, Tree
from access.plans.remaining_denies import Denials, usable
from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.services.grant_entries import Entries
from authz.snapshot import DENY_SHIFT, Snapshot
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Privilege

BUDGET = 4_000_000
"""Steps (a grant or object visited for one group of users) after which the figures are lower bounds; about 10 s."""
PREVIEW = 100_000
"""The budget of a preview while the user is still choosing; about 0.2 s."""


class Move(NamedTuple):
    """The change to a role (None: a new one of this name): all its grants afterwards, and who gets and loses it.

    `assign` and `unassign` map "user" and "group" to names by id.
    """

    role_id: int | None
    on: Mapping[int, Entries]
    assign: Mapping[str, Mapping[int, str]]
    unassign: Mapping[str, Mapping[int, str]]
    name: str = ""


def radius(actor: Actor, top: Located, moves: Iterable[Move], budget: int) -> BlastRadius:
    """What the moves change for the enabled members of a metalake, as of the time of the actor's request.

    With less than BUDGET, at most `budget` rows of objects are read, too.
    """
    moves = list(moves)
    scheduled = sum(
        given.starts is not None and given.starts > actor.moment
        for move in moves
        for entries in move.on.values()
        for given in entries.values()
    )
    counted = _Radius(actor.policy, _after(actor.policy, moves), actor.now, top, budget)
    blast, made = counted.blast(moves, scheduled), {role: move.name for role, move in _numbered(moves)}
    some, total = remaining_denies.named(actor, top, counted.denials.noted, made)
    # Who may not read all access learns no more names than the lines give.
    most = MOST_PEOPLE if policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, top) else SHOWN
    return replace(blast, refused=some, refused_total=total, people=blast.people[:most])


def _after(before: Snapshot, moves: Iterable[Move]) -> Snapshot:
    changes: list[list[Any]] = []
    holdings: dict[str, dict[int, set[int]]] = {"user": {}, "group": {}}
    roles_of = {"user": before.user_roles, "group": before.group_roles}
    for role, move in _numbered(moves):
        for id, privileges in move.on.items():
            entries = [
                {"privilege": privilege, "effect": given.effect}
                | ({"starts": given.starts} if given.starts else {})
                | ({"ends": given.ends} if given.ends else {})
                for privilege, given in privileges.items()
            ]
            changes.append(snapshot.grants_change(role, id, entries))
        for sort in holdings:
            for holder in move.assign.get(sort, {}):
                holdings[sort].setdefault(holder, set(roles_of[sort].get(holder, ()))).add(role)
            for holder in move.unassign.get(sort, {}):
                holdings[sort].setdefault(holder, set(roles_of[sort].get(holder, ()))).discard(role)
    changes += [snapshot.roles_change(sort, id, roles) for sort, some in holdings.items() for id, roles in some.items()]
    return before.after(before.epoch, before.stamp, changes)


def _numbered(moves: Iterable[Move]) -> Iterator[tuple[int, Move]]:
    """The moves with their role ids; new roles get ids that no stored role has."""
    for place, move in enumerate(moves, 1):
        yield move.role_id or -place, move


Key = tuple[bool, Privilege, Kind]
"""A difference: whether a privilege is gained (or lost), the privilege, and the kind of object."""


@dataclass(slots=True, eq=False)
class _Branch:
    """The differences at and below an object for users who have no grants and own nothing there."""

    here: frozenset[Key]
    node: Node
    below: _Branches | None
    touched: frozenset[Key]
    is_counted: bool = False


@dataclass(slots=True, eq=False)
class _Branches:
    """The branches of an object's children, with the number of branches in which each difference appears."""

    each: dict[int, _Branch]
    counts: Counter[Key]
    uncounted: set[int]


class _Group(NamedTuple):
    """Users with identical answers: the same roles before and after, and the same owners they act as."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    owns_as: frozenset[tuple[str, int]]


class _Enough(Exception):
    """The budget is spent."""


class _Radius:
    def __init__(self, before: Snapshot, after: Snapshot, now: float, top: Located, budget: int) -> None:
        self.before, self.after, self.now, self.top = before, after, now, top
        self.budget = self.left = budget
        self.is_cut = False
        self.objects: dict[Key, set[Node]] = defaultdict(set)
        self.users: dict[Key, list[str]] = defaultdict(list)
        self.denials = Denials()
        self.known: dict[tuple, frozenset[Key]] = {}
        self.branches: dict[tuple, _Branch] = {}
        self.families: dict[tuple, _Branches] = {}

    def blast(self, moves: list[Move], scheduled: int) -> BlastRadius:
        affected = self._affected({role for role, _ in _numbered(moves)})
        self._read_masks({role for group in affected.values() for part in group for role in part})
        regions = {id for _, move in _numbered(moves) for id in move.on}
        for role, move in _numbered(moves):
            if move.assign or move.unassign:
                regions |= self.role_masks[0].get(role, {}).keys() | self.role_masks[1].get(role, {}).keys()
        if affected and regions:
            try:
                self._plant(regions)
                for group, names in self._groups(affected).items():
                    for key in self._walk(group, names):
                        self.users[key] += names
            except _Enough:
                self.is_cut = True
        people = self._people()
        return BlastRadius(self._lines(), self.is_cut, scheduled, people=people, people_total=len(people))

    def _plant(self, regions: set[int]) -> None:
        granted = {id for role_masks in self.role_masks for on in role_masks.values() for id in on}
        tree = Tree(self.top, regions, granted, None if self.budget >= BUDGET else self.budget)
        self.nodes, self.owned, self.is_cut = tree.nodes, tree.owned, tree.is_cut

    # Which users are affected

    def _affected(self, changed: set[int]) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
        """Members who hold or will hold a changed role, with all their roles before and after."""
        affected = {}
        # Sorted, so that a truncated count is the same on every node.
        for user in sorted(self.before.members.get(self.top.id, ())):
            before, after = self.before.roles_of(user), self.after.roles_of(user)
            if not changed.isdisjoint(before) or not changed.isdisjoint(after):
                affected[user] = before, after
        return affected

    def _read_masks(self, roles: set[int]) -> None:
        """Read the mask of each role on each object, before and after."""
        self.role_masks: tuple[dict[int, Mapping[int, int]], dict[int, Mapping[int, int]]] = ({}, {})
        for role_masks, rights in zip(self.role_masks, (self.before, self.after), strict=True):
            for role in roles:
                role_masks[role] = reach.granted_to(reach.role_alone(role, "", rights, self.now))

    def _groups(self, affected: Mapping[int, tuple[tuple[int, ...], ...]]) -> dict[_Group, list[str]]:
        """The affected users' names, grouped by those of their roles that have grants in the tree."""
        counts = [
            {role for role, on in role_masks.items() if any(id in self.nodes for id in on)}
            for role_masks in self.role_masks
        ]
        names = {id: name for name, id in Now(self.top).members().items()}
        groups: dict[_Group, list[str]] = defaultdict(list)
        for user, parts in affected.items():
            if user not in names:
                continue
            relevant = [tuple(role for role in part if role in some) for part, some in zip(parts, counts, strict=True)]
            owners = {("user", user), *(("group", group) for group in self.before.groups_of(user))}
            groups[_Group(relevant[0], relevant[1], frozenset(owners & self.owned.keys()))].append(names[user])
        return groups

    # What differs

    def _masks(self, group: _Group) -> tuple[dict[int, int], dict[int, int]]:
        """The masks of all roles of a group's users by object, before and after."""
        masks: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for mask_by_id, role_masks, roles in zip(masks, self.role_masks, group[:2], strict=True):
            for role in roles:
                self._spend(len(role_masks[role]))
                for id, mask in role_masks[role].items():
                    if id in self.nodes:
                        mask_by_id[id] = mask_by_id.get(id, 0) | mask
        return masks

    def _walk(self, group: _Group, names: list[str]) -> set[Key]:
        masks = self._masks(group)
        own: set[int] = set()
        owned = {node.id for owner in group.owns_as for node in self.owned[owner]}
        for id in masks[0].keys() | masks[1].keys() | owned:
            node: Node | None = self.nodes[id]
            while node is not None and node.id not in own:
                self._spend(1)
                own.add(node.id)
                node = node.parent
        touched: set[Key] = set()
        top = self.nodes[self.top.id]
        nothing = frozenset[Privilege]()
        waiting = [(top, 0, 0, frozenset[str](), nothing)] if top.id in own else []
        while waiting:
            node, before, after, above, stayed = waiting.pop()
            self._spend(1)
            before |= masks[0].get(node.id, 0)
            after |= masks[1].get(node.id, 0)
            is_owner = node.id in owned
            here = self._differs(node, before, after, above, is_owner)
            for key in here:
                self.objects[key].add(node)
            touched |= here
            stays = self.denials.stay(node, before, after, above, is_owner) if after >> DENY_SHIFT else nothing
            if stays - stayed:
                self.denials.note(node, stays - stayed, {role: self.role_masks[1][role] for role in group.after}, names)
            inherited = above | {node.kind.value} if is_owner else above
            mine = (
                [id for id in node.children if id in own]
                if len(node.children) < len(own)
                else [id for id in own if id in node.children]
            )
            if before != after:
                family = self._family(node, before, after, inherited)
                touched |= self._count_all(family, set(mine))
            waiting += [(node.children[id], before, after, inherited, stays) for id in mine]
        return touched

    def _family(self, node: Node, before: int, after: int, owned: frozenset[str]) -> _Branches:
        key = node.id, before, after, owned
        family = self.families.get(key)
        if family is None:
            each = {id: self._branch(child, before, after, owned) for id, child in node.children.items()}
            counts: Counter[Key] = Counter()
            for branch in each.values():
                counts.update(branch.touched)
            family = self.families[key] = _Branches(each, counts, {id for id, b in each.items() if b.touched})
        return family

    def _branch(self, node: Node, before: int, after: int, owned: frozenset[str]) -> _Branch:
        key = node.id, before, after, owned
        branch = self.branches.get(key)
        if branch is None:
            self._spend(1)
            here = self._differs(node, before, after, owned, False)
            below = self._family(node, before, after, owned) if node.children else None
            touched = here | below.counts.keys() if below else here
            branch = self.branches[key] = _Branch(here, node, below, touched)
        return branch

    def _count_all(self, family: _Branches, but: set[int]) -> set[Key]:
        """Count the objects of all branches but these; returns the differences in the branches counted."""
        for id in family.uncounted - but:
            self._count(family.each[id])
        family.uncounted &= but
        mine: Counter[Key] = Counter()
        for id in but:
            mine.update(family.each[id].touched)
        return {key for key, count in family.counts.items() if count > mine[key]}

    def _count(self, branch: _Branch) -> None:
        if branch.is_counted:
            return
        branch.is_counted = True
        for key in branch.here:
            self.objects[key].add(branch.node)
        if branch.below:
            self._count_all(branch.below, set())

    def _differs(self, node: Node, before: int, after: int, above: frozenset[str], is_owner: bool) -> frozenset[Key]:
        if before == after:
            return frozenset()
        key = node.kind, node.catalog_type, before, after, above, is_owner
        keys = self.known.get(key)
        if keys is None:
            was, will = (usable(node, mask, above, is_owner) for mask in (before, after))
            keys = self.known[key] = frozenset(
                [(True, privilege, node.kind) for privilege in will - was]
                + [(False, privilege, node.kind) for privilege in was - will]
            )
        return keys

    def _spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _Enough

    def _lines(self) -> list[Line]:
        pairs = {key[1:] for key in self.users}
        order = list(Privilege)
        return [
            Line(privilege, kind, self._side((True, privilege, kind)), self._side((False, privilege, kind)))
            for privilege, kind in sorted(pairs, key=lambda pair: (rank(pair[1]), order.index(pair[0])))
        ]

    def _side(self, key: Key) -> Side:
        names = sorted(self.users.get(key, ()))
        objects = sum(node.count for node in self.objects.get(key, ())) if names else 0
        return Side(len(names), objects, names[:SHOWN])

    def _people(self) -> list[PersonLine]:
        """Who gains and loses what, by name."""
        sides: dict[str, tuple[set[Privilege], set[Privilege]]] = defaultdict(lambda: (set(), set()))
        for (is_gained, privilege, _), names in self.users.items():
            for name in names:
                sides[name][not is_gained].add(privilege)
        return [PersonLine(name, *(tuple(sorted(side)) for side in sides[name])) for name in sorted(sides)]
