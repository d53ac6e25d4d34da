"""Applies a plan atomically, once, and only if it still does what its caller was shown.

If rights have changed since, a plan of changes is recomputed: an identical result is applied; otherwise the caller
gets the new plan with a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from django.utils import timezone

from access.explain.permissions import reads_access
from access.plans.blast_report import BlastRadius, Line
from access.plans.desired import Change, Step, changes_of, object_ids
from access.plans.plan import (
    GOOD_FOR,
    Draft,
    Planned,
    draft_changes,
    facts_on_rights,
    read_blast,
    read_changes,
    read_steps,
    store,
    stored_plan,
)
from authz import operations, policy
from authz.actor import Actor
from authz.models import Plan, Role
from authz.objects import by_ids
from authz.services import grant_entries, snapshot_changes
from authz.services.authority import require_give, require_lift_of_roles
from authz.services.change import change, enter, event, publish_events
from authz.services.grants import rewrite
from authz.services.roles import delete_role, insert_role
from authz.services.snapshot_changes import GroupRole, UserRole
from authz.transactions import write
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound
from metalake.events import Event, stands
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Effect

ATTEMPTS = 5


class Applied(NamedTuple):
    """The changes made; the token can undo them for an hour, and is None if there was nothing to do."""

    changes: list[Change]
    token: str | None


class _Behind(Exception):
    """Rights changed since a plan of changes was made: it has to be recomputed."""


Settle = Callable[[Actor, Located, int | None], dict[str, Any]]
"""Called in a plan's transaction before its changes, with the access request that it answers; see apply_plan."""


def apply_plan(actor: Actor, metalake: str, token: str | None, settle: Settle | None = None) -> Applied:
    """Apply one of the caller's plans; a plan without changes has no token and does nothing.

    If rights have changed since, a plan of changes is recomputed outside the transaction, because counting its blast
    radius under the lock would block all other changes; it is applied if the result and the rights are then unchanged.
    What `settle` returns is added to the details of each change's audit row.
    Raises NotFound if the caller has no such plan, Conflict if it was already applied or has expired, or if rights
    changed under a plan of a state, Moved if the recomputed plan differs, and any error of the changes themselves.
    """
    for _ in range(ATTEMPTS):
        try:
            return change(actor, metalake, _apply, token, settle, kind="plan", on=lambda: _ids_of(actor, token))
        except _Behind:
            renew(actor, metalake, token or "")
    raise Conflict(f"Rights in metalake {metalake} keep changing; try again in a moment.", kind="plan")


def _apply(actor: Actor, top: Located, token: str | None, settle: Settle | None) -> Applied:
    if token is None:
        return Applied([], None)
    row = _claim(actor, top, token)
    steps = read_steps(row)
    located = _located(row, steps)
    made = changes_of(steps, located)
    more = {"undoes": row.changes["undoes"]} if row.changes.get("undoes") else {}
    more |= settle(actor, top, row.changes.get("answers")) if settle else {}
    application = _Application(actor, top, located, more)
    publish_events(*application.run(steps))
    if outcome := application.outcome:
        Plan.objects.filter(pk=row.pk).update(changes=row.changes | outcome)
    return Applied(made, token)


def _ids_of(actor: Actor, token: str | None) -> set[int]:
    """The ids of the objects that a plan of the caller changes grants on."""
    row = stored_plan(actor, token)
    return object_ids(read_steps(row)) if row else set()


def _claim(actor: Actor, top: Located, token: str) -> Plan:
    row = stored_plan(actor, token, metalake_id=top.id)
    if row is None:
        raise NotFound(f"{actor.name} has no such plan in metalake {top.name}; make one first.", kind="plan")
    now = timezone.now()
    if row.applied_at:
        raise Conflict(f"The plan was applied at {row.applied_at.isoformat()}; make a new one.", kind="plan")
    if row.created_at + GOOD_FOR <= now:
        raise Conflict(f"The plan is older than {GOOD_FOR}; make a new one.", kind="plan")
    if moved := _what_moved(top, row):
        if "wanted" in row.changes:
            raise _Behind
        raise Conflict(f"{moved} Make a new plan and look at it again.", kind="plan")
    Plan.objects.filter(pk=row.pk).update(applied_at=now)
    return row


