"""Forms with the plan of what they mean on the same page: previewed, applied as shown, marked where rights moved."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from access.plans import apply, blast_radius, plan
from access.plans.apply import Applied, Moved, Preview
from access.plans.desired import Change
from access.plans.plan import Planned, digest_of
from authz.actor import Actor
from metalake.errors import MetalakeError
from metalake.logs import note_failure
from metalake.rest.exceptions import shape_of

OTHERWISE = "The form was changed after this was shown. This is what it means now: look at it, then apply."
_PLACE = re.compile(r"\Achanges\[\d+\]: ")


@dataclass
class PlanForm:
    """What became of a form: `planned`, with the preview `before` where rights `moved`; a `refusal`; or `applied`.

    `digest` is that of what was sent: a plan is applied only to the form that it was shown for.
    """

    digest: str
    planned: Planned | None = None
    before: Preview | None = None
    moved: str = ""
    refusal: str = ""
    applied: Applied | None = None
    status: int = 200

    def refuse(self, failure: MetalakeError) -> None:
        note_failure(failure)
        self.refusal, self.status = failure.message, status_of(failure)


def answer(
    actor: Actor,
    metalake: str,
    content: str,
    changes_of: Callable[[], Sequence[Change]],
    token: str,
    shown: str,
    budget: int = blast_radius.PREVIEW,
) -> PlanForm:
    """Apply the plan of this token if the form is as it was `shown`, else plan its changes; a refusal is a sentence."""
    form = PlanForm(digest_of(content)[:32])
    if token and shown != form.digest:
        form.refusal, form.status = OTHERWISE, 422
    elif token:
        try:
            form.applied = apply.apply_plan(actor, metalake, token)
            return form
        except Moved as moved:
            form.status = 409
            if moved.planned is None:
                form.refusal = moved.message
                return form
            form.moved, form.before, form.planned = moved.message, moved.shown, moved.planned
            return form
        except MetalakeError as failure:
            form.refuse(failure)
    try:
        form.planned = plan.plan_changes(actor, metalake, changes_of(), budget=budget)
    except MetalakeError as failure:
        form.refuse(failure)
    return form


def status_of(failure: MetalakeError) -> int:
    status, _, _ = shape_of(failure)
    return status


def without_place(sentence: str) -> str:
    """A refusal without the number of the change, where the reader made no list of changes."""
    return _PLACE.sub("", sentence)
