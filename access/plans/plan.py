"""Plans: changes to grants, previewed with who gains and loses access, and stored to be applied once."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from pydantic import TypeAdapter

from access.plans import blast_radius as blast
from access.plans.blast_report import BlastRadius
from access.plans.compare import compare, compare_changes
from access.plans.desired import Change, Difference, Step, Wanted
from access.plans.export import holders_of
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.callers.enumeration import count_misses, misses_counted
from authz.models import Fact, Plan
from authz.services.change import enter
from authz.services.grant_entries import Entries, Given
from authz.transactions import write
from metalake.privileges import Effect, Privilege

GOOD_FOR = timedelta(hours=1)


@dataclass(frozen=True)
class Planned:
    """A difference with its blast radius; `token` applies it, None if nothing changes.

    `left` lists what an undo skips because it has changed since.
    """

    token: str | None
    epoch: int
    changes: list[Change]
    blast: BlastRadius
    left: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        return self.blast.summary if self.changes else "nothing changes"


@dataclass(frozen=True)
class Draft:
    """A plan before it is stored: the difference, its blast radius, and the newest fact it is based on.

    `holders` is a digest of who holds each changed role, by name, since changing a role affects them too.
    """

    difference: Difference
    blast: BlastRadius
    epoch: int
    fact_id: int
    holders: dict[str, str] = field(default_factory=dict)


@misses_counted("user", "group", "role")
def plan(actor: Actor, metalake: str, wanted: Wanted) -> Planned:
    """The changes that lead to the desired state, stored for the caller to apply once within an hour.

    Raises the errors of compare.
    """
    newest, actor = _now(actor, metalake)
    difference = compare(actor, metalake, wanted)
    count_misses(actor, metalake, "role", sum(step.role_id is None for step in difference.steps))
    return store(actor, _draft(actor, difference, newest, blast.BUDGET))


@misses_counted("user", "group", "role")
def changes_to(actor: Actor, metalake: str, wanted: Wanted) -> list[Change]:
    """The changes that lead to the desired state, for plan_changes: it can renew a plan of these if rights move.

    Raises the errors of compare.
    """
    return compare(actor, metalake, wanted).changes


@misses_counted("user", "group", "role")
def plan_changes(
    actor: Actor,
    metalake: str,
    changes: Sequence[Change],
    *,
    budget: int | None = None,
    undoes: Plan | None = None,
    answers: int | None = None,
    left: tuple[str, ...] = (),
) -> Planned:
    """Just these changes, without those already in place, stored for the caller to apply once within an hour.

    `budget` limits the counting of the blast radius (None: BUDGET). `answers` is the access request that the plan would
    fulfil. Raises the errors of compare_changes.
    """
    more: dict[str, Any] = {"undoes": undoes.applied_at.isoformat()} if undoes and undoes.applied_at else {}
    more |= {"answers": answers} if answers else {}
    return store(actor, draft_changes(actor, metalake, changes, budget), changes, left, budget=budget, **more)


def draft_changes(
    actor: Actor, metalake: str, changes: Sequence[Change], budget: int | None, *, is_new: bool = True
) -> Draft:
    """The plan of these changes as of now; `is_new` counts new role names as attempts to guess one."""
    newest, actor = _now(actor, metalake)
    difference = compare_changes(actor, metalake, changes, counts=is_new)
    holders = _holders(difference)
    return replace(_draft(actor, difference, newest, blast.BUDGET if budget is None else budget), holders=holders)


def _holders(difference: Difference) -> dict[str, str]:
    """Digests of holders; roles that are only unassigned are left out, since the other holders are unaffected."""
    steps = [step for step in difference.steps if step.give or step.take or any(step.assign.values())]
    names = {step.role_id: step.name for step in steps if step.role_id is not None}
    by_sort = [holders_of(difference.top, sort, names, with_former=True) for sort in ("user", "group")]
    return {name: digest_of(str([sorted(by_id.get(id, ())) for by_id in by_sort])) for id, name in names.items()}


def _now(actor: Actor, metalake: str) -> tuple[int, Actor]:
    """The newest fact about rights, and the actor on the policy as of then or later."""
    top = enter(actor, metalake)
    # Read first: any later change to rights makes the plan stale.
    newest = facts_on_rights(top.id).order_by("-id").values_list("id", flat=True).first() or 0
    return newest, actor.refreshed()


def _draft(actor: Actor, difference: Difference, newest: int, budget: int) -> Draft:
    radius = blast.radius(actor, difference.top, _moves(difference), budget)
    return Draft(difference, radius, actor.policy.epoch, newest)


def facts_on_rights(metalake_id: int) -> Any:
    """Facts that may have changed rights; creating, renaming and dropping objects other than roles never does."""
    about_rights = ("owner.set", "user.removed", "group.removed", "role.created", "role.dropped")
    return Fact.objects.filter(~Q(topic="object") | Q(event__in=about_rights), metalake_id=metalake_id)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def stored_plan(actor: Actor, token: str | None, **also: Any) -> Plan | None:
    """The caller's own plan of this token."""
    return Plan.objects.filter(digest=digest_of(token or ""), user_id=actor.id, **also).first()


