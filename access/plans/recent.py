"""The plans that were applied within the last hour, for as long as they can be undone."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from access.explain.permissions import reads_access
from access.plans.desired import Change, Step, changes_of, object_ids
from access.plans.plan import GOOD_FOR, read_steps
from authz import operations, policy
from authz.actor import Actor
from authz.models import Plan
from authz.objects import by_ids
from metalake.kinds import Kind
from metalake.lineage import Located

MOST = 10


class Recent(NamedTuple):
    """One applied plan, with its changes as far as the reader may know them.

    `number` names it for its undo, and is None if somebody else applied it or it was undone (`is_undone`).
    """

    number: int | None
    at: datetime
    actor: str
    changes: list[Change]
    is_undone: bool


def recent_changes(actor: Actor, target: Located) -> list[Recent]:
    """The last changes of rights to an object, above it and below it, newest first; for its readers of access.

    Roles and their holders count for the metalake, and are for those who may read all access, or did it themselves.
    """
    if target.disabled or not reads_access(actor, target):
        return []
    now = timezone.now()
    # The second condition has an index; a plan is applied within GOOD_FOR of its creation.
    rows = Plan.objects.filter(metalake_id=target.metalake.id, applied_at__gt=now - GOOD_FOR)
    rows = rows.filter(created_at__gt=now - 2 * GOOD_FOR).select_related("user").order_by("-applied_at")[: 2 * MOST]
    plans = [(row, read_steps(row)) for row in rows]
    located = by_ids({id for _, steps in plans for id in object_ids(steps)}) if plans else {}
    known = {id: on for id, on in located.items() if _is_about(target, on) and reads_access(actor, on)}
    reads_all = policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, target.top)
    undone = {row.changes.get("undoes") for row, _ in plans}
    recent = []
    for row, steps in plans:
        assert row.applied_at is not None
        is_own, is_undone = row.user_id == actor.id, row.applied_at.isoformat() in undone
        shown = [part for step in steps if (part := _known(step, known, target, is_own or reads_all))]
        if shown:
            number = row.pk if is_own and not is_undone else None
            recent.append(Recent(number, row.applied_at, row.user.username, changes_of(shown, known), is_undone))
    return recent[:MOST]


def _is_about(target: Located, on: Located) -> bool:
    """Whether one of the two is the other, or lies in it."""
    return f"{on.lineage}/".startswith(f"{target.lineage}/") or f"{target.lineage}/".startswith(f"{on.lineage}/")


def _known(step: Step, known: dict[int, Located], target: Located, is_all: bool) -> Step | None:
    step.give = {id: on for id, on in step.give.items() if id in known}
    step.take = {id: on for id, on in step.take.items() if id in known}
    if step.give or step.take or (is_all and target.kind is Kind.METALAKE):
        return step
    return None
