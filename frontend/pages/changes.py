"""When access to an object changed, and who gained and lost what between two moments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from authz.access.comparing import compared
from authz.access.moments import Moment, moments
from authz.access.questions import Place
from authz.actor import Actor
from frontend import tabs
from frontend.forms.moments import CompareForm, shown_in_picker
from frontend.guarding import is_partial, signed_in
from frontend.pages.access import NAME
from metalake.errors import Invalid, NotFound
from metalake.lineage import Located
from metalake.names import dotted
from metalake.rest.exceptions import shape_of
from metalake.wire import written

MOST_MOMENTS = 200
JUST_BEFORE = timedelta(milliseconds=1)


class Change(NamedTuple):
    """A moment with the pages of what was then, and of what it changed; `picked` fills a picker of moments."""

    moment: Moment
    picked: str
    then_url: str
    compare_url: str


@require_safe
@signed_in
def show_changes(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The moments when access changed, newest first: a part of the tab, and without JavaScript a page."""
    target = tabs.locate(actor, object_id, NAME)
    listed = moments(actor, target.metalake.name, _place(target), limit=MOST_MOMENTS).moments
    changes = [_change(target, moment) for moment in listed]
    context: dict[str, Any] = {"changes": changes, "is_cut": len(changes) == MOST_MOMENTS}
    if is_partial(request) and request.htmx.target == "changes":  # type: ignore[attr-defined]
        return render(request, "frontend/changes/list.html", context | {"node": target.node, "is_alone": True})
    title = f"Changes of access · {target.name}"
    return tabs.show(request, actor, target, NAME, context, panel="frontend/changes/panel.html", title=title)


@require_safe
@signed_in
def compare(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Who gained and who lost what between two moments, and by which changes."""
    target = tabs.locate(actor, object_id, NAME)
    form = CompareForm(request.GET)
    context: dict[str, Any] = {"form": form}
    status = 200
    if form.is_bound and form.is_valid():
        asked = form.cleaned_data
        try:
            comparison = compared(actor, target.metalake.name, _place(target), asked["from"], asked["to"])
            context["moved"] = comparison.moved
        except (Invalid, NotFound) as refusal:
            form.add_error(None, refusal.message)
            status, _, _ = shape_of(refusal)
    elif form.is_bound:
        status = 422
    instead = {"panel": "frontend/changes/compare.html", "title": f"Access compared · {target.name}"}
    return tabs.show(request, actor, target, NAME, context, status=status, **instead)


def _place(target: Located) -> Place:
    return Place(target.kind, dotted(target.full_name))


def _change(target: Located, moment: Moment) -> Change:
    span = urlencode({"from": written(moment.at - JUST_BEFORE), "to": written(moment.at)})
    return Change(
        moment,
        picked=shown_in_picker(moment.at),
        then_url=f"{reverse('frontend:access', args=[target.id])}?{urlencode({'asOf': written(moment.at)})}",
        compare_url=f"{reverse('frontend:compare', args=[target.id])}?{span}",
    )
