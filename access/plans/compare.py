"""Diffs a desired state, or a list of desired changes, against the current state.

Every change is checked as when it is applied, so that an error is raised early and names its entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from access.explain.queries import ids_of
from access.plans.desired import MAX_GRANTS, Change, Difference, Step, Wanted, WantedGrant, WantedRole, object_ids
from access.plans.export import by_role, holders_of, present_grants, require_all, roles_of, scope_of
from authz import operations, policy
from authz.actor import Actor
from authz.callers.enumeration import count_misses
from authz.models import Grant, Role, unended
from authz.name_rules import check_role_name
from authz.objects import address_of, batches, by_ids, locate_anywhere
from authz.services import grant_entries
from authz.services.authority import may_lift, require_give, require_lift, require_lift_of_roles
from authz.services.change import enter
from authz.services.grant_entries import Entries, Given, RoleGrant
from authz.services.grants import stays
from authz.services.roles import located
from metalake.errors import AlreadyExists, Forbidden, Invalid, MetalakeError, NotFound, TooLarge, at
from metalake.kinds import Kind
from metalake.lineage import Address, Located, missing
from metalake.privileges import Effect, Privilege
from metalake.wire import quote

SORTS = ("user", "group")


class _Comparison:
    """The common base; `fresh` are the new grants on an object, with the place of their entry."""

    def __init__(self, actor: Actor, metalake: str) -> None:
        self.actor, self.top = actor, enter(actor, metalake)
        self.fresh: list[tuple[str, Located, Entries]] = []

    def _address(self, on: tuple[Kind, str]) -> Address:
        return address_of(self.top.name, *on)

    def _locate(self, named: Iterable[tuple[str, tuple[Kind, str]]]) -> dict[Address, Located]:
        """The objects that entries at these places name; missing ones are left out."""
        addresses: dict[Address, None] = {}
        for place, on in named:
            with at(place):
                addresses[self._address(on)] = None
        return locate_anywhere(self.actor, self.top, addresses)

    def _check_families(self) -> None:
        """Check all entries in one statement; if that fails, one by one, so that the error names the wrong one."""
        try:
            grant_entries.check_families([(on, fresh) for _, on, fresh in self.fresh])
        except Invalid:
            for place, on, fresh in self.fresh:
                with at(place):
                    grant_entries.check_families([(on, fresh)])


# A state


def compare(actor: Actor, metalake: str, wanted: Wanted) -> Difference:
    """The changes that lead to the desired state.

    Raises the errors of applying an invalid or forbidden change; the error names the entry.
    """
    return _State(actor, metalake, wanted).difference()


class _State(_Comparison):
    def __init__(self, actor: Actor, metalake: str, wanted: Wanted) -> None:
        super().__init__(actor, metalake)
        self.wanted = wanted
        if wanted.metalake != metalake:
            raise Invalid(f"metalake: the file is about {quote(wanted.metalake)}, not about {metalake}.")
        if sum(len(grant.entries) for role in wanted.roles for grant in role.grants) > MAX_GRANTS:
            raise TooLarge(f"{MAX_GRANTS} grants may be planned at once.")
        with at("subtree") if wanted.subtree else at(""):
            self.scope = scope_of(actor, self.top, wanted.subtree)
        self.role_ids = roles_of(self.top)
        self.present, self.located = present_grants(actor, self.top, self.scope)
        require_all(actor, self.scope, self.located)

    def difference(self) -> Difference:
        named: set[str] = set()
        grants = [grant for role in self.wanted.roles for grant in role.grants]
        located = self._locate((grant.place, (grant.kind, grant.full_name)) for grant in grants)
        self.located |= {on.id: on for on in located.values()}
        holders = self._known_holders()
        steps = []
        for role in self.wanted.roles:
            with at(role.place):
                if role.name in named:
                    raise Invalid(f"Role {role.name} is there twice; say it once.", kind="role")
                named.add(role.name)
                self._check_role(role.name)
            step = self._step(role, located)
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

    def _check_role(self, name: str) -> None:
        if name not in self.role_ids:
            check_role_name(name)
            if not policy.permits(self.actor, operations.CREATE_ROLE, self.top):
                raise Forbidden(f"{self.actor.name} may not create role in {policy.describe(self.top)}.", kind="role")

    def _step(self, role: WantedRole, located: dict[Address, Located]) -> Step:
        step = Step(self.role_ids.get(role.name), role.name)
        standing = self.present.get(step.role_id or 0, {})
        wanted: dict[int, Entries] = {}
        for grant in role.grants:
            with at(grant.place):
                on = located.get(self._address((grant.kind, grant.full_name)))
                if on is None or not self._is_in_scope(on):
                    raise self._missing(grant)
                if on.id in wanted:
                    raise Invalid(f"{grant.kind} {grant.full_name} is there twice; say it once.", kind="object")
                wanted[on.id] = grant.entries
                present = standing.get(on.id, {})
                fresh = {p: given for p, given in grant.entries.items() if present.get(p) != given}
                if fresh:
                    require_give(self.actor, on, fresh)
                    grant_entries.check_spans(fresh, self.actor.moment)
                    step.give[on.id] = fresh
                    self.fresh.append((grant.place, on, fresh))
        self._take(step, wanted, role.place)
        return step

    def _is_in_scope(self, on: Located) -> bool:
        return self.scope.nodes == on.nodes[: len(self.scope.nodes)]

    def _missing(self, grant: WantedGrant) -> MetalakeError:
        if self.scope is self.top:
            address = self._address((grant.kind, grant.full_name))
            return missing(address.kind, address.names, error_kind="object")
        # The same error for an object outside the subtree and one that does not exist: the caller may see neither.
        where = policy.describe(self.scope)
        return NotFound(f"{grant.kind.capitalize()} {grant.full_name} does not exist in {where}.", kind="object")

    def _take(self, step: Step, wanted: dict[int, Entries], place: str) -> None:
        for id, present in self.present.get(step.role_id or 0, {}).items():
            after = wanted.get(id, {})
            gone = {p: given for p, given in present.items() if after.get(p) != given}
            if not gone:
                continue
            step.take[id] = gone
            on = self.located[id]
            with at(place):
                if allows := step.allows_removed(id):
                    require_give(self.actor, on, allows)
                lifted = [p for p, given in gone.items() if given.effect is Effect.DENY]
                is_lifted = any(not stays(RoleGrant(0, id, p, gone[p]), step.give, self.actor.moment) for p in lifted)
                if is_lifted and not may_lift(self.actor, on):
                    raise Forbidden(
                        f"{self.actor.name} may not lift the DENY of {', '.join(lifted)} that role {step.name} "
                        f"carries on {policy.describe(on)}.",
                        kind=on.kind,
                    )

    def _known_holders(self) -> dict[str, tuple[dict[str, int], dict[int, dict[int, str]]]]:
        """For "user" and "group", if the file names any: the metalake's ids by name, and the holders of each role."""
        sorts = {sort for role in self.wanted.roles for sort in role.holders()}
        return {sort: (ids_of(self.top, sort), holders_of(self.top, sort)) for sort in sorts}

    def _hold(self, step: Step, role: WantedRole, known: dict[str, Any]) -> None:
        for sort, names in role.holders().items():
            with at(f"{role.place}.{sort}s"):
                if self.scope is not self.top:
                    raise Invalid("Who holds a role is said for the whole metalake; leave it out of a subtree.")
                ids, holders = known[sort]
                present = holders.get(step.role_id or 0, {})
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


