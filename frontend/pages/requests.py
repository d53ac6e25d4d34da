"""Asking for access to an object, one's requests and those to decide, and deciding with the preview of the grant."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access.explain.explanations import read_wanted
from access.plans.apply import Moved
from access.requests import asking, deciding
from access.requests.asking import Offer
from access.requests.deciding import OpenRequest
from authz import policy
from authz.actor import Actor
from catalogs.services import browsing
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.requests import DecideForm, RequestForm, end_of
from frontend.page_decorators import keeps_form, signed_in
from frontend.pages.catalogs import located
from frontend.pages.explain import Remedy
from metalake.errors import Conflict, Forbidden, Invalid, MetalakeError, NotFound
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Privilege
from metalake.rest.exceptions import shape_of

SHOWN = 100
OTHER_END = "Another end was chosen: this is what it means now. Look at it, then approve."


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def ask(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The form that asks for access; `for` names the refused operation, `privilege` what is asked for."""
    target = browsing.locate(actor, object_id)
    offer = _offer(request, actor, target)
    sent = request.POST if request.method == "POST" else None
    initial = {name: request.GET[name] for name in ("purpose", "ends") if name in request.GET}
    form = RequestForm(sent, asking.can_be_asked(target), offer.privileges, initial=initial)
    status = 200
    if sent is not None:
        status = 422
        if form.is_valid():
            asked = form.cleaned_data
            privileges = [Privilege(name) for name in asked["privilege"]]
            try:
                asking.ask(actor, target, privileges, asked["purpose"], end_of(asked["ends"]))
            except (Forbidden, NotFound):
                raise
            except MetalakeError as refusal:
                form.add_error(None, refusal.message)
                status, _, _ = shape_of(refusal)
            else:
                toasts.add(request, f"You asked for access to {spelled(dotted(target.full_name))}.")
                return redirect("frontend:requests", target.metalake.id)
    context = {"target": target, "form": form, "offer": offer, "may_grant": policy.may_grant(actor, target)}
    return render(request, "frontend/requests/ask.html", context, status=status)


def _offer(request: HttpRequest, actor: Actor, target: Located) -> Offer:
    """What the link asks for; nothing if it names no operation or privilege of this object."""
    named = [name for name in request.GET.getlist("privilege") if name in set(Privilege)]
    operation = request.GET.get("for")
    if len(named) > 1 or not (named or operation):
        return Offer(tuple(map(Privilege, named)))
    try:
        wanted = read_wanted(target.kind, named[0] if named else None, None if named else operation)
        return asking.smallest_change(actor, target, wanted)
    except Invalid:
        return Offer(())


@require_safe
@signed_in
def show_requests(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """What waits for the actor's decision in a metalake, and what they asked for themselves."""
    target = located(actor, metalake_id, Kind.METALAKE)
    waiting = deciding.open_requests(actor, target.id)
    context = {"target": target, "waiting": waiting[:SHOWN], "total": len(waiting)}
    context["mine"] = asking.requests_of(actor, target.name)
    return render(request, "frontend/requests/list.html", context)


@require_POST
@signed_in
def withdraw(request: HttpRequest, actor: Actor, metalake_id: int, request_id: int) -> HttpResponse:
    """Take one's own request back."""
    target = located(actor, metalake_id, Kind.METALAKE)
    asking.withdraw(actor, target.name, request_id)
    toasts.add(request, "The request is withdrawn.")
    return redirect("frontend:requests", target.id)


@require_http_methods(["GET", "POST"])
@signed_in
def decide(request: HttpRequest, actor: Actor, metalake_id: int, request_id: int) -> HttpResponse:
    """A request with the preview of its grant, to approve or decline."""
    target = located(actor, metalake_id, Kind.METALAKE)
    one = deciding.load(actor, target.name, request_id)
    sent = request.POST if request.method == "POST" else None
    form = DecideForm(sent, one.row.ends_at)
    context: dict[str, Any] = {"target": target, "one": one, "form": form, "before": None}
    status = 200
    try:
        if sent is not None and (done := _decide(request, actor, one, form, context)):
            back = reverse("frontend:requests", args=[target.id])
            toasts.add_applied(request, *done, back)
            return redirect(back)
    except Moved as moved:
        status = 409
        context |= {"moved": moved.message, "before": moved.shown, "planned": moved.planned}
    except (Invalid, Conflict) as refusal:
        form.add_error("reason" if refusal.kind == "text" else None, refusal.message)
        status, _, _ = shape_of(refusal)
    if "planned" not in context:
        context |= _preview(request, actor, one, form)
    return render(request, "frontend/requests/decide.html", context, status=status)


def _decide(
    request: HttpRequest, actor: Actor, one: OpenRequest, form: DecideForm, context: dict[str, Any]
) -> tuple[str, int, str | None] | None:
    """Approve or decline; what to say then, where, and the token that undoes it. None if it was only looked at."""
    who, on, top = spelled(one.who), spelled(dotted(one.on.full_name)), one.on.metalake
    match request.POST.get("act"):
        case "decline":
            deciding.decline(actor, top.name, one.row.pk, request.POST.get("reason", ""))
            return f"You declined what {who} asked for on {on}.", top.id, None
        case "approve" if request.POST.get("shown") != form.chosen:
            context["note"] = OTHER_END
        case "approve":
            applied = deciding.approve(actor, one, form.end, request.POST.get("token", ""))
            return f"{who} may use {', '.join(one.privileges)} on {on}.", top.id, applied.token
    return None


def _preview(request: HttpRequest, actor: Actor, one: OpenRequest, form: DecideForm) -> dict[str, Any]:
    """The plan that approving applies, or the sentence why there is none."""
    try:
        proposal = deciding.propose(actor, one, form.end)
    except (Invalid, Forbidden) as refusal:
        return {"refusal": refusal.message}
    link = request.build_absolute_uri(request.path)
    return {
        "proposal": proposal,
        "planned": proposal.planned,
        "asks": [Remedy(step, url=link) for step in proposal.asks],
        "notes": [note.says for note in proposal.notes if note.verdict != "new"] + [use.says for use in proposal.use],
    }
