"""Grants as code: how a wanted state differs from the present one.

Every change is checked as it is when it is made, so that a refusal comes early and names its entry.
"""

from __future__ import annotations

from typing import Any

from access.plans.desired import MAX_GRANTS, Difference, Step, Wanted, WantedGrant, WantedRole
from access.plans.export import holders_of, present_grants, require_all, roles_of, scope_of
from authz import operations, policy
from authz.actor import Actor
from authz.models import Group, Member
from authz.name_rules import check_role_name
from authz.objects import address_of, locate_anywhere
from authz.services import grant_entries
from authz.services.authority import may_lift, require_give, require_lift_of_roles
from authz.services.change import enter
from authz.services.grant_entries import Entries, RoleGrant
from authz.services.grants import stays
from metalake.errors import Forbidden, Invalid, MetalakeError, NotFound, TooLarge, at
from metalake.lineage import Address, Located, missing
from metalake.privileges import Effect
from metalake.wire import quote

# How the wanted state differs from the present one


def compare(actor: Actor, metalake: str, wanted: Wanted) -> Difference:
    """The changes that lead to the wanted state.

    Raises what making a change that is wrong, or that the caller may not make, raises; the error names the entry.
    """
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
            self.scope = scope_of(actor, self.top, wanted.subtree)
        self.role_ids = roles_of(self.top)
        self.present, self.located = present_grants(actor, self.top, self.scope)
        require_all(actor, self.scope, self.located)
        self.fresh: list[tuple[str, Located, Entries]] = []

    def difference(self) -> Difference:
        named: set[str] = set()
        located = self._find()
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

    def _find(self) -> dict[Address, Located]:
        """The objects that the file names; missing ones are left out."""
        named: dict[Address, None] = {}
        for role in self.wanted.roles:
            for grant in role.grants:
                with at(grant.place):
                    named[self._address(grant)] = None
        located = locate_anywhere(self.actor, self.top, named)
        self.located |= {located.id: located for located in located.values()}
        return located

    def _address(self, grant: WantedGrant) -> Address:
        return address_of(self.top.name, grant.kind, grant.full_name)

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
                on = located.get(self._address(grant))
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
            address = self._address(grant)
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
        people: dict[str, Any] = {
            "user": Member.objects.filter(metalake_id=self.top.id).values_list("user__username", "user_id"),
            "group": Group.objects.filter(metalake_id=self.top.id).values_list("name", "pk"),
        }
        return {sort: (dict(people[sort]), holders_of(self.top, sort)) for sort in sorts}

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

    def _check_families(self) -> None:
        """Check all entries in one statement; if that fails, one by one, so that the error names the wrong one."""
        try:
            grant_entries.check_families([(on, fresh) for _, on, fresh in self.fresh])
        except Invalid:
            for place, on, fresh in self.fresh:
                with at(place):
                    grant_entries.check_families([(on, fresh)])
