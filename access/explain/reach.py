"""What somebody reaches below an object, and who reaches an object: bulk evaluation.

It makes no decisions: it collects rights top down and calls `policy.usable` once for all objects with the same
rights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from access.history.current import Placed, State
from authz import operations, policy
from authz.actor import NOBODY, Actor
from authz.objects import finder
from authz.policy import Rights
from authz.snapshot import ALLOWS, Snapshot
from metalake.full_names import dotted
from metalake.kinds import CONTAINERS, IN_CATALOGS, Kind, family, grantable_on
from metalake.lineage import Lineage, Located, Node
from metalake.privileges import Privilege

FEWEST, MOST = 250, 10_000  # objects read at once
OWNED_AT_ONCE = 100
_CONTAINERS = frozenset(CONTAINERS)


@dataclass(frozen=True, eq=False)
class Use:
    """What somebody may use on an object, and whether they own it; objects with the same answer share one Use."""

    kind: Kind
    owner: bool
    privileges: tuple[Privilege, ...]


class Reached(NamedTuple):
    """An object that somebody can load or use a privilege on; `full_name` is dotted."""

    lineage: str
    full_name: str
    use: Use


class Access(NamedTuple):
    """A member who can use a privilege on the object in question."""

    user: str
    use: Use


@dataclass(frozen=True)
class Bearer(Actor):
    """A group or role on its own: a member with only these roles, in the claimed group if it is a group."""

    bears: tuple[int, ...] = ()

    @cached_property
    def roles(self) -> tuple[int, ...]:
        return self.bears

    def is_member(self, metalake_id: int) -> bool:
        return True


def group_alone(group_id: int, name: str, snapshot: Snapshot, at: float | None) -> Bearer:
    bears = tuple(snapshot.group_roles.get(group_id, ()))
    return Bearer(NOBODY, name, snapshot, claimed=(group_id,), at=at, bears=bears)


def role_alone(role_id: int, name: str, snapshot: Snapshot, at: float | None) -> Bearer:
    return Bearer(NOBODY, name, snapshot, at=at, bears=(role_id,))


def usable(rights: Rights, kind: Kind, catalog_type: str | None) -> tuple[Privilege, ...]:
    """policy.usable, without privileges that do not apply in a catalog of that type."""
    return tuple(privilege for privilege in policy.usable(rights, kind) if fits(privilege, catalog_type))


def fits(privilege: Privilege, catalog_type: str | None) -> bool:
    """Whether the privilege applies in a catalog of that type; None is no catalog, or one that no longer exists."""
    return catalog_type is None or family(privilege) in (None, catalog_type)


def access_to(state: State, target: Located, privilege: Privilege | None, after: str) -> Iterator[Access]:
    """The enabled members who can use any privilege on the target, or the given one; by name, after `after`."""
    snapshot = state.policy_on([node.id for node in target.nodes])
    catalog_type = type_of(target)
    alike: dict[tuple, Use] = {}
    for name, user_id in sorted(state.members().items()):
        if name <= after:
            continue
        actor = Actor(user_id, name, snapshot, at=state.at)
        key = actor.is_member(target.metalake.id), actor.roles, tuple(map(actor.owns, target.nodes))
        use = alike.get(key)
        if use is None:
            rights = policy.rights_on(actor, target)
            use = Use(target.kind, operations.SELF in rights.owned, usable(rights, target.kind, catalog_type))
            alike[key] = use
        if use.privileges if privilege is None else privilege in use.privileges:
            yield Access(name, use)


def type_of(target: Located) -> str | None:
    """The type of the catalog that the target is or lies in; None for a metalake."""
    if len(target.nodes) < 2:
        return None
    return target.catalog_type or finder().catalog_types([target.catalog.id]).get(target.catalog.id)


def reach(
    state: State, actor: Actor, below: Located, privilege: Privilege | None = None, after: str = ""
) -> Iterator[Reached]:
    """The objects at or below another that the actor can load or use a privilege on, or use the given privilege on.

    They come by lineage, so that parents come first; `after` is the lineage of the last one of the page before. Memory
    is bounded by the actor's grants, for the past by the metalake's objects.
    """
    return _Descent(state, actor, below, privilege).objects(after)


@dataclass(slots=True)
class _Above:
    """An ancestor of what is read next, with what its children inherit."""

    lineage: str
    kind: Kind | None
    name: str
    mask: int
    owned: frozenset[str]
    catalog_type: str | None
    prefixes: dict[str, str] = field(default_factory=dict)


class _Descent:
    def __init__(self, state: State, actor: Actor, below: Located, privilege: Privilege | None) -> None:
        self.state, self.actor, self.below, self.privilege = state, actor, below, privilege
        self.is_member = actor.is_member(below.metalake.id)
        self.granted = granted_to(actor)
        self.ways_to_granted = {
            int(step) for lineage in state.lineages(self.granted) for step in lineage[1:].split("/")[:-1]
        }
        self.separator = finder().separator()
        self.types: dict[int, str] = {}
        self.uses: dict[tuple, Use | None] = {}
        self.user_id, self.groups = actor.id, actor.groups
        self.above = [_Above("", None, "", 0, frozenset(), None)]
        self._owned_next: list[str] | None = None

    def objects(self, after: str) -> Iterator[Reached]:
        lineage = ""
        for node in self.below.nodes[:-1]:
            lineage = f"{lineage}/{node.id}"
            self._know_types([Placed(node.id, node.kind, node.name, lineage, None, None)])
            self._enter(Placed(node.id, node.kind, node.name, lineage, node.owner_user_id, node.owner_group_id))
        if after:
            self._return_to(after)
        start, size = f"{after}/" if after else self.below.lineage, FEWEST
        while True:
            rows = self.state.walk(self.below, start, size)
            self._know_types(rows)
            ahead = start
            for row in rows:
                if row.lineage < ahead:
                    continue
                reached = self._enter(row)
                if reached is not None:
                    yield reached
                if row.kind in _CONTAINERS and self._is_dead_end(row):
                    ahead = f"{row.lineage}0"
            if len(rows) < size:
                return
            # The batch size grows with each read, and is reset after skipping an unreachable subtree.
            last = f"{rows[-1].lineage}/"
            start, size = (ahead, FEWEST) if ahead > last else (last, min(size * 4, MOST))

    def _return_to(self, lineage: str) -> None:
        steps = lineage[1:].split("/")
        for depth in range(len(self.below.nodes), len(steps) + 1):
            way = "/" + "/".join(steps[:depth])
            rows = self.state.walk(self.below, way, 1)
            if not rows or rows[0].lineage != way:
                return  # it no longer exists, nor does anything below it
            self._know_types(rows)
            self._enter(rows[0])

    def _know_types(self, rows: list[Placed]) -> None:
        if catalogs := [row.id for row in rows if row.kind == Kind.CATALOG]:
            self.types |= finder().catalog_types(catalogs)

    def _enter(self, row: Placed) -> Reached | None:
        """What the actor reaches at this row, if anything; a container becomes the parent of the rows after it."""
        id, kind, name, lineage, owner_user, owner_group = row
        parent, above = lineage.rpartition("/")[0], self.above
        while above[-1].lineage != parent:
            above.pop()
        top = above[-1]
        mask, owned, catalog_type = top.mask, top.owned, top.catalog_type
        prefix = top.prefixes.get(kind)
        if prefix is None:
            prefix = top.prefixes[kind] = self._prefix(top, kind)
        full_name = prefix + (dotted((name,)) if "." in name or "%" in name else name)
        is_owner = owner_user == self.user_id or (owner_group is not None and owner_group in self.groups)
        if id in self.granted:
            mask |= self.granted[id]
        if kind in _CONTAINERS:
            if kind == Kind.CATALOG:
                catalog_type = self.types.get(id)
            inherited = owned | {kind} if is_owner else owned
            above.append(_Above(lineage, Kind(kind), full_name, mask, inherited, catalog_type))
        key = kind, mask, owned, is_owner, catalog_type
        use = self.uses[key] if key in self.uses else self._use(*key)
        return None if use is None else Reached(lineage, full_name, use)

    def _prefix(self, above: _Above, kind: str) -> str:
        if above.kind in (None, Kind.METALAKE):
            return ""
        return above.name + (self.separator if above.kind == kind == Kind.SCHEMA else ".")

    def _use(self, kind: str, mask: int, owned: frozenset[str], is_owner: bool, catalog_type: str | None) -> Use | None:
        own = owned | {kind, operations.SELF} if is_owner else owned
        rights = Rights(self.is_member, mask, frozenset(own))
        known = Kind(kind)
        use: Use | None = Use(known, is_owner, usable(rights, known, catalog_type))
        assert use is not None
        if self.privilege is None:
            is_reached = bool(use.privileges) or policy.decide(operations.load_of(known), rights, known)
        else:
            is_reached = self.privilege in use.privileges
        if not is_reached:
            use = None
        self.uses[kind, mask, owned, is_owner, catalog_type] = use
        return use

    def _is_dead_end(self, row: Placed) -> bool:
        """Whether nothing below is reachable: no grant or ownership changes the rights, and these permit nothing."""
        if row.id in self.ways_to_granted:
            return False
        above = self.above[-1]
        kinds = (Kind.CATALOG, *IN_CATALOGS) if above.kind is Kind.METALAKE else IN_CATALOGS
        for kind in kinds:
            key = kind, above.mask, above.owned, False, above.catalog_type
            if (self.uses[key] if key in self.uses else self._use(*key)) is not None:
                return False
        return not self._owns_below(row.lineage)

    def _owns_below(self, lineage: str) -> bool:
        """Whether the actor owns something below this lineage.

        Called with ascending lineages, so each batch of owned objects is read once.
        """
        first, behind = f"{lineage}/", f"{lineage}0"
        while self._owned_next is None or (self._owned_next and self._owned_next[-1] < first):
            self._owned_next = self.state.owned(self.actor, self.below, first, OWNED_AT_ONCE)
        return any(first < way < behind for way in self._owned_next)


def granted_to(actor: Actor) -> Mapping[int, int]:
    """The mask of all that is allowed and denied to the actor at their moment, by object id."""
    snapshot, now = actor.policy, actor.now
    masks: dict[int, int] = {}
    for role in actor.roles:
        counts = -1 if role in actor.allowing_roles else ~ALLOWS
        for id, mask in snapshot.grants.get(role, {}).items():
            masks[id] = masks.get(id, 0) | mask & counts
        for id, grants in snapshot.timed.get(role, {}).items():
            for grant in grants:
                if grant.starts <= now < grant.ends:
                    masks[id] = masks.get(id, 0) | grant.mask & counts
    return masks


@dataclass(frozen=True)
class Standing:
    """What one actor may do on an object: the topmost thing they own on its lineage, and the privileges in effect."""

    owns: Node | None
    privileges: tuple[Privilege, ...]


def standing(actor: Actor, lineage: Lineage) -> Standing:
    """What the actor may do on the object; no query, only the actor's snapshot."""
    rights = policy.rights_on(actor, lineage)
    kind = Kind(lineage.nodes[-1].kind)
    owns = next((node for node in lineage.nodes if actor.owns(node)), None) if rights.member else None
    privileges = [privilege for privilege in rights.effective() if kind in grantable_on(privilege)]
    return Standing(owns, tuple(privileges))
