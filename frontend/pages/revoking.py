"""Revoke one grant of a role: preview of who loses what, then apply."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from access.plans import apply, blast_radius, plan
from access.plans.apply import Moved
from authz.actor import Actor
from catalogs.services import browsing
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.revoking import RevokeForm
from frontend.page_decorators import keeps_form, signed_in
from metalake.errors import Invalid, MetalakeError
from metalake.lineage import Located
from metalake.logs import note_failure


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def revoke(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Revoke a grant of a role on an object: preview who loses what, and apply the previewed plan."""
    target = browsing.locate(actor, object_id)
    form = RevokeForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        raise Invalid("Name the grant to revoke: a role, a privilege, and allow or deny.")
    change = form.change(target)
    context: dict[str, Any] = {"target": target, "form": form, "change": change, "before": None}
    status = 200
    if token := request.POST.get("token"):
        status = 409
        try:
            applied = apply.apply_plan(actor, target.metalake.name, token)
        except Moved as moved:
            says = "moved" if moved.planned else "refusal"
            context |= {says: moved.message, "before": moved.shown, "planned": moved.planned}
        except MetalakeError as failure:
            note_failure(failure)
            context["refusal"] = failure.message
        else:
            path = reverse("frontend:access", args=[target.id])
            lost = f"{form.cleaned_data['effect'] or 'allow'} {change.privilege} on {spelled(target.name)}"
            says = f"Role {spelled(change.role)} no longer has {lost}."
            toasts.add_applied(request, says, target.metalake.id, applied.token, path)
            return redirect(path)
    return _show(request, actor, target, context, status)


def _show(request: HttpRequest, actor: Actor, target: Located, context: dict[str, Any], status: int) -> HttpResponse:
    try:
        changes = [context["change"]]
        if not context.get("planned"):
            context["planned"] = plan.plan_changes(actor, target.metalake.name, changes, budget=blast_radius.PREVIEW)
    except MetalakeError as refusal:
        if status == 200:
            raise
        note_failure(refusal)
    return render(request, "frontend/granting/revoke.html", context, status=status)
