"""The search: a page of results, or the part of it that htmx shows while one types."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access.explain import search as searching
from authz.actor import Actor
from frontend.page_decorators import is_partial, signed_in
from metalake.errors import Invalid, TooManyRequests

WHILE_TYPING, AT_ONCE = 8, 50


@require_safe
@signed_in
def search(request: HttpRequest, actor: Actor) -> HttpResponse:
    """What the caller may see in all of their metalakes; whoever sends the whole form also asks for exact names."""
    text = request.GET.get("q", "")
    is_typing = is_partial(request)
    context: dict[str, object] = {"q": text, "searched": text}
    status, limit = 200, WHILE_TYPING if is_typing else AT_ONCE
    try:
        context["meant"] = searching.objects_meant(actor, text)
        context["results"] = searching.search(actor, None, text, limit, exact=not is_typing)
    except TooManyRequests as refusal:  # for guessed names; visible objects are still searched
        context["results"] = searching.search(actor, None, text, limit)
        context["notice"] = refusal.message
    except Invalid as refusal:
        context["refusal"], status = refusal.message, 422
    template = "frontend/search/part.html" if is_typing else "frontend/search/page.html"
    return render(request, template, context, status=status)
