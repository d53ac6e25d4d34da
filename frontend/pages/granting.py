"""Granting on an object: the form with a preview that grows beside it, and applying what was shown."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HttpResponseClientRedirect

from access.explain import grantable, search
from access.explain.grantable import Grantable
from access.explain.remedies import Step
from access.plans import apply, proposals
from access.plans.apply import Moved
from access.plans.proposals import AccessRequest
from access.plans.recipients import USES
from authz import operations
from authz.actor import Actor
from authz.services import roles
from catalogs.services import browsing
from frontend import toasts
from frontend.forms.granting import CHOSEN, GrantForm
from frontend.grant_form import GrantPanel, groups, levels, place_of
from frontend.page_decorators import home, is_partial, keeps_form, permits, signed_in
from frontend.snippets import recipe
from metalake.errors import Invalid, MetalakeError, NotFound
from metalake.lineage import Located
from metalake.logs import note_failure

CHANGED = "The form was changed after this was shown. This is what it means now: look at it, then apply."
MOST_SUGGESTED = 20
MOST_ROLES = 500


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def grant(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The form of a grant on an object, its preview, and applying the plan that was shown."""
    drawer = _read(request, actor, browsing.locate(actor, object_id))
    if request.POST.get("act") == "apply":
        return _apply(request, actor, drawer)
    return _show(request, actor, drawer)


@require_safe
@signed_in
def suggest(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Users and groups whose name starts with the input, among those visible to the caller."""
    target = browsing.locate(actor, object_id)
    grantable.grantable_by(actor, target.metalake.name, place_of(target))
    text = request.GET.get("more", "").replace("\x00", "").strip()
    results = search.search(actor, target.metalake.name, text, MOST_SUGGESTED) if text else None
    people = [*results.users, *results.groups] if results else []
    return render(request, "frontend/granting/suggestions.html", {"people": people})


def _read(request: HttpRequest, actor: Actor, opened: Located) -> GrantPanel:
    sent = request.POST if request.method == "POST" else request.GET
    may = grantable.grantable_by(actor, opened.metalake.name, place_of(opened))
    form = GrantForm(sent, _chosen(actor, may, sent.get("on")))
    drawer = GrantPanel(opened, may.scopes, form)
    form.full_clean()
    if form.names:
        try:
            form.name(grantable.name_people(actor, drawer.metalake, drawer.place, form.names))
        except MetalakeError as refusal:
            form.add_error("paste" if form.data.get("paste") else "more", refusal.message)
    return drawer


def _chosen(actor: Actor, may: Grantable, id: str | None) -> Grantable:
    """What may be granted on the scope of this id, if anything, else on the object that the form was opened on."""
    above = next((scope for scope in may.scopes[:-1] if str(scope.on.id) == id and scope.objects), None)
    return may if above is None else grantable.grantable_above(actor, may, above)


def _propose(actor: Actor, drawer: GrantPanel) -> None:
    """Choose the role that gives the form's people this, and plan it."""
    form = drawer.form
    if not form.is_ready:
        return
    role = form.cleaned_data["role"].strip() or None
    asked = AccessRequest(form.people, drawer.place, form.entries(), role, USES - form.declined)
    try:
        drawer.proposal = proposals.propose(actor, drawer.metalake, asked)
    except (Invalid, NotFound) as refusal:
        if refusal.kind == "role":
            form.add_error("role", refusal.message)
        else:
            drawer.refusal = refusal.message
    except MetalakeError as failure:
        note_failure(failure)
        drawer.refusal = failure.message


def _apply(request: HttpRequest, actor: Actor, drawer: GrantPanel) -> HttpResponse:
    """Apply the plan that was shown, if the form is unchanged; an error is shown in place."""
    token = request.POST.get("token", "")
    if not drawer.form.is_ready or not token:
        return _show(request, actor, drawer, status=422)
    if request.POST.get("shown") != drawer.form.digest:
        drawer.refusal = CHANGED
        return _show(request, actor, drawer, status=422)
    try:
        applied = apply.apply_plan(actor, drawer.metalake, token)
    except Moved as moved:
        drawer.moved, drawer.before = moved.message, moved.shown
    except MetalakeError as failure:
        note_failure(failure)
        drawer.refusal = failure.message
    else:
        path = reverse("frontend:access", args=[drawer.on.id])
        toasts.add_applied(request, f"{drawer.sentence}.", drawer.on.metalake.id, applied.token, path)
        return HttpResponseClientRedirect(path) if is_partial(request) else redirect(path)
    return _show(request, actor, drawer, status=409)


def _show(request: HttpRequest, actor: Actor, drawer: GrantPanel, status: int = 200) -> HttpResponse:
    refusal = drawer.refusal
    _propose(actor, drawer)
    drawer.refusal = refusal or drawer.refusal
    context = _context(request, actor, drawer)
    if not is_partial(request):
        return render(request, "frontend/granting/page.html", context, status=status)
    part = "answer" if request.method == "POST" else "drawer"
    return render(request, f"frontend/granting/{part}.html", context, status=status)


def _context(request: HttpRequest, actor: Actor, drawer: GrantPanel) -> dict[str, Any]:
    form, may, top = drawer.form, drawer.form.grantable, drawer.on.top
    context: dict[str, Any] = {
        "drawer": drawer,
        "form": form,
        "target": drawer.opened,
        "levels": levels(may),
        "chosen": CHOSEN,
        "groups": groups(drawer),
        "roles": roles.list_roles(actor, drawer.metalake)[:MOST_ROLES],
        "may_list": permits(request, operations.MANAGE_USERS, top) and permits(request, operations.MANAGE_GROUPS, top),
        "is_rights_changed": request.POST.get("rights_of", str(drawer.on.id)) != str(drawer.on.id),
    }
    if drawer.proposal:
        changes = drawer.proposal.planned.changes if drawer.proposal.planned else drawer.proposal.changes
        if changes:
            context["recipe"] = recipe(request.build_absolute_uri(home()), drawer.metalake, changes)
        context["asks"] = [_ask(request, drawer, step) for step in drawer.proposal.asks]
    return context


def _ask(request: HttpRequest, drawer: GrantPanel, step: Step) -> dict[str, Any]:
    """What to ask somebody for, with a link that opens this form filled for them."""
    on, query = drawer.on.id, drawer.form.query()
    if step.change == "grant" and step.on is not None and step.privilege is not None:
        people = [("principal", f"{sort}:{name}") for sort, name in drawer.form.people]
        on, query = step.on.id, urlencode([*people, ("privilege", step.privilege.value)])
    link = request.build_absolute_uri(f"{reverse('frontend:grant', args=[on])}?{query}")
    return {"step": step, "link": link}
