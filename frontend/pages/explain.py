"""Why somebody may, or may not, use a privilege on an object, drawn as paths, with what would change a no."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from access.explain import explanations
from access.explain.explanations import Explanation
from access.explain.permissions import reads_access
from access.explain.queries import Whom
from access.explain.remedies import Step
from authz.actor import Actor
from frontend import tabs
from frontend.access_paths import Drawing
from frontend.deep_links import grant_page, request_page, revoke_page
from frontend.forms.explain import WhyForm
from frontend.page_decorators import is_partial, signed_in
from frontend.timeline import changes_url
from metalake.errors import Invalid, NotFound, TooManyRequests
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege
from metalake.rest.exceptions import shape_of


class Remedy(NamedTuple):
    """A step that would help, with the page on which it is made: for the reader to open, or to send to who may."""

    step: Step
    path: str = ""
    url: str = ""
    act: str = ""


@require_safe
@signed_in
def why(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The question as a form, and its answer: for oneself, and about others for whoever may grant on the object."""
    target = tabs.locate(actor, object_id, "access")
    form = WhyForm(request.GET, target, actor.name, reads_access(actor, target))
    context: dict[str, Any] = {"target": target, "node": target.node, "form": form}
    if form.is_reader:
        context["changes_url"] = changes_url(target, "why", request.GET)
    status = 200
    if form.is_bound and form.is_valid():
        try:
            context |= _answer(request, actor, target, form.cleaned_data)
        except (Invalid, NotFound, TooManyRequests) as refusal:
            form.add_error(None, refusal.message)
            status, _, _ = shape_of(refusal)
    elif form.is_bound:
        status = 422
    return _render(request, actor, target, context, status)


def _answer(request: HttpRequest, actor: Actor, target: Located, asked: dict[str, Any]) -> dict[str, Any]:
    """The context of an answer. Raises the service's errors."""
    wanted = explanations.read_wanted(target.kind, asked["privilege"], None)
    explanation = explanations.explain(actor, target.metalake.name, target, wanted, asked["user"], asked["asOf"])
    sets = [[_remedy(request, explanation, step) for step in steps] for steps in explanation.changes or ()]
    return {
        "explanation": explanation,
        "ways": Drawing(explanation).ways(),
        "sets": sets,
        "now_query": urlencode({"user": explanation.user, "privilege": asked["privilege"]}),
        "may_send": any(remedy.url for remedies in sets for remedy in remedies),
        "ask_url": _ask_page(actor, target, explanation, sets),
    }


def _ask_page(actor: Actor, target: Located, explanation: Explanation, sets: list[list[Remedy]]) -> str:
    """The page that asks for it, if the question is about oneself and others may grant it; else ""."""
    privilege, changes = explanation.wanted.privilege, explanation.changes or ()
    is_granted = any(all(step.change == "grant" for step in steps) for steps in changes)
    is_mine = explanation.user == actor.name and not any(all(one.path for one in remedies) for remedies in sets)
    return request_page(target.id, privilege) if privilege and is_granted and is_mine else ""


def _remedy(request: HttpRequest, explanation: Explanation, step: Step) -> Remedy:
    """The step with the page of its own that makes it, if there is one and the object is known."""
    if step.on is None or step.by is None:
        return Remedy(step)
    path, act = _page_of(explanation.user, step, step.on)
    if not path:
        return Remedy(step)
    if step.by.is_asker:
        return Remedy(step, path=path, act=act)
    return Remedy(step, url=request.build_absolute_uri(path), act=act)


def _page_of(user: str, step: Step, on: Located) -> tuple[str, str]:
    """The path of the page that makes this change, filled, and what its button says; both empty if there is none."""
    match step:
        case Step(change="addMember"):
            return reverse("frontend:people", args=[on.id]), f"Add people to {on.name}"
        case Step(change="grant", privilege=Privilege() as privilege):
            return grant_page(on.id, Whom("user", user), privilege), f"Grant {privilege}"
        case Step(change="liftDeny", privilege=Privilege() as privilege, role=str(role)):
            return revoke_page(on.id, role, privilege, Effect.DENY), f"Lift the DENY of {privilege}"
    return "", ""


def _render(request: HttpRequest, actor: Actor, target: Located, context: dict[str, Any], status: int) -> HttpResponse:
    """The answer alone where this page's form asks for it, else the panel of the object."""
    if is_partial(request) and request.htmx.target == "answer":  # type: ignore[attr-defined]
        return render(request, "frontend/why/answer.html", context | {"is_alone": True}, status=status)
    instead = {"panel": "frontend/why/panel.html", "title": f"Why? · {target.name}"}
    return tabs.show(request, actor, target, "access", context, status=status, **instead)
