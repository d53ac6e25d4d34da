"""Access paths: how somebody gets or is denied a privilege on an object, by role, group, grant or ownership.

An access path is one grant, on the object or an ancestor, to a role that somebody holds directly or through a group; or
ownership of the object or an ancestor. Paths are generated lazily in order, by ids, so that a page is cheap however
many there are; the evaluator decides what each gives (access.explain.verdicts), and only those of a page get names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

import orjson

from access.explain import reach
from access.explain.grants_on import Granted, Sorted, bearing_on, granted_on
from access.explain.holdings import Holding, holding_by
from access.explain.permissions import Place, Redactor, is_reader, open_on, subject
from access.explain.queries import Whom
from access.explain.verdicts import EFFECTIVE, Evaluator, Judgement, Missing, Verdict
from access.history.current import GrantRow
from authz.actor import Actor
from authz.policy import Rights
from authz.snapshot import Snapshot
from metalake.errors import Invalid
from metalake.levels import Level, signs_of
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

DENIED, OWNED, ALLOWED = range(3)  # the sections of a list

Key = tuple[int, str, str, str, str, int]
"""The place of a way in its list: section, privilege, name of whom it is listed by, group, role, distance."""


class Narrowed(NamedTuple):
    """Which ways are wanted. `by` is what is listed: the ways of each "user", of each "group" or of each "role".

    `show`: only what is "effective", granted on the object itself ("direct") or above it ("inherited"). `whom` is a
    user, group or role on the way, by name; `q` a text in the name of one, in any case. `level`: only of those who can
    read, change or grant here, by any privilege for that (metalake.levels.signs_of); of groups and roles, who hold one.
    """

    by: str = "user"
    show: str | None = None
    privilege: Privilege | None = None
    whom: Whom | None = None
    effect: Effect | None = None
    q: str = ""
    level: Level | None = None


class Row(NamedTuple):
    """A way by ids: who is judged, through which group, by which grant, or by owning the object at this depth."""

    key: Key
    who: Actor
    group_id: int | None
    grant: Granted | None
    depth: int


class EvaluatedPath(NamedTuple):
    """A row with the evaluator's verdict on it."""

    row: Row
    judgement: Judgement


