"""Grants as code: the present state in one form, and how a wanted one differs from it.

Every change is checked here as when it is made, so that a refusal comes early and names its entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import Q

from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Group, Member, Role, unended
from authz.name_rules import check_role_name
from authz.objects import address_of, by_ids, find_object, locate_all
from authz.services import entries
from authz.services.authority import may_lift, require, require_give, require_lift_of_roles
from authz.services.changing import enter
from authz.services.entries import Entries, Given, Held
from authz.services.grants import stays
from authz.services.publishing import GroupRole, UserRole
from metalake.errors import Forbidden, Invalid, MetalakeError, NotFound, TooLarge, at
from metalake.kinds import Kind
from metalake.lineage import Address, Located, missing
from metalake.models import below
from metalake.names import dotted
from metalake.privileges import Effect, Privilege
from metalake.wire import quote

MAX_GRANTS = 100_000

Holders = dict[str, list[str]]
"""Names by "user" and "group"."""


class WantedGrant(NamedTuple):
    """All that a role is to hold on one object; `place` names the entry in the file."""

    place: str
    kind: Kind
    full_name: str
    entries: Entries


class WantedRole(NamedTuple):
    """A role; `users` and `groups` are None where the file does not say who holds it."""

    place: str
    name: str
    users: list[str] | None
    groups: list[str] | None
    grants: list[WantedGrant]

    def holders(self) -> Holders:
        said = {"user": self.users, "group": self.groups}
        return {sort: names for sort, names in said.items() if names is not None}


class Wanted(NamedTuple):
    """The state of all grants of a metalake, or of an object and all below it (`subtree`)."""

    metalake: str
    subtree: tuple[Kind, str] | None
    roles: list[WantedRole]


class Change(NamedTuple):
    """One line of a plan: "createRole", "revoke", "grant", "unassign" or "assign"."""

    change: str
    role: str
    privilege: Privilege | None = None
    given: Given | None = None
    on: tuple[Kind, str] | None = None
    holder: tuple[str, str] | None = None


@dataclass
class Step:
    """What changes about one role, by ids; `role_id` is None for one that is to be made."""

    role_id: int | None
    name: str
    give: dict[int, Entries] = field(default_factory=dict)
    take: dict[int, Entries] = field(default_factory=dict)
    assign: dict[str, dict[int, str]] = field(default_factory=dict)
    unassign: dict[str, dict[int, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.role_id is None or any((self.give, self.take, self.assign, self.unassign))

    def taken_whole(self, object_id: int) -> list[Privilege]:
        """ALLOWs that go without another span or effect in their place."""
        given = self.give.get(object_id, {})
        held = self.take[object_id]
        return [p for p in held if held[p].effect is Effect.ALLOW and p not in given]


@dataclass(frozen=True)
class Difference:
    """From the present to the wanted state; `standing` is what the roles hold on the objects that change."""

    top: Located
    scope: Located
    steps: list[Step]
    located: dict[int, Located]
    standing: dict[int, dict[int, Entries]]

    @property
    def changes(self) -> list[Change]:
        return changes_of(self.steps, self.located)


# What there is


def export(actor: Actor, metalake: str, subtree: tuple[Kind, str] | None = None) -> Wanted:
    """The present state, sorted. The whole metalake asks to read every role, a subtree to grant on it."""
    top = enter(actor, metalake)
    scope = _scope(actor, top, subtree)
    present, located = _present(actor, top, scope)
    _require_all(actor, scope, located)
    is_whole = scope is top
    users, groups = (_holders(top, "user"), _holders(top, "group")) if is_whole else ({}, {})
    return Wanted(
        top.name,
        None if is_whole else (scope.kind, dotted(scope.full_name)),
        [
            WantedRole(
                "",
                name,
                sorted(users.get(id, {}).values()) if is_whole else None,
                sorted(groups.get(id, {}).values()) if is_whole else None,
                _sorted(present.get(id, {}), located),
            )
            for name, id in sorted(_roles(top).items())
            if is_whole or id in present
        ],
    )


def _sorted(on: dict[int, Entries], located: dict[int, Located]) -> list[WantedGrant]:
    return sorted(
        (WantedGrant("", located[id].kind, dotted(located[id].full_name), held) for id, held in on.items()),
        key=lambda grant: (grant.kind != Kind.METALAKE, grant.full_name, grant.kind),
    )


def _scope(actor: Actor, top: Located, subtree: tuple[Kind, str] | None) -> Located:
    if subtree is None:
        policy.require(actor, operations.READ_ROLES, top)
        return top
    kind, full_name = subtree
    if kind is Kind.METALAKE or kind not in operations.FAMILIES["grant_on"]:
        *some, last = (kind for kind in operations.FAMILIES["grant_on"] if kind is not Kind.METALAKE)
        raise Invalid(f"A subtree is a {', '.join(some)} or {last}; leave it out for all.", kind="object")
    target = find_object(top.name, kind, full_name, actor)
    require(actor, operations.grant_on(target.kind), target)
    return target


def _present(actor: Actor, top: Located, scope: Located) -> tuple[dict[int, dict[int, Entries]], dict[int, Located]]:
    """What each role holds on each object in scope, without what has ended, and the objects.

    What is dropped between the statements is in neither.
    """
    rows = Grant.objects.filter(unended(actor.moment), group__role__parent_id=top.id)
    if scope is not top:
        rows = rows.filter(Q(content_object_id=scope.id) | below(scope.lineage, "content_object__lineage"))
    found: dict[int, dict[int, Entries]] = defaultdict(lambda: defaultdict(dict))
    fields = ("group__role", "content_object_id", "permission__codename", "effect", "starts_at", "ends_at")
    for role, on, codename, effect, starts, ends in rows.values_list(*fields).iterator(chunk_size=10_000):
        found[role][on][Privilege(codename)] = Given(Effect(effect), starts, ends)
    located = by_ids({id for on in found.values() for id in on})
    return {role: {id: held for id, held in on.items() if id in located} for role, on in found.items()}, located


def _require_all(actor: Actor, scope: Located, located: dict[int, Located]) -> None:
    """Where granting is denied somewhere below what one may grant on, the grants there are not for the caller."""
    if scope.kind is Kind.METALAKE:
        return
    for found in located.values():
        if not policy.permits(actor, operations.read_access(found.kind), found):
            raise Forbidden(f"{actor.name} may not read every grant in {policy.describe(scope)}.", kind=scope.kind)


def _roles(top: Located) -> dict[str, int]:
    return dict(Role.objects.filter(parent_id=top.id).values_list("name", "pk"))


def _holders(top: Located, sort: str) -> dict[int, dict[int, str]]:
    """Who holds each role itself: names by id, by role."""
    if sort == "user":
        held = UserRole.objects.filter(group__role__parent_id=top.id, user__memberships__metalake_id=top.id)
        rows: Any = held.values_list("group__role", "user_id", "user__username")
    else:
        rows = GroupRole.objects.filter(role__parent_id=top.id).values_list("role_id", "group_id", "group__name")
    found: dict[int, dict[int, str]] = defaultdict(dict)
    for role, id, name in rows:
        found[role][id] = name
    return found


# How the wanted state differs


def compare(actor: Actor, metalake: str, wanted: Wanted) -> Difference:
    """What would have to change. Raises what a change that is wrong or not the caller's raises, naming its entry."""
    return _Comparison(actor, metalake, wanted).difference()


