"""Applies a plan: all of it or nothing, once, and only if it is still what its caller was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.utils import timezone

from access.plans.desired import Change, Step, changes_of
from access.plans.plan import GOOD_FOR, digest_of, facts_on_rights
from access.plans.renewal import renew, what_moved
from access.plans.serialization import read_steps
from authz import operations, policy
from authz.actor import Actor
from authz.models import Plan, Role
from authz.objects import by_ids
from authz.services import grant_entries, snapshot_changes
from authz.services.authority import require_give, require_lift_of_roles
from authz.services.change import change, event, publish_events
from authz.services.grants import rewrite
from authz.services.roles import delete_role, insert_role
from authz.services.snapshot_changes import GroupRole, UserRole
from metalake.errors import Conflict, NotFound
from metalake.events import Event, stands
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located

ATTEMPTS = 5


class Applied(NamedTuple):
    """The changes that were made; for an hour the token undoes them. None: there was nothing to do."""

    changes: list[Change]
    token: str | None


class _Behind(Exception):
    """Rights moved since a plan of changes was made: it has to be made again."""


def apply_plan(actor: Actor, metalake: str, token: str | None) -> Applied:
    """Make the changes of a plan of this caller; a plan without changes has no token and does nothing.

    Where rights moved since, a plan of changes is made again, outside the transaction, since counting its blast radius
    under the lock would hold up every other change: it is applied if it is the same and rights stood still meanwhile.
    Raises NotFound if the caller has no such plan, Conflict if it was applied already or is too old, or if rights
    changed under a plan of a state, Moved if a plan of changes came to something else, and whatever the changes raise.
    """
    for _ in range(ATTEMPTS):
        try:
            return _apply(actor, metalake, token)
        except _Behind:
            renew(actor, metalake, token or "")
    raise Conflict(f"Rights in metalake {metalake} keep changing; try again in a moment.", kind="plan")


def _apply(actor: Actor, metalake: str, token: str | None) -> Applied:
    def act(actor: Actor, top: Located) -> Applied:
        if token is None:
            return Applied([], None)
        row = _claim(actor, top, token)
        steps = read_steps(row.changes)
        located = _located(row, steps)
        made = changes_of(steps, located)
        application = _Application(actor, top, located, row.changes.get("undoes"))
        publish_events(*application.run(steps))
        if outcome := application.outcome:
            Plan.objects.filter(pk=row.pk).update(changes=row.changes | outcome)
        return Applied(made, token)

    return change(actor, metalake, act, kind="plan", on=lambda: _ids_of(actor, token))


def _ids_of(actor: Actor, token: str | None) -> set[int]:
    """The ids of the objects that a plan of the caller changes grants on."""
    row = Plan.objects.filter(digest=digest_of(token or ""), user_id=actor.id).first()
    return set().union(*(step.give.keys() | step.take.keys() for step in read_steps(row.changes))) if row else set()


def _claim(actor: Actor, top: Located, token: str) -> Plan:
    row = Plan.objects.filter(digest=digest_of(token), user_id=actor.id, metalake_id=top.id).first()
    if row is None:
        raise NotFound(f"{actor.name} has no such plan in metalake {top.name}; make one first.", kind="plan")
    now = timezone.now()
    if row.applied_at:
        raise Conflict(f"The plan was applied at {row.applied_at.isoformat()}; make a new one.", kind="plan")
    if row.created_at + GOOD_FOR <= now:
        raise Conflict(f"The plan is older than {GOOD_FOR}; make a new one.", kind="plan")
    since = facts_on_rights(top.id).filter(id__gt=row.fact_id).order_by("id")
    moved = since.values_list("actor", "event", "at").first()
    if moved is not None:
        if "wanted" in row.changes:
            raise _Behind
        raise Conflict(f"{what_moved(top, *moved)} Make a new plan and look at it again.", kind="plan")
    Plan.objects.filter(pk=row.pk).update(applied_at=now)
    return row


def _located(row: Plan, steps: list[Step]) -> dict[int, Located]:
    ids = {id for step in steps for id in step.give.keys() | step.take.keys()}
    located = by_ids(ids)
    scope: int = row.changes["scope"]
    # A role that is dropped takes with it what it holds anywhere.
    gone = {id for step in steps if step.drop for id in step.take} - located.keys()
    for step in steps:
        step.take = {id: on for id, on in step.take.items() if id not in gone}
    for id in ids - gone:
        if id not in located or all(node.id != scope for node in located[id].nodes):
            raise Conflict("An object of the plan was dropped or moved since; make a new plan.", kind="plan")
    return located


@dataclass
class _Application:
    """`undoes` is when the plan was applied that this one undoes; `made` are the ids of the roles made, by name.

    `plain` are the dropped roles that had no properties and were the actor's own.
    """

    actor: Actor
    top: Located
    located: dict[int, Located]
    undoes: str | None = None
    made: dict[str, int] = field(default_factory=dict)
    plain: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> dict[str, Any]:
        """What an undo has to know beside the steps."""
        return {name: what for name, what in (("made", self.made), ("plain", self.plain)) if what}

    def run(self, steps: list[Step]) -> list[Event]:
        rows = Role.objects.in_bulk([step.role_id for step in steps if step.role_id is not None])
        for step in steps:
            # Checked first, while the roles still carry the DENYs that their holders lose.
            if step.unassign:
                self._require_assign()
                require_lift_of_roles(self.actor, [rows[step.role_id or 0].pk])
        events = []
        for step in steps:
            row = rows[step.role_id] if step.role_id is not None else self._make(step.name)
            if step.drop:
                events.append(self._drop(row))
                continue
            events += self._rewrite(row, step)
            events += self._hold(row, step)
        return self._with_holders(events, [step for step in steps if not step.drop])

    def _event(self, name: str, row: Role, facts: Sequence[list[Any]] = (), **details: Any) -> Event:
        undoes = {"undoes": self.undoes} if self.undoes else {}
        return event(self.actor, self.top, name, Kind.ROLE, row.pk, [row.name], facts, **details, **undoes)

    def _require_assign(self) -> None:
        policy.require(self.actor, operations.ASSIGN_ROLES, self.top)

    def _make(self, name: str) -> Role:
        policy.require(self.actor, operations.CREATE_ROLE, self.top)
        row = insert_role(self.actor, self.top, name, {})
        self.made[name] = row.pk
        return row

    def _drop(self, row: Role) -> Event:
        role = row.pk
        if not row.properties and row.owner_user_id == self.actor.id:
            self.plain.append(row.name)
        facts = delete_role(self.actor, self.top, row)
        row.pk = role  # deleting a row takes its key
        return self._event("role.dropped", row, facts)

    def _rewrite(self, row: Role, step: Step) -> list[Event]:
        for id, given in step.give.items():
            require_give(self.actor, self.located[id], given)
        for id in step.take:
            if allows := step.allows_removed(id):
                require_give(self.actor, self.located[id], allows)
        gone = [
            grant
            for grant in grant_entries.role_grants(row)
            if grant.privilege in step.give.get(grant.object_id, {})
            or grant.privilege in step.take.get(grant.object_id, {})
        ]
        fresh = [(self.located[id], given) for id, given in step.give.items()]
        changes = rewrite(self.actor, row, fresh, gone)
        if step.role_id is None:
            spelled_out = [
                f"{spelled} on {on.kind} {dotted(on.full_name)}"
                for on, privileges in fresh
                for spelled in grant_entries.spelled(privileges)
            ]
            return [self._event("role.created", row, [stands(row), *changes], privileges=spelled_out)]
        if not changes:
            return []
        details = {"granted": _spelled(step.give), "revoked": _spelled(step.take)}
        return [self._event("access.applied", row, changes, **details)]

    def _hold(self, row: Role, step: Step) -> list[Event]:
        if step.assign:
            self._require_assign()
        UserRole.objects.filter(group_id=row.group_id, user_id__in=step.unassign.get("user", {})).delete()
        GroupRole.objects.filter(role_id=row.pk, group_id__in=step.unassign.get("group", {})).delete()
        UserRole.objects.bulk_create(UserRole(user_id=id, group_id=row.group_id) for id in step.assign.get("user", {}))
        GroupRole.objects.bulk_create(GroupRole(group_id=id, role_id=row.pk) for id in step.assign.get("group", {}))
        return [
            self._event(name, row, **{sort: holder})  # type: ignore[arg-type]
            for name, people in (("role.unassigned", step.unassign), ("role.assigned", step.assign))
            for sort, holders in people.items()
            for holder in sorted(holders.values())
        ]

    @staticmethod
    def _with_holders(events: list[Event], steps: list[Step]) -> list[Event]:
        """The events, the last one about holders with the facts of who holds what now."""
        ids: dict[str, set[int]] = {"user": set(), "group": set()}
        for step in steps:
            for people in (step.assign, step.unassign):
                for sort, holders in people.items():
                    ids[sort].update(holders)
        facts = [*snapshot_changes.roles_of_users(ids["user"]), *snapshot_changes.roles_of_groups(ids["group"])]
        if not facts:
            return events
        last = max(place for place, one in enumerate(events) if one.name in ("role.assigned", "role.unassigned"))
        return [*events[:last], replace(events[last], facts=facts), *events[last + 1 :]]


def _spelled(on: dict[int, grant_entries.Entries]) -> dict[str, list[str]]:
    return {str(id): grant_entries.spelled(privileges) for id, privileges in on.items()}