def store(
    actor: Actor, draft: Draft, wanted: Sequence[Change] | None = None, left: tuple[str, ...] = (), **more: Any
) -> Planned:
    """Store a plan with a new token; one of `wanted` changes can be recomputed if rights change meanwhile."""
    difference = draft.difference
    changes: dict[str, Any] = {"scope": difference.scope.id, "steps": list(map(step_data, difference.steps))}
    if wanted is not None:
        changes["wanted"] = _CHANGES.dump_python(list(wanted), mode="json")
        changes |= {"blast": BLAST.dump_python(draft.blast, mode="json"), "holders": draft.holders, **more}
    token = _store(actor, difference.top.id, changes, draft.fact_id) if difference.steps else None
    return Planned(token, draft.epoch, difference.changes, draft.blast, left)


def _store(actor: Actor, metalake_id: int, changes: dict[str, Any], fact_id: int) -> str:
    token = secrets.token_urlsafe(32)

    def act(actor: Actor) -> None:
        old = timezone.now() - GOOD_FOR
        # An applied plan is kept as long again, for undo.
        Plan.objects.filter(Q(applied_at__isnull=True) | Q(applied_at__lte=old), created_at__lte=old).delete()
        Plan.objects.create(
            digest=digest_of(token),
            user_id=account_of(actor),
            metalake_id=metalake_id,
            changes=changes,
            fact_id=fact_id,
        )

    write(actor, act, holds=None, kind="plan")
    return token


def _moves(difference: Difference) -> list[blast.Move]:
    """The steps as blast-radius moves: what each role holds afterwards on the changed objects."""
    moves = []
    for step in difference.steps:
        on = {}
        standing = difference.standing.get(step.role_id or 0, {})
        for id in step.give.keys() | step.take.keys():
            gone = step.take.get(id, {})
            staying = {privilege: given for privilege, given in standing.get(id, {}).items() if privilege not in gone}
            on[id] = staying | step.give.get(id, {})
        moves.append(blast.Move(step.role_id, on, step.assign, step.unassign, step.name))
    return moves


# Plans as they are stored: JSON, by ids

_PEOPLE = ("assign", "unassign")
_ENTRIES = TypeAdapter(list[tuple[int, Privilege, Effect, datetime | None, datetime | None]])
_CHANGES, BLAST = TypeAdapter(list[Change]), TypeAdapter(BlastRadius)
read_changes, read_blast = _CHANGES.validate_python, BLAST.validate_python


def step_data(step: Step) -> dict[str, Any]:
    """The step with lists in place of dicts by ids, since names in JSON are text; `read_steps` reads it back."""
    return {
        "role": step.role_id,
        "name": step.name,
        "give": _entries_data(step.give),
        "take": _entries_data(step.take),
        **{part: {sort: [*ids.items()] for sort, ids in getattr(step, part).items()} for part in _PEOPLE},
        **({"drop": True} if step.drop else {}),
    }


def _entries_data(by_id: dict[int, Entries]) -> list[list[Any]]:
    rows = [(id, privilege, *given) for id, entries in by_id.items() for privilege, given in entries.items()]
    stored: list[list[Any]] = _ENTRIES.dump_python(rows, mode="json")
    return stored


def read_steps(row: Plan) -> list[Step]:
    """The steps of a stored plan."""
    return [
        Step(
            step["role"],
            step["name"],
            _read_entries(step["give"]),
            _read_entries(step["take"]),
            **{part: {sort: dict(pairs) for sort, pairs in step[part].items()} for part in _PEOPLE},
            drop=step.get("drop", False),
        )
        for step in row.changes["steps"]
    ]


def _read_entries(stored: object) -> dict[int, Entries]:
    by_id: dict[int, Entries] = defaultdict(dict)
    for id, privilege, effect, starts, ends in _ENTRIES.validate_python(stored):
        by_id[id][privilege] = Given(effect, starts, ends)
    return dict(by_id)
