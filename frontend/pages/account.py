"""The user's own account: their password, and the browsers that are signed in as them."""

from __future__ import annotations

from typing import Any

from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from authz import sessions
from authz.actor import Actor
from authz.services import own_password, tokens
from frontend import toasts
from frontend.forms.people import OwnPasswordForm
from frontend.page_decorators import signed_in
from metalake.errors import Conflict, Invalid, TooManyRequests, Unsupported


@require_safe
@signed_in
def show_account(request: HttpRequest, actor: Actor) -> HttpResponse:
    return _render(request, actor, OwnPasswordForm())


@sensitive_post_parameters()
@require_POST
@signed_in
def change_password(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Change the own password; this session goes on, all others end."""
    form = OwnPasswordForm(request.POST)
    if not form.is_valid():
        return _render(request, actor, form, 422)
    given, status = form.cleaned_data, 422
    try:
        user = own_password.change_password(actor, given["old"], given["password"], keeps_tokens=given["keep_tokens"])
    except (Invalid, Conflict, Unsupported, TooManyRequests) as refusal:
        if isinstance(refusal, TooManyRequests):
            status = 429
        form.add_error("password" if refusal.kind == own_password.NEW else "old", refusal.message)
        return _render(request, actor, form, status)
    auth.update_session_auth_hash(request, user)
    ended = sessions.end_other_sessions(actor.id, request.session.session_key)
    says = "Your tokens stay valid." if given["keep_tokens"] else "Your tokens ended with the old one."
    toasts.add(request, f"Your password is changed, and {_count(ended)} ended. {says}")
    return redirect("frontend:account")


@require_POST
@signed_in
def end_sessions(request: HttpRequest, actor: Actor) -> HttpResponse:
    """End one other session (`session`), or all others."""
    this, asked = request.session.session_key, request.POST.get("session", "")
    if not asked:
        toasts.add(request, f"{_count(sessions.end_other_sessions(actor.id, this)).capitalize()} ended.")
    elif sessions.end_session(actor.id, asked, but=this):
        toasts.add(request, "The session is ended.")
    else:
        toasts.add(request, "This session had ended already.")
    return redirect("frontend:account")


def _count(number: int) -> str:
    """ "no other session", "1 other session", "2 other sessions"."""
    return f"{number or 'no'} other session{'' if number < 2 else 's'}"


def _render(request: HttpRequest, actor: Actor, form: OwnPasswordForm, status: int = 200) -> HttpResponse:
    user: Any = request.user
    listed = sessions.list_sessions(user, request.session.session_key)
    context = {
        "form": form,
        "has_password": user.has_usable_password(),
        "token_count": tokens.list_tokens(actor).count(),
        "sessions": listed,
        "has_others": any(not one.is_this for one in listed),
    }
    return render(request, "frontend/account.html", context, status=status)
