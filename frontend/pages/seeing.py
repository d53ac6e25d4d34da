"""Choosing the person as whom the tree and the pages are looked at."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from authz.actor import Actor
from catalogs.services import browsing
from frontend import seen_as
from frontend.guarding import signed_in
from metalake.errors import MetalakeError
from metalake.logs import note_failure


@require_POST
@signed_in
def see_as(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Look at the pages of this metalake as another person from now on; without a name, as oneself again."""
    target = browsing.locate(actor, object_id)
    try:
        seen_as.choose(request, actor, target, request.POST.get("user", "").strip())
    except MetalakeError as refusal:
        note_failure(refusal)
        messages.error(request, refusal.message)
    return redirect("frontend:object", target.id)
