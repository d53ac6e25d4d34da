"""Plans: the changes that lead to a wanted state, shown with who gains and loses, and stored to be applied once."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.callers.guessing import count_misses, misses_counted
from authz.models import Fact, Plan
from authz.plans import blast
from authz.plans.blast_lines import Blast
from authz.plans.differing import compare
from authz.plans.wanted import Change, Difference, Step, Wanted
from authz.services.changing import enter
from authz.services.entries import Entries, Given
from authz.writing import write
from metalake.privileges import Effect, Privilege

GOOD_FOR = timedelta(hours=1)


@dataclass(frozen=True)
class Planned:
    """A difference with who gains and loses by it; `token` applies it, None if nothing changes."""

    token: str | None
    epoch: int
    changes: list[Change]
    blast: Blast

    @property
    def summary(self) -> str:
        return self.blast.summary if self.changes else "nothing changes"


@misses_counted("user", "group", "role")
def plan(actor: Actor, metalake: str, wanted: Wanted) -> Planned:
    """The changes that lead to the wanted state, stored for the caller to apply once within an hour.

    Raises as compare does.
    """
    top = enter(actor, metalake)
    # Read first: any change of rights from here on makes the plan stale.
    newest = facts_on_rights(top.id).order_by("-id").values_list("id", flat=True).first() or 0
    actor = actor.refreshed()
    difference = compare(actor, metalake, wanted)
    count_misses(actor, metalake, "role", sum(step.role_id is None for step in difference.steps))
    radius = blast.radius(actor, difference.top, _moves(difference))
    token = _store(actor, difference, newest) if difference.steps else None
    return Planned(token, actor.policy.epoch, difference.changes, radius)


def facts_on_rights(metalake_id: int) -> Any:
    """The facts that may have changed rights; creating, renaming and dropping objects other than roles changes none."""
    about_rights = ("owner.set", "user.removed", "group.removed", "role.created", "role.dropped")
    return Fact.objects.filter(~Q(topic="object") | Q(event__in=about_rights), metalake_id=metalake_id)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def _store(actor: Actor, difference: Difference, newest: int) -> str:
    token = secrets.token_urlsafe(32)
    changes = {"scope": difference.scope.id, "steps": [_step_data(step) for step in difference.steps]}

    def act(actor: Actor) -> None:
        Plan.objects.filter(created_at__lte=timezone.now() - GOOD_FOR).delete()
        Plan.objects.create(
            digest=digest_of(token),
            user_id=account_of(actor),
            metalake_id=difference.top.id,
            changes=changes,
            fact_id=newest,
        )

    write(actor, act, holds=None, kind="plan")
    return token


def _step_data(step: Step) -> dict[str, Any]:
    """The step as JSON, which `read_steps` reads back."""
    holders = {"assign": step.assign, "unassign": step.unassign}
    return {
        "role": step.role_id,
        "name": step.name,
        "give": _entries_data(step.give),
        "take": _entries_data(step.take),
        **{name: {sort: list(ids.items()) for sort, ids in people.items()} for name, people in holders.items()},
    }


def _entries_data(on: dict[int, Entries]) -> list[list[Any]]:
    return [
        [id, privilege.value, given.effect.value, *(moment and moment.isoformat() for moment in given[1:])]
        for id, entries in on.items()
        for privilege, given in entries.items()
    ]


def read_steps(data: dict[str, Any]) -> list[Step]:
    """The steps of a stored plan."""
    return [
        Step(
            step["role"],
            step["name"],
            _read_entries(step["give"]),
            _read_entries(step["take"]),
            *({sort: dict(pairs) for sort, pairs in step[part].items()} for part in _PEOPLE),
        )
        for step in data["steps"]
    ]


_PEOPLE = ("assign", "unassign")


def _read_entries(rows: Sequence[Sequence[Any]]) -> dict[int, Entries]:
    by_id: dict[int, Entries] = defaultdict(dict)
    for id, privilege, effect, *span in rows:
        moments = (moment and datetime.fromisoformat(moment) for moment in span)
        by_id[id][Privilege(privilege)] = Given(Effect(effect), *moments)
    return dict(by_id)


def _moves(difference: Difference) -> list[blast.Move]:
    """The steps in the form of the blast radius: what each role holds afterwards on the objects that change."""
    moves = []
    for step in difference.steps:
        on = {}
        standing = difference.standing.get(step.role_id or 0, {})
        for id in step.give.keys() | step.take.keys():
            gone = step.take.get(id, {})
            staying = {privilege: given for privilege, given in standing.get(id, {}).items() if privilege not in gone}
            on[id] = staying | step.give.get(id, {})
        moves.append(blast.Move(step.role_id, on, step.assign, step.unassign))
    return moves