@dataclass(frozen=True)
class Rows:
    """The ways on one lineage; `own` is the one user whose ways are shown, None for everybody's."""

    sight: Redactor
    policy: Snapshot
    now: float
    narrowed: Narrowed
    own: Actor | None

    # Who and what there is

    @cached_property
    def granted(self) -> Sorted:
        target = self.sight.target
        return granted_on(target, self.policy, bearing_on(target, self.catalog_type), self.now)

    @cached_property
    def role_names(self) -> dict[int, str]:
        """Of the roles with grants on the lineage."""
        return self.sight.state.roles({role for by_role in self.granted.values() for role in by_role})

    @cached_property
    def group_names(self) -> dict[int, str]:
        return self.sight.state.groups()

    @cached_property
    def members(self) -> list[Actor]:
        """Everybody whose access paths are shown, by name."""
        if self.own:
            return [self.own]
        return [Actor(id, name, self.policy, at=self.now) for name, id in sorted(self.sight.state.members().items())]

    @cached_property
    def listed(self) -> list[Actor]:
        """The users, groups or roles that the ways are listed by, by name, if one of their ways may be wanted."""
        return [who for who in self._all_listed() if self._may_match(who) and self._is_able(who)]

    def _is_able(self, who: Actor) -> bool:
        """Whether they can do what the level is for."""
        if self.narrowed.level is None:
            return True
        rights, signs = self._evaluator.rights(who), signs_of(self.narrowed.level)
        if self.narrowed.by == "user":
            return not signs.isdisjoint(self._holding(rights).usable)
        return bool(rights.owned) or any(map(rights.holds, signs))

    def holding(self, who: Actor) -> Holding:
        """What they may use on the object."""
        return self._holding(self._evaluator.rights(who))

    def _holding(self, rights: Rights) -> Holding:
        if rights not in self._holdings:
            self._holdings[rights] = holding_by(rights, self.sight.target.kind, self.catalog_type)
        return self._holdings[rights]

    @cached_property
    def _holdings(self) -> dict[Rights, Holding]:
        return {}

    @cached_property
    def catalog_type(self) -> str | None:
        return reach.type_of(self.sight.target)

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.sight, self.granted, self.role_names, alone=self.narrowed.by != "user")

    def _all_listed(self) -> list[Actor]:
        if self.narrowed.by == "user":
            return self.members
        is_group = self.narrowed.by == "group"
        names, make = (self.group_names, reach.group_alone) if is_group else (self.role_names, reach.role_alone)
        ids = names.keys() if self.own is None else names.keys() & (self.own.groups if is_group else self.own.roles)
        return [make(id, name, self.policy, self.now) for name, id in sorted((names[id], id) for id in ids)]

    def _may_match(self, who: Actor) -> bool:
        """Whether one of their access paths may match the name filters."""
        whom, text = self.narrowed.whom, self.narrowed.q.casefold()
        if not whom and not text:
            return True
        names = {
            "group": [self.group_names.get(id, "") for id in who.groups],
            "role": [self.role_names.get(id, "") for id in who.roles],
            self.narrowed.by: [who.name],
        }
        if whom and whom.name not in names[whom.sort]:
            return False
        return any(text in name.casefold() for some in names.values() for name in some)

    @cached_property
    def holders(self) -> dict[int, list[int]]:
        """The places in `listed` of those who hold a role, for each role with grants on the lineage."""
        holders: dict[int, list[int]] = defaultdict(list)
        for place, who in enumerate(self.listed):
            for role in who.roles:
                if role in self.role_names:
                    holders[role].append(place)
        return holders

    @cached_property
    def member_counts(self) -> Counter[int]:
        """How many enabled members are in each group, or hold each role in a list by roles."""
        of = (who.groups if self.narrowed.by == "group" else who.roles for who in self.members)
        return Counter(id for ids in of for id in ids)

    # The rows

    def judged(self, after: Key | None) -> Iterator[EvaluatedPath]:
        """The matching rows after `after`."""
        return self._judged(row for row in self._every(after) if after is None or row.key > after)

    def by_holder(self, after: str) -> Iterator[tuple[Actor, list[EvaluatedPath]]]:
        """Whom the ways are listed by, by name, from the one after `after`, each with their matching rows."""
        for who in self.listed:
            if who.name > after and (rows := list(self._judged(sorted(self._of_holder(who), key=attrgetter("key"))))):
                yield who, rows

    def _judged(self, rows: Iterable[Row]) -> Iterator[EvaluatedPath]:
        for row in filter(self._is_wanted, rows):
            if row.grant:
                judgement = self._evaluator.of_grant(row.who, row.grant)
            else:
                judgement = self._evaluator.of_owner(row.who, self.sight.lineage[row.depth])
            if self.narrowed.show != "effective" or judgement == EFFECTIVE:
                yield EvaluatedPath(row, judgement)

    def _of_holder(self, who: Actor) -> Iterator[Row]:
        if any(role in self.role_names for role in who.roles):
            for (effect, privilege), by_role in self.granted.items():
                section = DENIED if effect is Effect.DENY else ALLOWED
                if self.narrowed.privilege in (None, privilege) and self.narrowed.effect in (None, effect):
                    yield from self._of_one(section, privilege, by_role, who)
        if self.narrowed.by != "role" and self.narrowed.effect is not Effect.DENY:
            yield from self._owned_by(who)

    def _every(self, after: Key | None) -> Iterator[Row]:
        section = after[0] if after else DENIED
        wanted = self.narrowed.effect
        if section == DENIED and wanted is not Effect.ALLOW:
            yield from self._by_grants(DENIED, Effect.DENY, after)
        if wanted is Effect.DENY:
            return
        if section <= OWNED and self.narrowed.by != "role":
            yield from self._by_owning()
        yield from self._by_grants(ALLOWED, Effect.ALLOW, after)

    def _by_grants(self, section: int, effect: Effect, after: Key | None) -> Iterator[Row]:
        whom, begin = self.narrowed.whom, after if after and after[0] == section else (section, "", "")
        for (of_effect, privilege), by_role in sorted(self.granted.items(), key=lambda item: item[0]):
            if of_effect is not effect or self.narrowed.privilege not in (None, privilege) or privilege < begin[1]:
                continue
            start = begin[2] if privilege == begin[1] else ""
            if whom and whom.sort == "role":
                by_role = {role: some for role, some in by_role.items() if self.role_names.get(role) == whom.name}
            for place in sorted({place for role in by_role for place in self.holders.get(role, ())}):
                if (who := self.listed[place]).name >= start:
                    yield from sorted(self._of_one(section, privilege, by_role, who), key=lambda row: row.key)

    def _of_one(
        self, section: int, privilege: Privilege, by_role: dict[int, list[Granted]], who: Actor
    ) -> Iterator[Row]:
        """The rows of one user, group or role by the grants of one privilege with one effect."""
        last = len(self.sight.lineage) - 1
        for role in who.roles if section == DENIED else who.allowing_roles:
            for grant in by_role.get(role, ()):
                for group, group_id in self._paths(who, role):
                    key = section, privilege.value, who.name, group, self.role_names[role], last - grant.depth
                    yield Row(key, who, group_id, grant, grant.depth)

    def _paths(self, who: Actor, role: int) -> Iterator[tuple[str, int | None]]:
        """How somebody holds a role: directly ("" and None), and by the name and id of each group that holds it."""
        if self.narrowed.by == "role" or role in self.policy.user_roles.get(who.id, ()):
            yield "", None
        for id in who.groups:
            if role in self.policy.group_roles.get(id, ()):
                yield self.group_names.get(id, ""), id

    def _by_owning(self) -> list[Row]:
        return sorted((row for who in self.listed for row in self._owned_by(who)), key=attrgetter("key"))

    def _owned_by(self, who: Actor) -> Iterator[Row]:
        last = len(self.sight.lineage) - 1
        for depth, node in enumerate(self.sight.target.nodes):
            if who.owns(node):
                group = node.owner_group_id
                name = "" if group is None else self.group_names.get(group, "")
                yield Row((OWNED, "", who.name, name, "", last - depth), who, group, None, depth)

    def _is_wanted(self, row: Row) -> bool:
        narrowed, is_direct = self.narrowed, row.depth == len(self.sight.lineage) - 1
        if narrowed.show == ("inherited" if is_direct else "direct"):
            return False
        _, _, name, group, role, _ = row.key
        if (
            narrowed.whom
            and narrowed.whom.name != {"group": group, "role": role, narrowed.by: name}[narrowed.whom.sort]
        ):
            return False
        text = narrowed.q.casefold()
        return not text or any(text in one.casefold() for one in (name, group, role))


