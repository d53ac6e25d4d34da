"""Plans of changes made again where rights moved since: as good as new if they come to the same."""

from __future__ import annotations

from datetime import datetime

from access.explain.redaction import reads_access
from access.plans.desired import Change, changes_of
from access.plans.plan import Draft, Planned, digest_of, draft_changes, facts_on_rights, store
from access.plans.preview_diff import Shown
from access.plans.serialization import read_blast, read_changes, read_steps
from authz.actor import Actor
from authz.models import Plan
from authz.objects import by_ids
from authz.services.change import enter
from authz.transactions import write
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound
from metalake.lineage import Located
from metalake.privileges import Effect

SHOWN = 3


class Moved(Conflict):
    """Rights moved, and a plan of the same changes is another one now than was `shown`.

    `planned` is that plan, with a token of its own; None if the changes cannot be made any more.
    """

    def __init__(self, message: str, shown: Shown, planned: Planned | None = None) -> None:
        super().__init__(message, kind="plan")
        self.shown, self.planned = shown, planned


def what_moved(top: Located, who: str, what: str, when: datetime) -> str:
    """The first change of rights since a plan was made, in words."""
    return f"Rights in metalake {top.name} changed since the plan was made: {what} by {who} at {when.isoformat()}."


def renew(actor: Actor, metalake: str, token: str) -> None:
    """Make a stored plan of changes again; if it is the same it counts as made now. Raises Moved."""
    top = enter(actor, metalake)
    row = Plan.objects.filter(digest=digest_of(token), user_id=actor.id, metalake_id=top.id, applied_at=None).first()
    if row is None:
        return  # applying says what is wrong
    wanted, undoes = read_changes(row.changes["wanted"]), row.changes.get("undoes")
    reason = what_moved(top, *_first_fact(top, row))
    try:
        draft = draft_changes(actor, metalake, wanted, row.changes.get("budget"), is_new=False)
    except (AlreadyExists, Invalid, NotFound) as wrong:
        raise Moved(f"{reason} It cannot be applied any more: {wrong.message}", _shown(actor, row, {})) from None
    before = row.changes.get("holders", draft.holders)  # plans of before have none
    others = sorted(name for name, holders in draft.holders.items() if before.get(name) != holders)
    if others or (draft.difference.steps, draft.blast) != (read_steps(row.changes), read_blast(row.changes["blast"])):
        shown = _shown(actor, row, draft.difference.located)
        more = {"undoes": undoes} if undoes else {}
        planned = store(actor, draft, wanted, budget=row.changes.get("budget"), **more)
        raise Moved(f"{reason} {_difference(shown, planned, others)}", shown, planned)
    _note(actor, row, draft)


def _first_fact(top: Located, row: Plan) -> tuple[str, str, datetime]:
    since = facts_on_rights(top.id).filter(id__gt=row.fact_id).order_by("id")
    return since.values_list("actor", "event", "at")[0]


def _shown(actor: Actor, row: Plan, located: dict[int, Located]) -> Shown:
    """What a stored plan came to, without lines on objects that are gone or that the actor may know no more."""
    steps = read_steps(row.changes)
    ids = {id for step in steps for id in step.give.keys() | step.take.keys()}
    known = located | {id: on for id, on in by_ids(ids - located.keys()).items() if reads_access(actor, on)}
    for step in steps:
        step.give = {id: on for id, on in step.give.items() if id in known}
        step.take = {id: on for id, on in step.take.items() if id in known}
    return Shown(changes_of(steps, known), read_blast(row.changes["blast"]))


def _note(actor: Actor, row: Plan, draft: Draft) -> None:
    def act(actor: Actor) -> None:
        Plan.objects.filter(pk=row.pk, applied_at=None).update(fact_id=draft.fact_id)

    write(actor, act, holds=None, kind="plan")


def _difference(shown: Shown, planned: Planned, others: list[str]) -> str:
    """What a plan came to and what it comes to now, in a sentence or two; `others` are roles that others hold now."""
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
