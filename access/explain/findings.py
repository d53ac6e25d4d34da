"""Findings on a metalake's rights: roles without people, grants that give nothing or end soon, owners who are gone.

Verdicts are those of access.explain.verdicts; nothing is decided here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import islice
from operator import or_
from typing import Generic, NamedTuple, TypeVar

from django.db.models import Exists, OuterRef, Q

from access.explain.ending import SOON, Ending, ending_soon
from access.explain.grants_on import Granted, granted_on
from access.explain.permissions import Redactor, reads_access
from access.explain.queries import Whom
from access.explain.verdicts import Evaluator, Missing, Verdict
from access.history.current import Now
from authz import operations, policy
from authz.actor import Actor
from authz.models import Member
from authz.objects import by_ids
from authz.services.change import enter
from authz.snapshot import DENY_SHIFT, Snapshot
from metalake.kinds import CONTAINERS
from metalake.lineage import Located
from metalake.models import Securable, below
from metalake.privileges import Effect, Privilege

MOST_READ = 5000  # pairs of a role and an object with grants
MOST_JUDGED = 20_000  # verdicts on one grant for one person
SHOWN = 100  # of each sort
SHADOWED = "shadowed"
Row = TypeVar("Row")


class IdleRole(NamedTuple):
    """A role that no enabled member holds; `groups` hold it and have no people."""

    id: int
    name: str
    groups: tuple[str, ...]


class IdleGrant(NamedTuple):
    """An ALLOW that gives none of its role's holders anything; `verdict` is a Verdict or SHADOWED.

    `missing` is what `holder`, one of them or a group, lacks.
    """

    role_id: int
    role: str
    privilege: Privilege
    on: Located
    verdict: str
    says: str
    missing: tuple[Missing, ...] = ()
    holder: Whom | None = None


class Extendable(NamedTuple):
    """A grant that ends soon, and somebody who holds its role directly, for a form that extends it."""

    of: Ending
    holder: Whom | None


class LostOwner(NamedTuple):
    """An object whose owner cannot act in the metalake."""

    on: Located
    owner: str
    sort: str


@dataclass(frozen=True)
class Some(Generic[Row]):
    """The first SHOWN of a sort; `is_cut` if there are more."""

    rows: list[Row]
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Findings:
    """`is_cut`: there are too many grants, and only the first ones, by role, were judged."""

    roles: Some[IdleRole]
    grants: Some[IdleGrant]
    ending: Some[Extendable]
    owners: Some[LostOwner]
    is_cut: bool

    @property
    def count(self) -> int:
        return len(self.roles) + len(self.grants) + len(self.ending) + len(self.owners)


def findings(actor: Actor, metalake: str) -> Findings:
    """What somebody should look at, for whoever may read everybody's access. Raises NotFound, NotInUse, Forbidden.

    A fixed number of statements. Objects on which a DENY takes the actor's right to read access are left out.
    """
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    return _Search(actor, top).findings()


@dataclass
class _Search:
    actor: Actor
    top: Located
    judged: int = 0
    is_cut: bool = False
    evaluators: dict[int, Evaluator] = field(default_factory=dict)
    lasting: dict[tuple[int, int], int] = field(default_factory=dict)

    def findings(self) -> Findings:
        grants = some_of(self._idle_grants())
        return Findings(
            roles=some_of(self._idle_roles()),
            grants=grants,
            ending=some_of(self._ending()),
            owners=some_of(self._lost_owners()),
            is_cut=self.is_cut,
        )

    # What there is

    @property
    def policy(self) -> Snapshot:
        return self.actor.policy

    @cached_property
    def state(self) -> Now:
        return Now(self.top)

    @cached_property
    def roles(self) -> dict[int, str]:
        """All roles of the metalake, by name."""
        return dict(sorted(self.state.roles().items(), key=lambda item: item[1]))

    @cached_property
    def groups(self) -> dict[int, str]:
        return self.state.groups()

    @cached_property
    def holders(self) -> dict[int, list[Actor]]:
        """The enabled members who hold each role, directly or through a group."""
        holders: dict[int, list[Actor]] = defaultdict(list)
        for name, id in sorted(self.state.members().items()):
            for role in self.policy.roles_of(id):
                holders[role].append(Actor(id, name, self.policy, at=self.actor.now))
        return holders

    @cached_property
    def group_holders(self) -> dict[int, list[str]]:
        holding: dict[int, list[str]] = defaultdict(list)
        for id, name in self.groups.items():
            for role in self.policy.group_roles.get(id, ()):
                holding[role].append(name)
        return holding

    def _holder(self, role: int) -> Whom | None:
        """A user or group that holds the role directly, for a form that extends it."""
        for who in self.holders[role]:
            if role in self.policy.user_roles.get(who.id, ()):
                return Whom("user", who.name)
        return Whom("group", self.group_holders[role][0]) if self.group_holders[role] else None

    @cached_property
    def pairs(self) -> list[tuple[int, int, int]]:
        """Role, object, and mask of the ALLOWs in force now, of roles that somebody holds."""
        pairs = list(islice(self._every_pair(), MOST_READ + 1))
        self.is_cut = len(pairs) > MOST_READ
        return pairs[:MOST_READ]

    def _every_pair(self) -> Iterator[tuple[int, int, int]]:
        for role in self.roles:
            if self.holders[role]:
                objects = self.policy.grants.get(role, {}).keys() | self.policy.timed.get(role, {}).keys()
                for id in sorted(objects):
                    yield role, id, self.policy.mask([role], [id], self.actor.now)

    @cached_property
    def located(self) -> dict[int, Located]:
        """The objects with grants, and those of the other findings, if the actor may read access there."""
        ids = {id for _, id, _ in self.pairs} | {row[0] for row in self.owned}
        return {id: on for id, on in by_ids(ids).items() if on.metalake.id == self.top.id and self._reads(on)}

    def _reads(self, on: Located) -> bool:
        return reads_access(self.actor, on if on.kind in operations.FAMILIES["read_access"] else on.top)

    # Roles

    def _idle_roles(self) -> Iterator[IdleRole]:
        for id, name in self.roles.items():
            if not self.holders[id]:
                yield IdleRole(id, name, tuple(sorted(self.group_holders[id])))

    # Grants that give nothing

    def _idle_grants(self) -> Iterator[IdleGrant]:
        for role, id, mask in self.pairs:
            if id not in self.located:
                continue
            for privilege in Privilege:
                if mask & privilege.bit and (idle := self._idle(role, self.located[id], privilege)):
                    yield idle

    def _idle(self, role: int, on: Located, privilege: Privilege) -> IdleGrant | None:
        """The grant if it gives nobody who holds the role anything; `says` is about the first of them."""
        grant = Granted(role, len(on.nodes) - 1, privilege, Effect.ALLOW)
        first: IdleGrant | None = None
        for who in self.holders[role]:
            self.judged += 1
            if self.judged > MOST_JUDGED:
                self.is_cut = True
                return None
            judgement = self._evaluator(on).of_grant(who, grant)
            verdict, says = judgement.verdict.value, judgement.says
            if judgement.verdict is Verdict.EFFECTIVE:
                verdict, says = SHADOWED, self._shadow(who, on, privilege)
                if not says:
                    return None
            elif judgement.verdict is Verdict.BROKEN and self._helps_below(who, on, judgement.missing):
                return None
            if first is None:
                names = role, self.roles[role], privilege, on
                first = IdleGrant(*names, verdict, says, judgement.missing, self._holder(role))
        return first

    def _evaluator(self, on: Located) -> Evaluator:
        """The evaluator for one object; its sentences name DENYs alone, so it is given no other grants."""
        if on.id not in self.evaluators:
            ids = [node.id for node in on.nodes]
            near = replace(self.policy, grants={r: m for id in ids for r, m in self.denies.get(id, {}).items()})
            granted = granted_on(on, near, list(Privilege), self.actor.now)
            self.evaluators[on.id] = Evaluator(Redactor(self.actor, self.state, on), granted, self.roles)
        return self.evaluators[on.id]

    @cached_property
    def denies(self) -> dict[int, dict[int, dict[int, int]]]:
        """The roles with DENYs on each object, each with the objects that it has some on."""
        by_object: dict[int, dict[int, dict[int, int]]] = defaultdict(dict)
        for role in self.roles:
            masks = {id: mask for id, mask in self.policy.grants.get(role, {}).items() if mask >> DENY_SHIFT}
            for id in masks:
                by_object[id][role] = masks
        return by_object

    def _shadow(self, who: Actor, on: Located, privilege: Privilege) -> str:
        """What gives `who` the same for good above the object; only above, so that no two grants shadow each other."""
        for depth in reversed(range(len(on.nodes) - 1)):
            id = on.nodes[depth].id
            if self._lasting(who, id) & privilege.bit:
                role = next(role for role in who.roles if self.policy.grants.get(role, {}).get(id, 0) & privilege.bit)
                above = policy.describe(Located(nodes=on.nodes[: depth + 1]))
                return f"role {self.roles.get(role, '')} allows {privilege} on {above}"
        return ""

    def _lasting(self, who: Actor, id: int) -> int:
        """The grants without a time span that `who` has on one object, as a mask."""
        key = who.id, id
        if key not in self.lasting:
            self.lasting[key] = reduce(or_, (self.policy.grants.get(role, {}).get(id, 0) for role in who.roles), 0)
        return self.lasting[key]

    def _helps_below(self, who: Actor, on: Located, missing: Sequence[Missing]) -> bool:
        """Whether what `who` lacks on a container is allowed on something below it, where the grant then counts."""
        lacking = [one.privilege for one in missing if not one.is_denied]
        return on.kind in CONTAINERS and any(
            self.policy.grants[role][id] & privilege.bit and below_it.lineage.startswith(f"{on.lineage}/")
            for role in who.roles
            for id in self.policy.grants.get(role, {})
            if (below_it := self.located.get(id))
            for privilege in lacking
        )

    # Grants that end soon

    def _ending(self) -> Iterator[Extendable]:
        for one in ending_soon(self.actor, SOON):
            if one.on.metalake.id == self.top.id:
                yield Extendable(one, self._holder(one.role_id))

    # Owners

    @cached_property
    def owned(self) -> list[tuple[int, str | None, str | None]]:
        """What is owned by somebody who is no enabled member, or by a group without one: id, user, group."""
        enabled = Member.objects.filter(metalake_id=self.top.id, enabled=True, user__is_active=True)
        user = enabled.filter(user_id=OuterRef("owner_user_id"))
        group = enabled.filter(user__metalake_groups=OuterRef("owner_group_id"))
        here = Securable.objects.filter(Q(pk=self.top.id) | Q(below(self.top.lineage))).order_by("lineage")
        rows = here.exclude(Exists(user) | Exists(group))
        return list(rows.values_list("pk", "owner_user__username", "owner_group__name")[: SHOWN + 1])

    def _lost_owners(self) -> Iterator[LostOwner]:
        for id, user, group in self.owned:
            if id in self.located:
                yield LostOwner(self.located[id], user or group or "", "user" if user else "group")


def some_of(rows: Iterable[Row]) -> Some[Row]:
    first = list(islice(rows, SHOWN + 1))
    return Some(first[:SHOWN], is_cut=len(first) > SHOWN)