MOST_COUNTED = 1000
READ_AT_ONCE = 500
SORTS = ("user", "group", "role")
SHOWN = ("effective", "direct", "inherited")
ALL = Narrowed()


class Named(NamedTuple):
    """A user, group or role on a way."""

    id: int
    name: str


@dataclass(frozen=True)
class AccessPath:
    """One way to a privilege, or to its DENY. Of an owner `privilege` is None, for all of them, and so is `role`.

    `user` is None in a list by groups or roles; `group` if the role is held directly, or in a list by roles. `on` is
    None if the asker may not see the object. `says` and `missing` tell why it gives nothing, unless it is effective.
    `member_count`: in a list by groups or roles, the enabled members who have it by this; None if the asker sees only
    what is their own.
    """

    user: Named | None
    group: Named | None
    role: Named | None
    privilege: Privilege | None
    effect: Effect
    on: Located | None
    is_direct: bool
    verdict: Verdict
    says: str = ""
    missing: tuple[Missing, ...] = ()
    member_count: int | None = None
    grantor: str = ""
    granted_at: datetime | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def owner(self) -> bool:
        return self.privilege is None

    @property
    def is_deny(self) -> bool:
        return self.effect is Effect.DENY


@dataclass(frozen=True)
class AccessPathsPage:
    """Some of the ways to an object; `next` is where the next page begins, "" on the last one.

    `total` is how many there are, or with `at_least` how many at least. `is_complete`: of everybody, not just the
    asker's own.
    """

    target: Located
    ways: list[AccessPath]
    next: str
    total: int
    at_least: bool
    is_complete: bool