def _located(row: Plan, steps: list[Step]) -> dict[int, Located]:
    ids = object_ids(steps)
    located = by_ids(ids)
    scope: int = row.changes["scope"]
    # Dropping a role removes all its grants, on any object.
    gone = {id for step in steps if step.drop for id in step.take} - located.keys()
    for step in steps:
        step.take = {id: on for id, on in step.take.items() if id not in gone}
    for id in ids - gone:
        if id not in located or all(node.id != scope for node in located[id].nodes):
            raise Conflict("An object of the plan was dropped or moved since; make a new plan.", kind="plan")
    return located


@dataclass
class _Application:
    """`more` are details for each audit row; `made` are the ids of the created roles, by name.

    `plain` are the dropped roles that had no properties and were owned by the actor.
    """

    actor: Actor
    top: Located
    located: dict[int, Located]
    more: dict[str, Any]
    made: dict[str, int] = field(default_factory=dict)
    plain: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> dict[str, Any]:
        """What an undo needs in addition to the steps."""
        return {name: what for name, what in (("made", self.made), ("plain", self.plain)) if what}

    def run(self, steps: list[Step]) -> list[Event]:
        rows = Role.objects.in_bulk([step.role_id for step in steps if step.role_id is not None])
        for step in steps:
            # Checked first, while the roles still have the DENYs that their holders lose.
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
        return event(self.actor, self.top, name, Kind.ROLE, row.pk, [row.name], facts, **details, **self.more)

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
        row.pk = role  # Model.delete() clears the primary key
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
        """The events; the last one about holders gets the facts of who now holds what."""
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


# Recomputing a plan of changes

SHOWN = 3  # changes in a sentence


class Moved(Conflict):
    """Rights changed, and a plan of the same changes now differs from the one `shown`.

    `planned` is the new plan, with its own token; None if the changes are no longer possible.
    """

    def __init__(self, message: str, shown: Preview, planned: Planned | None = None) -> None:
        super().__init__(message, kind="plan")
        self.shown, self.planned = shown, planned


def _what_moved(top: Located, row: Plan) -> str:
    """A sentence on the first change of rights since a plan was made; "" if there was none."""
    since = facts_on_rights(top.id).filter(id__gt=row.fact_id).order_by("id")
    if not (first := since.values_list("actor", "event", "at").first()):
        return ""
    who, what, when = first
    return f"Rights in metalake {top.name} changed since the plan was made: {what} by {who} at {when.isoformat()}."


def renew(actor: Actor, metalake: str, token: str) -> None:
    """Recompute a stored plan of changes; an identical one is refreshed. Raises Moved if it differs."""
    top = enter(actor, metalake)
    row = stored_plan(actor, token, metalake_id=top.id, applied_at=None)
    if row is None:
        return  # apply_plan raises the right error
    wanted = read_changes(row.changes["wanted"])
    reason = _what_moved(top, row)
    try:
        draft = draft_changes(actor, metalake, wanted, row.changes.get("budget"), is_new=False)
    except (AlreadyExists, Invalid, NotFound) as wrong:
        raise Moved(f"{reason} It cannot be applied any more: {wrong.message}", _shown(actor, row, {})) from None
    before = row.changes.get("holders", draft.holders)  # older plans have none
    others = sorted(name for name, holders in draft.holders.items() if before.get(name) != holders)
    if others or (draft.difference.steps, draft.blast) != (read_steps(row), read_blast(row.changes["blast"])):
        shown = _shown(actor, row, draft.difference.located)
        more = {name: row.changes[name] for name in ("undoes", "answers") if name in row.changes}
        planned = store(actor, draft, wanted, budget=row.changes.get("budget"), **more)
        raise Moved(f"{reason} {_difference(shown, planned, others)}", shown, planned)
    _note(actor, row, draft)


def _shown(actor: Actor, row: Plan, located: dict[int, Located]) -> Preview:
    """The preview of a stored plan, without lines on objects that are gone or no longer visible to the actor."""
    steps = read_steps(row)
    others = by_ids(object_ids(steps) - located.keys())
    known = located | {id: on for id, on in others.items() if reads_access(actor, on)}
    for step in steps:
        step.give = {id: on for id, on in step.give.items() if id in known}
        step.take = {id: on for id, on in step.take.items() if id in known}
    return Preview(changes_of(steps, known), read_blast(row.changes["blast"]))


