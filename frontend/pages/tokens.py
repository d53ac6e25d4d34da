"""The user's own personal tokens."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from authz.actor import Actor
from authz.services import tokens as personal_tokens
from frontend.forms.tokens import TokenForm
from frontend.page_decorators import is_partial, signed_in
from metalake.errors import MetalakeError

MOST_LISTED = 200


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@signed_in
def show_tokens(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The user's own tokens; a new one is shown only in the answer that made it, and while its form is refused."""
    form = TokenForm(request.POST or None, initial=request.GET.dict())
    issued = None
    if request.method == "POST" and form.is_valid():
        try:
            issued = personal_tokens.issue(actor, form.cleaned_data["name"], form.expires_at())
            form = TokenForm()
        except MetalakeError as refusal:
            form.add_error("name", refusal.message)
    if issued is None and request.POST.get("shown") and not is_partial(request):
        issued = personal_tokens.shown_before(actor, request.POST["shown"])
    return _render(request, actor, form, 400 if form.errors else 200, issued=issued)


@require_POST
@signed_in
def revoke_token(request: HttpRequest, actor: Actor, token_id: int) -> HttpResponse:
    """Revoke a token; if already revoked in another tab, an error is shown above the current list."""
    if not personal_tokens.revoke(actor, token_id):
        return _render(request, actor, TokenForm(), 404, message="You have no such token: it may be revoked already.")
    if not is_partial(request):
        return redirect("frontend:tokens")
    return trigger_client_event(_render(request, actor, TokenForm(), 200), "revoked", {"value": f"secret-{token_id}"})


def _render(request: HttpRequest, actor: Actor, form: TokenForm, status: int, **context: Any) -> HttpResponse:
    context |= {"form": form, "tokens": personal_tokens.list_with_use(actor, MOST_LISTED)}
    template = "frontend/tokens_answer.html" if is_partial(request) else "frontend/tokens.html"
    return render(request, template, context, status=status)