def ways_in(
    actor: Actor,
    metalake: str,
    on: Place | Located,
    as_of: datetime | None = None,
    *,
    narrowed: Narrowed = ALL,
    after: str = "",
    limit: int = 50,
) -> AccessPathsPage:
    """One page of the ways to an object, now or at a moment: DENY first, then owners, then ALLOW, by privilege.

    Callers who may read access to the object get everybody's ways, others who see it their own. `after` is `next` of
    the previous page. Raises NotFound for an object hidden from the caller, and Invalid.
    """
    behind = _read_after(after)
    rows = _rows(actor, metalake, on, as_of, narrowed)
    first = list(islice(rows.judged(None), MOST_COUNTED + 1))
    some = list(islice(rows.judged(behind), limit + 1)) if behind else first[: limit + 1]
    return AccessPathsPage(
        target=rows.sight.target,
        ways=list(_ways(rows, some[:limit])),
        next=orjson.dumps(some[limit - 1].row.key).decode() if len(some) > limit else "",
        total=min(len(first), MOST_COUNTED),
        at_least=len(first) > MOST_COUNTED,
        is_complete=rows.own is None,
    )


class Holder(NamedTuple):
    """A user, group or role with the first of their `way_count` ways; `holding` is what these come to, None for a role.

    `member_count`: the enabled members in the group or with the role; None if the asker sees only their own.
    """

    whom: Named
    holding: Holding | None
    ways: list[AccessPath]
    way_count: int
    member_count: int | None


@dataclass(frozen=True)
class HoldersPage:
    """Some of those who have ways to an object, by name; `next` is the name that the next page comes after.

    `total`, `at_least` and `is_complete` as of a page of ways.
    """

    target: Located
    holders: list[Holder]
    next: str
    total: int
    at_least: bool
    is_complete: bool


def holders_in(
    actor: Actor,
    metalake: str,
    on: Place | Located,
    as_of: datetime | None = None,
    *,
    narrowed: Narrowed = ALL,
    after: str = "",
    limit: int = 25,
    most_ways: int = 10,
) -> HoldersPage:
    """One page of the users, groups or roles that have ways to an object, each with their first ways.

    Raises the errors of `ways_in`.
    """
    rows = _rows(actor, metalake, on, as_of, narrowed)
    every = list(islice(rows.by_holder(""), MOST_COUNTED + 1))
    some = list(islice(rows.by_holder(after), limit + 1)) if after else every[: limit + 1]
    ways = iter(_ways(rows, [one for _, judged in some[:limit] for one in judged[:most_ways]]))
    shown = [
        Holder(
            whom=_named(rows, who),
            holding=None if narrowed.by == "role" else rows.holding(who),
            ways=list(islice(ways, min(len(judged), most_ways))),
            way_count=len(judged),
            member_count=None if rows.own or narrowed.by == "user" else rows.member_counts[_named(rows, who).id],
        )
        for who, judged in some[:limit]
    ]
    return HoldersPage(
        target=rows.sight.target,
        holders=shown,
        next=some[limit - 1][0].name if len(some) > limit else "",
        total=min(len(every), MOST_COUNTED),
        at_least=len(every) > MOST_COUNTED,
        is_complete=rows.own is None,
    )


def _named(rows: Rows, who: Actor) -> Named:
    ids = {"user": (who.id,), "group": who.groups, "role": who.roles}
    return Named(ids[rows.narrowed.by][0], who.name)


