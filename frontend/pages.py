"""The pages of people who grant: the tree, one object with its grants, personal tokens, signing in and out.

One function a page: the part that changes when htmx asks, the whole page otherwise. They decide nothing; what an
account may not see is answered like what is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import auth
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from authz import inspect
from authz.callers import actor_of
from authz.policy import Actor
from authz.services import tokens as personal_tokens
from catalogs.services import browsing
from frontend.forms import TokenForm
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.models import Slot
from metalake.rest import shape_of

HOME = "/"
Page = Callable[..., HttpResponse]


def signed_in(page: Page) -> Page:
    """Hand the page its actor, send everybody else to sign in, and say our errors as a page. Nothing is cached."""

    @wraps(page)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            response = _to_login(request)
        else:
            try:
                response = page(request, actor_of(request.user), *args, **kwargs)
            except MetalakeError as failure:
                response = _failure(request, failure)
        add_never_cache_headers(response)
        patch_vary_headers(response, ["HX-Request"])
        return response

    return guarded


def is_partial(request: HttpRequest) -> bool:
    return bool(request.htmx) and not request.htmx.history_restore_request  # type: ignore[attr-defined]


def _to_login(request: HttpRequest) -> HttpResponse:
    """Where to sign in, and back to the page that is open."""
    if is_partial(request):
        return HttpResponseClientRedirect(_login_url(request.htmx.current_url_abs_path or HOME))  # type: ignore[attr-defined]
    return redirect(_login_url(request.get_full_path() if request.method == "GET" else HOME))


def _login_url(next_: str) -> str:
    return "/login" if next_ == HOME else f"/login?{urlencode({'next': next_})}"


def _failure(request: HttpRequest, failure: MetalakeError) -> HttpResponse:
    """A part says what failed in its place; a whole page that is absent or refused is the server's own."""
    if not is_partial(request):
        if isinstance(failure, NotFound):
            raise Http404
        if isinstance(failure, Forbidden):
            raise PermissionDenied
    status, _, _ = shape_of(failure)
    context = {"title": "That did not work", "message": failure.message}
    template = "frontend/notice.html" if is_partial(request) else "frontend/error.html"
    return render(request, template, context, status=status)


@require_safe
@signed_in
def home(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The tree, and where to begin."""
    level = browsing.top_level(actor)
    trail = [level.children[0].id] if len(level.children) == 1 else []
    context = {"level": level, "trail": trail, "may_create": actor.service_admin}
    return render(request, "frontend/welcome.html" if is_partial(request) else "frontend/home.html", context)


@require_safe
@signed_in
def show_object(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """One object beside the tree: what it is, and every grant that reaches it."""
    found = browsing.locate(actor, object_id)
    context = {
        "found": found,
        "node": found.nodes[-1],
        "above": found.nodes[:-1],
        "about": browsing.describe(actor, found),
        "seen": inspect.grants_on(actor, found),
        "standing": inspect.standing(actor, found),
    }
    if is_partial(request):
        return render(request, "frontend/object.html", context | {"is_partial": True})
    context |= {"level": browsing.top_level(actor), "trail": [node.id for node in found.nodes], "chosen": found.id}
    return render(request, "frontend/home.html", context)


@require_safe
@signed_in
def list_metalakes(request: HttpRequest, actor: Actor) -> HttpResponse:
    """How the first level of the tree goes on."""
    return _render_level(request, browsing.top_level(actor, _after(request)))


@require_safe
@signed_in
def list_children(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """One level of the tree, or how it goes on."""
    found = browsing.locate(actor, object_id)
    slot = request.GET.get("slot") if request.GET.get("slot") in Slot.values else None
    return _render_level(request, browsing.level_below(actor, found, slot, _after(request)), parent=found)


def _after(request: HttpRequest) -> str | None:
    return request.GET.get("after", "").replace("\x00", "") or None


def _render_level(request: HttpRequest, level: browsing.Level, **context: Any) -> HttpResponse:
    """`trail` is the way to the object that is shown: what lies on it opens by itself."""
    ids = request.GET.get("trail", "").split("-")
    trail = [int(id) for id in ids if id.isascii() and id.isdigit() and len(id) < 20]
    context |= {"level": level, "trail": trail, "chosen": trail[-1] if trail else None}
    return render(request, "frontend/level.html", context | {"goes_on": "after" in request.GET})


@require_http_methods(["GET", "POST"])
@signed_in
def tokens(request: HttpRequest, actor: Actor) -> HttpResponse:
    """One's own tokens; a new one is shown in the answer that made it and never again."""
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


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """Sign in with a password, then on to `next` where that is a page of ours."""
    next_ = local_path(request.POST.get("next") or request.GET.get("next"))
    if request.user.is_authenticated:
        return redirect(next_)
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        auth.login(request, form.get_user())
        return redirect(next_)
    return render(request, "frontend/login.html", {"form": form, "next": next_}, status=400 if form.errors else 200)


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    auth.logout(request)
    return redirect("/login")


def local_path(path: str | None) -> str:
    """The path, if it leads to a page of this server and nowhere else; the first page otherwise."""
    if not path or not path.startswith("/") or path.startswith("//") or not path.isprintable():
        return HOME
    return path if url_has_allowed_host_and_scheme(path, allowed_hosts=None) else HOME