class _Comparison:
    def __init__(self, actor: Actor, metalake: str, wanted: Wanted) -> None:
        self.actor, self.wanted = actor, wanted
        self.top = enter(actor, metalake)
        if wanted.metalake != metalake:
            raise Invalid(f"metalake: the file is about {quote(wanted.metalake)}, not about {metalake}.")
        if sum(len(grant.entries) for role in wanted.roles for grant in role.grants) > MAX_GRANTS:
            raise TooLarge(f"{MAX_GRANTS} grants may be planned at once.")
        with at("subtree") if wanted.subtree else at(""):
            self.scope = _scope(actor, self.top, wanted.subtree)
        self.role_ids = _roles(self.top)
        self.present, self.located = _present(actor, self.top, self.scope)
        _require_all(actor, self.scope, self.located)
        self.fresh: list[tuple[str, Located, Entries]] = []

    def difference(self) -> Difference:
        named: set[str] = set()
        found = self._find()
        holders = self._known_holders()
        steps = []
        for role in self.wanted.roles:
            with at(role.place):
                if role.name in named:
                    raise Invalid(f"Role {role.name} is there twice; say it once.", kind="role")
                named.add(role.name)
                self._check_role(role.name)
            step = self._step(role, found)
            self._hold(step, role, holders)
            steps.append(step)
        for name, id in self.role_ids.items():
            if name not in named and id in self.present:
                step = Step(id, name)
                self._take(step, {}, f"role {name}")
                steps.append(step)
        self._check_families()
        steps = sorted(filter(None, steps), key=lambda step: step.name)
        count = sum(len(on) for step in steps for part in (step.give, step.take) for on in part.values())
        if count > MAX_GRANTS:
            raise TooLarge(f"The plan changes {count} grants; {MAX_GRANTS} may change at once.")
        return Difference(self.top, self.scope, steps, self.located, self.present)

    def _find(self) -> dict[Address, Located]:
        """The objects that the file names; those that are missing are left out."""
        named: dict[Address, None] = {}
        for role in self.wanted.roles:
            for grant in role.grants:
                with at(grant.place):
                    named[self._address(grant)] = None
        found = locate_all(self.top, named)
        self.located |= {located.id: located for located in found.values()}
        return found

    def _address(self, grant: WantedGrant) -> Address:
        return address_of(self.top.name, grant.kind, grant.full_name)

    def _check_role(self, name: str) -> None:
        if name not in self.role_ids:
            check_role_name(name)
            if not policy.permits(self.actor, operations.CREATE_ROLE, self.top):
                raise Forbidden(f"{self.actor.name} may not create role in {policy.describe(self.top)}.", kind="role")

    def _step(self, role: WantedRole, found: dict[Address, Located]) -> Step:
        step = Step(self.role_ids.get(role.name), role.name)
        standing = self.present.get(step.role_id or 0, {})
        wanted: dict[int, Entries] = {}
        for grant in role.grants:
            with at(grant.place):
                on = found.get(self._address(grant))
                if on is None or not self._is_in_scope(on):
                    raise self._missing(grant)
                if on.id in wanted:
                    raise Invalid(f"{grant.kind} {grant.full_name} is there twice; say it once.", kind="object")
                wanted[on.id] = grant.entries
                held = standing.get(on.id, {})
                fresh = {p: given for p, given in grant.entries.items() if held.get(p) != given}
                if fresh:
                    require_give(self.actor, on, fresh)
                    entries.check_spans(fresh, self.actor.moment)
                    step.give[on.id] = fresh
                    self.fresh.append((grant.place, on, fresh))
        self._take(step, wanted, role.place)
        return step

    def _is_in_scope(self, on: Located) -> bool:
        return self.scope.nodes == on.nodes[: len(self.scope.nodes)]

    def _missing(self, grant: WantedGrant) -> MetalakeError:
        if self.scope is self.top:
            address = self._address(grant)
            return missing(address.kind, address.names, told_as="object")
        # The same whether it is elsewhere or nowhere: the caller may not know of what is elsewhere.
        where = policy.describe(self.scope)
        return NotFound(f"{grant.kind.capitalize()} {grant.full_name} does not exist in {where}.", kind="object")

    def _take(self, step: Step, wanted: dict[int, Entries], place: str) -> None:
        for id, held in self.present.get(step.role_id or 0, {}).items():
            after = wanted.get(id, {})
            gone = {p: given for p, given in held.items() if after.get(p) != given}
            if not gone:
                continue
            step.take[id] = gone
            on = self.located[id]
            with at(place):
                if allows := step.taken_whole(id):
                    require_give(self.actor, on, allows)
                lifted = [p for p, given in gone.items() if given.effect is Effect.DENY]
                is_lifted = any(not stays(Held(0, id, p, gone[p]), step.give, self.actor.moment) for p in lifted)
                if is_lifted and not may_lift(self.actor, on):
                    raise Forbidden(
                        f"{self.actor.name} may not lift the DENY of {', '.join(lifted)} that role {step.name} "
                        f"carries on {policy.describe(on)}.",
                        kind=on.kind,
                    )

    def _known_holders(self) -> dict[str, tuple[dict[str, int], dict[int, dict[int, str]]]]:
        """Ids by name of the people of the metalake, and who holds what, for the sorts that the file tells of."""
        sorts = {sort for role in self.wanted.roles for sort in role.holders()}
        people: dict[str, Any] = {
            "user": Member.objects.filter(metalake_id=self.top.id).values_list("user__username", "user_id"),
            "group": Group.objects.filter(metalake_id=self.top.id).values_list("name", "pk"),
        }
        return {sort: (dict(people[sort]), _holders(self.top, sort)) for sort in sorts}

    def _hold(self, step: Step, role: WantedRole, known: dict[str, Any]) -> None:
        for sort, names in role.holders().items():
            with at(f"{role.place}.{sort}s"):
                if self.scope is not self.top:
                    raise Invalid("Who holds a role is said for the whole metalake; leave it out of a subtree.")
                ids, held = known[sort]
                present = held.get(step.role_id or 0, {})
                wanted: dict[int, str] = {}
                for name in names:
                    if name not in ids:
                        raise NotFound(f"{sort.capitalize()} {name} does not exist.", kind=sort)
                    if ids[name] in wanted:
                        raise Invalid(f"{quote(name)} is there twice; say it once.", kind=sort)
                    wanted[ids[name]] = name
                fresh = {id: name for id, name in wanted.items() if id not in present}
                gone = {id: name for id, name in present.items() if id not in wanted}
                if fresh or gone:
                    policy.require(self.actor, operations.ASSIGN_ROLES, self.top)
                if fresh:
                    step.assign[sort] = fresh
                if gone:
                    require_lift_of_roles(self.actor, [step.role_id or 0])
                    step.unassign[sort] = gone

    def _check_families(self) -> None:
        """In one statement; where that refuses, entry by entry, so that the first wrong one is named."""
        try:
            entries.check_families([(on, fresh) for _, on, fresh in self.fresh])
        except Invalid:
            for place, on, fresh in self.fresh:
                with at(place):
                    entries.check_families([(on, fresh)])


def changes_of(steps: Iterable[Step], located: dict[int, Located]) -> list[Change]:
    """Role by role: made, taken, given, unassigned, assigned; each by name."""
    found: list[Change] = []
    for step in steps:
        if step.role_id is None:
            found.append(Change("createRole", step.name))
        for change, part in (("revoke", step.take), ("grant", step.give)):
            on = [((located[id].kind, dotted(located[id].full_name)), held) for id, held in part.items()]
            found += [
                Change(change, step.name, privilege, given, where)
                for where, held in sorted(on, key=lambda pair: (pair[0][1], pair[0][0]))
                for privilege, given in sorted(held.items())
            ]
        for change, people in (("unassign", step.unassign), ("assign", step.assign)):
            found += [
                Change(change, step.name, holder=(sort, name))
                for sort, names in people.items()
                for name in sorted(names.values())
            ]
    return found