def every_way(
    actor: Actor, metalake: str, on: Place | Located, as_of: datetime | None = None, *, narrowed: Narrowed = ALL
) -> Iterator[AccessPath]:
    """All ways to an object, in the order of their pages. Raises the errors of `ways_in`, before the first one."""
    rows = _rows(actor, metalake, on, as_of, narrowed)

    def pieces() -> Iterator[AccessPath]:
        judged = rows.judged(None)
        while some := list(islice(judged, READ_AT_ONCE)):
            yield from _ways(rows, some)

    return pieces()


def _rows(actor: Actor, metalake: str, on: Place | Located, as_of: datetime | None, narrowed: Narrowed) -> Rows:
    _check(narrowed)
    state, target = open_on(actor, metalake, on, as_of)
    ids = [node.id for node in target.nodes]
    own = None if is_reader(actor, state, target) else subject(actor, state, target, None, ids)
    now = actor.now if state.at is None else state.at
    return Rows(Redactor(actor, state, target), own.policy if own else state.policy_on(ids), now, narrowed, own)


def _check(narrowed: Narrowed) -> None:
    by, show, _, whom, *_ = narrowed
    if by not in SORTS:
        raise Invalid(f"Ways are listed by {', '.join(SORTS)}, not by {by}.")
    if show is not None and show not in SHOWN:
        raise Invalid(f"Ways are narrowed to {', '.join(SHOWN)}, not to {show}.")
    if whom and SORTS.index(whom.sort) < SORTS.index(by):
        raise Invalid(f"A list by {by} has no {whom.sort} on its ways: list by {whom.sort}.")


def _read_after(text: str) -> Key | None:
    if not text:
        return None
    try:
        section, *names, distance = orjson.loads(text)
    except (ValueError, TypeError):
        section, names, distance = None, [], None
    is_key = section in range(DENIED, ALLOWED + 1) and type(distance) is int and len(names) == 4
    if not (is_key and all(type(name) is str for name in names)):
        raise Invalid("This is no page of the list; begin again with the first one.")
    privilege, name, group, role = names
    return section, privilege, name, group, role, distance


def _ways(rows: Rows, some: Sequence[EvaluatedPath]) -> Iterator[AccessPath]:
    """These rows with names, and who granted what and when."""
    ids = [node.id for node in rows.sight.target.nodes]
    grants = [row.grant for row, _ in some if row.grant]
    stored = rows.sight.state.grants({ids[grant.depth] for grant in grants}, {grant.role_id for grant in grants})
    details = {(one.role_id, one.object_id, one.privilege): one for one in stored}
    for judged in some:
        grant = judged.row.grant
        yield _way(rows, judged, details.get((grant.role_id, ids[grant.depth], grant.privilege)) if grant else None)


def _way(rows: Rows, judged: EvaluatedPath, details: GrantRow | None) -> AccessPath:
    (key, who, group_id, grant, depth), judgement = judged
    _, _, name, group, role, distance = key
    way = AccessPath(
        user=Named(who.id, name) if rows.narrowed.by == "user" else None,
        group=None if group_id is None else Named(group_id, group),
        role=Named(grant.role_id, role) if grant else None,
        privilege=grant.privilege if grant else None,
        effect=grant.effect if grant else Effect.ALLOW,
        on=rows.sight.shown(rows.sight.lineage[depth]),
        is_direct=distance == 0,
        verdict=judgement.verdict,
        says=judgement.says,
        missing=judgement.missing,
        member_count=_member_count(rows, judged),
    )
    if details is None:
        return way
    _, _, _, _, grantor, granted_at, starts_at, ends_at = details
    return replace(way, grantor=grantor, granted_at=granted_at, starts_at=starts_at, ends_at=ends_at)


def _member_count(rows: Rows, judged: EvaluatedPath) -> int | None:
    if rows.narrowed.by == "user" or rows.own:
        return None
    row = judged.row
    id = row.group_id if rows.narrowed.by == "group" else row.grant and row.grant.role_id
    return rows.member_counts[id or 0]
