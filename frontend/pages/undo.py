"""Undo: the next page shows what was applied, with a button that reverts it, and so do the objects' for an hour."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from access.plans import apply
from access.plans import undo as undoing
from access.plans.apply import Moved
from access.plans.desired import Change
from access.plans.recent import Recent, recent_changes
from authz.actor import Actor
from frontend import toasts
from frontend.confusables import spelled
from frontend.page_decorators import local_path, signed_in
from frontend.pages.catalogs import located
from metalake.errors import MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.logs import note_failure

SHOWN = 4


@require_POST
@signed_in
def undo(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Apply the inverse of an applied plan, then say on the page before what was taken back.

    If access changes between planning and applying, the current inverse is previewed, and applied when confirmed.
    """
    top = located(actor, metalake_id, Kind.METALAKE)
    back = local_path(request.GET.get("back"))
    token = request.POST.get("plan")
    left: Sequence[str] = ()
    try:
        if not token:
            planned = undoing.plan_undo(actor, top.name, request.POST.get("token", ""), _number(request))
            token, left = planned.token, planned.left
        applied = apply.apply_plan(actor, top.name, token)
    except Moved as moved:
        if moved.planned and moved.planned.token:
            context = {"target": top, "back": back, "planned": moved.planned, "moved": moved.message}
            context["before"] = moved.shown
            return render(request, "frontend/granting/undo.html", context, status=409)
        toasts.add_applied(request, f"It was not undone. {moved.message}", top.id, None, back)
    except MetalakeError as failure:
        note_failure(failure)
        toasts.add_applied(request, f"It was not undone. {failure.message}", top.id, None, back)
    else:
        toasts.add_applied(request, in_words(applied.changes, left), top.id, applied.token, back)
    return redirect(back)


def _number(request: HttpRequest) -> int | None:
    """The plan that a page of recent changes names, which has no token of it."""
    number = request.POST.get("number", "")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None


def in_words(changes: Sequence[Change], left: Sequence[str]) -> str:
    """What an undo did, in a sentence or two: the first changes, how many more, and what was skipped.

    Dropping or recreating a role counts as one change, with all its grants.
    """
    whole = {"dropRole": "drop role {} with all that it held", "createRole": "make role {} again, as it was"}
    roles = {change.role: whole[change.change] for change in changes if change.change in whole}
    lines = [sentence.format(spelled(role)) for role, sentence in roles.items()]
    lines += [apply.in_words(change) for change in changes if change.role not in roles]
    more = len(lines) - SHOWN
    says = f"Undone: {'; '.join(lines[:SHOWN])}" if lines else "There is nothing left to undo"
    return " ".join([f"{says}; and {more} more." if more > 0 else f"{says}.", *left])


class Lately(NamedTuple):
    """Changes of the last hour, and what they were in words."""

    of: Recent
    says: str


def lately(actor: Actor, target: Located) -> list[Lately]:
    """What changed lately in the rights on an object, above it and below it."""
    return [Lately(each, _summary(each.changes)) for each in recent_changes(actor, target)]


def _summary(changes: Sequence[Change]) -> str:
    """The first changes in words, the privileges of one grant together, and how many more."""
    alike: dict[Hashable, list[Change]] = {}
    for change in changes:
        effect = change.given.effect if change.given else None
        alike.setdefault((change.change, change.role, change.on, change.holder, effect), []).append(change)
    lines = [_in_words(each) for each in alike.values()]
    more = len(lines) - SHOWN
    text = "; ".join(lines[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return f"{text[:1].upper()}{text[1:]}"


def _in_words(changes: Sequence[Change]) -> str:
    first = changes[0]
    words = apply.in_words(first)
    return words.replace(f"{first.privilege}", ", ".join(f"{each.privilege}" for each in changes), 1)
