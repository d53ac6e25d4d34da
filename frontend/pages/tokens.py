"""The user's own personal tokens."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from authz.actor import Actor
from authz.services import tokens as personal_tokens
from frontend.forms.tokens import TokenForm
from frontend.guarding import is_partial, signed_in
from metalake.errors import MetalakeError, NotFound


@require_http_methods(["GET", "POST"])
@signed_in
def show_tokens(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The user's own tokens; a new one is shown only in the answer that made it."""
    form = TokenForm(request.POST or None)
    issued = None
    if request.method == "POST" and form.is_valid():
        try:
            issued = personal_tokens.issue(actor, form.cleaned_data["name"], form.expires_at())
            form = TokenForm()
        except MetalakeError as refusal:
            form.add_error("name", refusal.message)
    context = {"form": form, "issued": issued, "tokens": personal_tokens.list_tokens(actor)[:200]}
    template = "frontend/tokens_part.html" if is_partial(request) else "frontend/tokens.html"
    return render(request, template, context, status=400 if form.errors else 200)


@require_POST
@signed_in
def revoke_token(request: HttpRequest, actor: Actor, token_id: int) -> HttpResponse:
    if not personal_tokens.revoke(actor, token_id):
        raise NotFound("You have no such token.")
    if not is_partial(request):
        return redirect("/tokens")
    context = {"form": TokenForm(), "tokens": personal_tokens.list_tokens(actor)[:200]}
    return render(request, "frontend/tokens_part.html", context)
