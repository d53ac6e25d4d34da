"""When access to objects changed, and who gained and lost what between two moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from access.explain.timeline import Moments, compared, moments
from authz.actor import Actor
from frontend import tabs
from frontend.forms.matrix import MatrixForm
from frontend.forms.point_in_time import AsOfForm, CompareForm
from frontend.page_decorators import is_partial, signed_in
from frontend.pages.access import NAME
from frontend.pages.catalogs import located
from frontend.timeline import MOST_MOMENTS, OF, page_then, timeline
from metalake.errors import Forbidden, Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.rest.exceptions import shape_of

PARTS = {"access": "ways", "why": "answer"}
"""The pages that are shown as of a moment, each with the part of it that an answer replaces."""
MOST_OBJECTS = 5  # of a matrix, whose changes are listed together


@require_safe
@signed_in
def show_changes(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The moments when access changed, newest first: marks of a slider for the page `of`, and a page of its own."""
    target = tabs.locate(actor, object_id, NAME)
    of = request.GET.get(OF, "")
    page = of if of in PARTS else "access"
    then = page_then(reverse(f"frontend:{page}", args=[target.id]), request.GET, PARTS[page])
    context: dict[str, Any] = {"then": then, "node": target.node, "form": AsOfForm(request.GET)}
    context["timeline"] = timeline([moments(actor, target.metalake.name, target, limit=MOST_MOMENTS)], then)
    if is_partial(request) and request.htmx.target == "changes":  # type: ignore[attr-defined]
        return render(request, "frontend/changes/marks.html", context)
    title = f"Changes of access · {target.name}"
    return tabs.show(request, actor, target, NAME, context, panel="frontend/changes/panel.html", title=title)


@require_http_methods(["GET", "POST"])
@signed_in
def show_matrix_changes(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The moments when access to the first objects of a matrix changed, of those whose access the reader may read."""
    top = located(actor, metalake_id, Kind.METALAKE)
    asked = request.POST if request.method == "POST" else request.GET
    then = page_then(reverse("frontend:matrix", args=[top.id]), asked, "answers")
    context: dict[str, Any] = {"then": then, "target": top, "node": top.node, "form": AsOfForm(asked)}
    context["timeline"] = timeline(_histories(actor, top, MatrixForm(asked, actor.name)), then)
    template = "marks" if is_partial(request) else "matrix"
    return render(request, f"frontend/changes/{template}.html", context)


def _histories(actor: Actor, top: Located, form: MatrixForm) -> Iterator[Moments]:
    form.is_valid()
    for place in form.cleaned_data.get("objects", ())[:MOST_OBJECTS] if form.is_bound else ():
        try:
            yield moments(actor, top.name, place, limit=MOST_MOMENTS)
        except (Forbidden, Invalid, NotFound):
            continue  # the answers say no there, hidden or missing


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
            comparison = compared(actor, target.metalake.name, target, asked["from"], asked["to"])
            context["moved"] = comparison.moved
        except (Invalid, NotFound) as refusal:
            form.add_error(None, refusal.message)
            status, _, _ = shape_of(refusal)
    elif form.is_bound:
        status = 422
    instead = {"panel": "frontend/changes/compare.html", "title": f"Access compared · {target.name}"}
    return tabs.show(request, actor, target, NAME, context, status=status, **instead)
