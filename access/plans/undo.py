"""Undo: the inverse of a plan that was applied, as a plan of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils import timezone

from access.explain.permissions import reads_access
from access.plans.desired import Change, Step, object_ids
from access.plans.export import by_role, holders_of
from access.plans.plan import GOOD_FOR, Planned, plan_changes, read_steps, stored_plan
from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Group, Member, Plan, Role, unended
from authz.objects import by_ids
from authz.services.change import enter
from authz.services.grant_entries import Entries, Given
from authz.services.snapshot_changes import GroupRole, UserRole
from metalake.errors import Conflict, NotFound
from metalake.full_names import dotted
from metalake.lineage import Located

GONE = "Objects of the plan that no longer exist, or on which you may no longer grant, are left."


def plan_undo(actor: Actor, metalake: str, token: str | None, number: int | None = None) -> Planned:
    """The inverse of a plan that the caller applied within the last hour, stored to be applied like any other plan.

    `number` names the plan instead of its token, as `recent_changes` has it.

    It revokes the plan's grants that are unchanged, restores revoked ones, reverts assignments, and drops roles that
    the plan created if nothing else depends on them. What has changed since is skipped and reported.
    Raises NotFound if the caller has no such plan, Conflict if it was not applied or too long ago, and the
    errors of plan_changes.
    """
    top = enter(actor, metalake)
    if number is None:
        row = stored_plan(actor, token, metalake_id=top.id)
    else:
        row = Plan.objects.filter(pk=number, user_id=actor.id, metalake_id=top.id).first()
    if row is None:
        raise NotFound(f"{actor.name} has no such plan in metalake {top.name}.", kind="plan")
    if row.applied_at is None:
        raise Conflict("The plan was not applied, so there is nothing to undo.", kind="plan")
    if row.applied_at + GOOD_FOR <= timezone.now():
        raise Conflict(f"The plan was applied more than {GOOD_FOR} ago; make a new one instead.", kind="plan")
    made, plain = row.changes.get("made", {}), row.changes.get("plain", [])
    inverse = _Inverse(actor.refreshed(), top, read_steps(row), made, plain)
    changes, budget = list(inverse.changes()), row.changes.get("budget")
    left = tuple(dict.fromkeys(inverse.left))
    return plan_changes(actor, metalake, changes, budget=budget, undoes=row, left=left)


@dataclass
class _Inverse:
    """`made` are the ids of the roles that the plan created, by name; `left` describes what is not undone.

    `plain` are the roles it dropped that had no properties and were owned by the actor.
    """

    actor: Actor
    top: Located
    steps: list[Step]
    made: dict[str, int]
    plain: list[str]
    left: list[str] = field(default_factory=list)

    def changes(self) -> Iterator[Change]:
        """The changes that undo the steps, by current names."""
        self.roles = Role.objects.in_bulk([id for step in self.steps if (id := self._role_id(step))])
        self.located = {id: on for id, on in by_ids(object_ids(self.steps)).items() if reads_access(self.actor, on)}
        rows = Grant.objects.filter(unended(self.actor.moment), group__in=[row.group_id for row in self.roles.values()])
        self.standing = by_role(rows)
        self.may_assign = policy.permits(self.actor, operations.ASSIGN_ROLES, self.top)
        for step in self.steps:
            row = self.roles.get(self._role_id(step) or 0)
            if step.drop:
                yield from self._make_again(step)
            elif row is None:
                self.left.append(f"Role {step.name} was dropped since.")
            else:
                yield from self._undo(step, row)

    def _role_id(self, step: Step) -> int | None:
        return self.made.get(step.name) if step.role_id is None else step.role_id

    def _undo(self, step: Step, row: Role) -> Iterator[Change]:
        grants, holders = list(self._grants(step, row)), list(self._holders(step, row))
        if step.role_id is None and self._is_free(row, grants, holders):
            yield Change("dropRole", row.name)
        else:
            yield from (*grants, *holders)

    def _is_free(self, row: Role, grants: list[Change], holders: list[Change]) -> bool:
        """Whether a role created by the plan has only what the plan gave it; reports why not."""
        holding = UserRole.objects.filter(group_id=row.group_id).count() + GroupRole.objects.filter(role=row).count()
        standing = sum(map(len, self.standing.get(row.pk, {}).values()))
        reasons = [
            reason
            for reason, is_so in (
                ("was granted more since", standing > len(grants)),
                ("is held by others too", holding > len(holders)),
                ("has another owner now", row.owner_user_id != self.actor.id),
            )
            if is_so
        ]
        if reasons:
            self.left.append(f"Role {row.name} stays: it {' and '.join(reasons)}.")
        return not reasons

    def _grants(self, step: Step, row: Role) -> Iterator[Change]:
        for id in step.give.keys() | step.take.keys():
            on = self.located.get(id)
            if on is None:
                self.left.append(GONE)
                continue
            given, gone = step.give.get(id, {}), step.take.get(id, {})
            present: Entries = self.standing.get(row.pk, {}).get(id, {})
            place = on.kind, dotted(on.full_name)
            for privilege in given.keys() | gone.keys():
                after, before = given.get(privilege), gone.get(privilege)
                if present.get(privilege) != after and not (after and after.is_over(self.actor.moment)):
                    self.left.append(f"{privilege} of role {row.name} on {' '.join(place)} changed since.")
                    continue
                if after and privilege in present:
                    yield Change("revoke", row.name, privilege, after, on=place)
                if before and (again := self._again(before, row.name, f"{privilege} on {' '.join(place)}")):
                    yield Change("grant", row.name, privilege, again, on=place)

    def _again(self, before: Given, role: str, what: str) -> Given | None:
        """The revoked grant as it can be restored now, unless it has expired meanwhile."""
        if before.is_over(self.actor.moment):
            self.left.append(f"{what} of role {role} would have ended by now.")
            return None
        return before._replace(starts=None) if before.starts and before.starts <= self.actor.moment else before

    def _holders(self, step: Step, row: Role) -> Iterator[Change]:
        if not self.may_assign:
            if step.assign or step.unassign:
                self.left.append(f"Who holds role {row.name} stays as it is, since you may no longer assign roles.")
            return
        for change, people, is_back in (("unassign", step.assign, False), ("assign", step.unassign, True)):
            for sort, names in people.items():
                there = self._people(sort, names)
                now = holders_of(self.top, sort, [row.pk], with_former=True).get(row.pk, {})
                for id, old in names.items():
                    if id not in there or (id in now) is is_back:
                        self.left.append(f"{sort.capitalize()} {old} and role {row.name} changed since.")
                    else:
                        yield Change(change, row.name, holder=(sort, there[id]))

    def _people(self, sort: str, ids: dict[int, str]) -> dict[int, str]:
        """Current names of these users or groups, without those who left."""
        if sort == "user":
            rows = Member.objects.filter(metalake_id=self.top.id, user_id__in=ids)
            return dict(rows.values_list("user_id", "user__username"))
        return dict(Group.objects.filter(metalake_id=self.top.id, pk__in=ids).values_list("pk", "name"))

    def _make_again(self, step: Step) -> Iterator[Change]:
        """The changes that recreate a dropped role with its grants and holders."""
        if Role.objects.filter(parent_id=self.top.id, name=step.name).exists():
            self.left.append(f"There is another role {step.name} now.")
            return
        if step.name not in self.plain:
            self.left.append(f"Role {step.name} is made anew: it is yours, and has none of its properties.")
        yield Change("createRole", step.name)
        row = Role(name=step.name, group_id=0)
        again = Step(None, step.name, take=step.take, unassign=step.unassign)
        yield from self._grants(again, row)
        yield from self._holders(again, row)
