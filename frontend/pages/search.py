"""The search: a page of results, or the part of it that the palette shows while one types."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access.explain import search as searching
from authz.actor import Actor
from frontend import palette
from frontend.page_decorators import is_partial, signed_in
from frontend.sections import first_level
from metalake.errors import Invalid, TooManyRequests

WHILE_TYPING, AT_ONCE = 6, 50


@require_safe
@signed_in
def search(request: HttpRequest, actor: Actor) -> HttpResponse:
    """What the caller may see in all of their metalakes; whoever sends the whole form also asks for exact names.

    `in` is the id of the metalake whose pages are offered.
    """
    text, within = request.GET.get("q", ""), request.GET.get("in", "")
    is_typing = is_partial(request)
    context: dict[str, object] = {"q": text, "searched": text, "is_typing": is_typing}
    status, limit = 200, WHILE_TYPING if is_typing else AT_ONCE
    try:
        phrase, meant = palette.phrases_meant(actor, text)
        context |= {"phrase": phrase, "meant": [(one, palette.url_of(one)) for one in meant]}
        metalake_id = int(within) if within.isascii() and within.isdigit() and len(within) < 20 else None
        pages = palette.pages_named(actor, first_level(request, actor).children, text, metalake_id)
        context |= {"pages": pages, "is_page": any(page.label.lower() == text.strip().lower() for page in pages)}
        context["results"] = searching.search(actor, None, text, limit, exact=not is_typing, comments=True)
    except TooManyRequests as refusal:  # for guessed names; visible objects are still searched
        context["results"] = searching.search(actor, None, text, limit, comments=True)
        context["notice"] = refusal.message
    except Invalid as refusal:
        context["refusal"], status = refusal.message, 422
    template = "frontend/search/part.html" if is_typing else "frontend/search/page.html"
    return render(request, template, context, status=status)