def _note(actor: Actor, row: Plan, draft: Draft) -> None:
    def act(actor: Actor) -> None:
        Plan.objects.filter(pk=row.pk, applied_at=None).update(fact_id=draft.fact_id)

    write(actor, act, holds=None, kind="plan")


def _difference(shown: Preview, planned: Planned, others: list[str]) -> str:
    """How the new plan differs from the one shown, in a sentence or two; `others` are roles that others hold now."""
    fewer = [change for change in shown.changes if change not in planned.changes]
    more = [change for change in planned.changes if change not in shown.changes]
    summary = shown.blast.summary
    sentences = [f"Role {name} has other holders now than then: what changes in it is theirs too." for name in others]
    if fewer:
        sentences.append(f"There is no need any more to {_listed(fewer)}.")
    if more:
        sentences.append(f"It would also {_listed(more)}.")
    if summary != planned.summary:
        sentences.append(f"It came to: {summary}. It comes to: {planned.summary}.")
    return " ".join(sentences) or "Others gain or lose by it now; look at the new plan."


def _listed(changes: list[Change]) -> str:
    more = len(changes) - SHOWN
    shown = ", ".join(map(in_words, changes[:SHOWN]))
    return f"{shown} and make {more} more changes" if more > 0 else shown


def in_words(change: Change) -> str:
    """ "grant select_table on schema lake.A to role analysts", "assign role analysts to user mia", "make role r"."""
    verb = {"createRole": "make", "dropRole": "drop", "unassign": "take"}.get(change.change, change.change)
    if change.privilege and change.given and change.on:
        how = "deny" if (verb, change.given.effect) == ("grant", Effect.DENY) else verb
        to = "from" if verb == "revoke" else "to"
        return f"{how} {change.privilege} on {' '.join(change.on)} {to} role {change.role}"
    if change.holder:
        return f"{verb} role {change.role} {'from' if verb == 'take' else 'to'} {' '.join(change.holder)}"
    return f"{verb} role {change.role}"


T = TypeVar("T")


# What differs between two plans of the same changes


class Preview(NamedTuple):
    """A plan as its caller was shown it."""

    changes: list[Change]
    blast: BlastRadius


@dataclass(frozen=True)
class DiffLine(Generic[T]):
    """A line of a plan; `mark` is "new", "gone", "changed" or "" (unchanged); `was` is what changed."""

    line: T
    mark: str = ""
    was: T | None = None


def diff_changes(changes: Sequence[Change], before: Preview | None) -> list[DiffLine[Change]]:
    """The changes of a plan, then those of the previous one that are gone; unmarked without a previous plan."""
    if before is None:
        return [DiffLine(change) for change in changes]
    roles = [{change.role for change in some} for some in (changes, before.changes)]
    names_roles = max(map(len, roles)) > 1

    def key(change: Change) -> Hashable:
        # A grant to the one role is the same line even if the plan now uses a different role.
        role = None if change.privilege and not names_roles else change.role
        return change.change, role, change.privilege, change.on, change.holder

    return _diff(changes, before.changes, key, lambda change: change.given)


def diff_lines(blast: BlastRadius | None, before: Preview | None) -> list[DiffLine[Line]]:
    """The lines of a blast radius, marked as in `diff_changes`."""
    lines = blast.lines if blast else []
    if before is None:
        return [DiffLine(line) for line in lines]
    return _diff(lines, before.blast.lines, lambda line: (line.privilege, line.kind), lambda line: line)


def _diff(
    lines: Sequence[T], before: Sequence[T], key: Callable[[T], Hashable], content: Callable[[T], Any]
) -> list[DiffLine[T]]:
    old = {key(line): line for line in before}
    marked = []
    for line in lines:
        was = old.pop(key(line), None)
        if was is None:
            marked.append(DiffLine(line, "new"))
        else:
            marked.append(DiffLine(line) if content(was) == content(line) else DiffLine(line, "changed", was))
    return marked + [DiffLine(line, "gone") for line in old.values()]