# A list of changes
#
# Each requires its usual rights even if it is a no-op: otherwise the answer would reveal the current state.


def compare_changes(actor: Actor, metalake: str, changes: Sequence[Change], *, counts: bool = True) -> Difference:
    """The changes that are not already in place, as steps.

    Raises the errors of applying an invalid or forbidden change; the error names the entry: `changes[3]: ...`. A
    privilege that the role holds with another effect or other times has to be revoked by the same plan. `counts`: new
    role names count as attempts to guess one.
    """
    comparison = _Changes(actor, metalake, changes)
    if counts:
        count_misses(actor, metalake, "role", len(comparison.fresh_names()))
    return comparison.difference()


class _Line(NamedTuple):
    place: str
    change: Change


class _Changes(_Comparison):
    def __init__(self, actor: Actor, metalake: str, changes: Sequence[Change]) -> None:
        if len(changes) > MAX_GRANTS:
            raise TooLarge(f"{MAX_GRANTS} changes may be planned at once, not {len(changes)}.")
        super().__init__(actor, metalake)
        self.lines = [_Line(f"changes[{n}]", change) for n, change in enumerate(changes)]
        self.roles = {row.name: row for row in _rows_of(self.top, {change.role for change in changes})}
        self.on = self._locate((place, change.on) for place, change in self.lines if change.on)
        self.dropped = {line.change.role: line.place for line in self.lines if line.change.change == "dropRole"}
        self.created = {line.change.role for line in self.lines if line.change.change == "createRole"}
        self.standing = self._standing()
        holders = {change.holder for change in changes if change.holder}
        self.people = {sort: ids_of(self.top, sort, {name for of, name in holders if of == sort}) for sort in SORTS}
        self.holders = {sort: holders_of(self.top, sort, [row.pk for row in self.roles.values()]) for sort in SORTS}
        self.by_id = {on.id: on for on in self.on.values()}
        self.steps: dict[str, Step] = {}
        self.revoked: dict[tuple[str, int], dict[Privilege, tuple[str, Given]]] = defaultdict(dict)
        self.granted: dict[tuple[str, int], dict[Privilege, tuple[str, Given]]] = defaultdict(dict)

    def fresh_names(self) -> set[str]:
        """The role names that a caller who may create roles learns to be free."""
        may_create = policy.permits(self.actor, operations.CREATE_ROLE, self.top)
        return self.created - self.roles.keys() if may_create else set()

    # The current state

    def _standing(self) -> dict[int, dict[int, Entries]]:
        """What the named roles hold on the named objects, and all grants of the roles to be dropped."""
        groups = [row.group_id for row in self.roles.values()]
        of_dropped = [row.group_id for name, row in self.roles.items() if name in self.dropped]
        rows = Grant.objects.filter(unended(self.actor.moment))
        standing: dict[int, dict[int, Entries]] = defaultdict(dict)
        for some in batches(groups):
            for ids in batches(on.id for on in self.on.values()):
                for role, on in by_role(rows.filter(group__in=some, content_object__in=ids)).items():
                    standing[role] |= on
        for some in batches(of_dropped):
            standing |= by_role(rows.filter(group__in=some))
        return standing

    # The desired state

    def difference(self) -> Difference:
        self._require_once()
        for line in self.lines:
            with at(line.place):
                self._add(line)
        for key in self.revoked.keys() | self.granted.keys():
            self._regrant(*key)
        self._check_families()
        steps = sorted(filter(None, self.steps.values()), key=lambda step: step.name)
        known = self.by_id | by_ids(object_ids(steps) - self.by_id.keys())
        for step in steps:
            step.take = {id: gone for id, gone in step.take.items() if id in known}
        return Difference(self.top, self.top, steps, known, self.standing)

    def _require_once(self) -> None:
        seen: set[tuple[Any, ...]] = set()
        opposite = {"assign": "unassign", "unassign": "assign"}
        for place, change in self.lines:
            key = (change.role, change.privilege, change.on, change.holder)
            with at(place):
                if (change.change, *key) in seen:
                    raise _twice()
                if (opposite.get(change.change), *key) in seen:
                    raise Invalid(f"Role {change.role} is both assigned to {_holder(change)} and taken from it.")
                if change.change != "dropRole" and change.role in self.dropped:
                    raise Invalid(f"Role {change.role} is dropped by {self.dropped[change.role]}; change nothing else.")
            seen.add((change.change, *key))

    def _add(self, line: _Line) -> None:
        match line.change.change:
            case "createRole":
                self._create(line.change.role)
            case "dropRole":
                self._drop(line.change.role)
            case "grant" | "revoke":
                self._privilege(line)
            case "assign" | "unassign":
                self._hold(line.change)
            case other:
                raise Invalid(f"{quote(other)} is no change.")

    def _step(self, name: str) -> Step:
        """The step of a role that exists or is created by the plan."""
        if name not in self.roles and name not in self.created:
            raise NotFound(f"Role {name} does not exist.", kind="role")
        row = self.roles.get(name)
        return self.steps.setdefault(name, Step(row.pk if row else None, name))

    def _create(self, name: str) -> None:
        policy.require(self.actor, operations.CREATE_ROLE, self.top)
        check_role_name(name)
        if name in self.roles:
            raise AlreadyExists(f"Role {name} already exists.", kind="role")
        self._step(name)

    def _drop(self, name: str) -> None:
        row = self.roles.get(name)
        if row is None or not policy.sees(self.actor, located(self.top, row)):
            raise NotFound(f"Role {name} does not exist.", kind="role")
        policy.require(self.actor, operations.DROP_ROLE, located(self.top, row))
        require_lift_of_roles(self.actor, [row.pk])
        holders = {sort: self.holders[sort].get(row.pk, {}) for sort in SORTS}
        holders = {sort: names for sort, names in holders.items() if names}
        if holders:
            # A plain drop does not show who held the role; a plan does.
            policy.require(self.actor, operations.ASSIGN_ROLES, self.top)
        step = self._step(name)
        step.drop, step.take, step.unassign = True, self.standing.get(row.pk, {}), holders

    def _privilege(self, line: _Line) -> None:
        place, change = line
        assert change.on
        address = self._address(change.on)
        on, privilege, given = self.on.get(address), change.privilege, change.given
        assert privilege and given
        grant_entries.check_kind(privilege, address.kind)
        if on is None:
            raise missing(address.kind, address.names, error_kind="object")
        is_lift = change.change == "revoke" and given.effect is Effect.DENY
        if not is_lift or not may_lift(self.actor, on):
            require_give(self.actor, on, [privilege])
        self._step(change.role)
        part = self.granted if change.change == "grant" else self.revoked
        named = part[change.role, on.id]
        if privilege in named:
            raise _twice()
        named[privilege] = place, given

    def _regrant(self, name: str, object_id: int) -> None:
        """Add to a role's step the effective grants and revokes on one object, without no-ops."""
        step, on = self._step(name), self.by_id[object_id]
        present = self.standing.get(step.role_id or 0, {}).get(object_id, {})
        revoked = self.revoked.get((name, object_id), {})
        gone = {
            p: present[p] for p, (_, given) in revoked.items() if p in present and present[p].effect is given.effect
        }
        give: Entries = {}
        for privilege, (place, given) in self.granted.get((name, object_id), {}).items():
            there = present.get(privilege)
            if there == given:
                gone.pop(privilege, None)
                continue
            with at(place):
                if there is not None and privilege not in gone:
                    raise _stands(name, privilege, there)
                grant_entries.check_spans({privilege: given}, self.actor.moment)
            give[privilege] = given
            self.fresh.append((place, on, {privilege: given}))
        if give:
            step.give[object_id] = give
        if gone:
            step.take[object_id] = gone
        for privilege, given in gone.items():
            grant = RoleGrant(0, object_id, privilege, given)
            if given.effect is Effect.DENY and not stays(grant, step.give, self.actor.moment):
                with at(revoked[privilege][0]):
                    require_lift(self.actor, on)

    def _hold(self, change: Change) -> None:
        policy.require(self.actor, operations.ASSIGN_ROLES, self.top)
        assert change.holder is not None
        sort, name = change.holder
        step, id = self._step(change.role), self.people[sort].get(name)
        if id is None:
            raise NotFound(f"{sort.capitalize()} {name} does not exist.", kind=sort)
        holds = id in self.holders[sort].get(step.role_id or 0, {})
        if change.change == "assign" and not holds:
            step.assign.setdefault(sort, {})[id] = name
        if change.change == "unassign" and holds:
            require_lift_of_roles(self.actor, [step.role_id or 0])
            step.unassign.setdefault(sort, {})[id] = name


def _rows_of(top: Located, names: Collection[str]) -> Iterator[Role]:
    for some in batches(names):
        yield from Role.objects.filter(parent_id=top.id, name__in=some)


def _twice() -> Invalid:
    return Invalid("This is there twice; say it once.")


def _holder(change: Change) -> str:
    return " ".join(change.holder or ())


def _stands(role: str, privilege: Privilege, there: Given) -> Invalid:
    spelled = grant_entries.spelled({privilege: there})[0]
    return Invalid(
        f"Role {role} holds {spelled} there: revoke that in the same plan, before the grant takes its place.",
        kind="privilege",
    )
