"""View as: choosing the person as whom the tree and pages are viewed, and suggestions for fields that take a user."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from access.explain import search
from authz.actor import Actor
from authz.operations import read_access
from catalogs.services import browsing
from frontend import view_as
from frontend.page_decorators import require, signed_in
from metalake.errors import MetalakeError
from metalake.logs import note_failure

MOST_SUGGESTED = 20


@require_safe
@signed_in
def suggest_users(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Users whose name starts with the input, among those visible to the caller, if they may read access here."""
    target = browsing.locate(actor, object_id)
    require(request, read_access(target.kind), target)
    text = request.GET.get("user", "").replace("\x00", "").strip()
    users = search.search(actor, target.metalake.name, text, MOST_SUGGESTED).users if text else []
    return render(request, "frontend/users.html", {"users": users})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def see_as(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """View the pages of this metalake as another person from now on; without a name, as oneself again.

    A link asks first, with the name of its `user` filled in.
    """
    target = browsing.locate(actor, object_id)
    if request.method != "POST":
        require(request, read_access(target.kind), target)
        context = {"target": target, "node": target.node, "user": request.GET.get("user", "")}
        return render(request, "frontend/see_as_page.html", context)
    try:
        view_as.choose(request, actor, target, request.POST.get("user", "").strip())
    except MetalakeError as refusal:
        note_failure(refusal)
        messages.error(request, refusal.message)
    return redirect("frontend:object", target.id)
