"""Sign-in and sign-out of the pages and the admin; after too many failures a page says how long to wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.contrib import admin, auth
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from authz.models import User
from frontend.error_pages import refuse
from frontend.page_decorators import local_path
from metalake.errors import TooManyRequests

Page = Callable[..., HttpResponse]


def throttled(page: Page) -> Page:
    """Decorator of a page that renders TooManyRequests as a page."""

    @wraps(page)
    def guarded(request: HttpRequest, **names: str) -> HttpResponse:
        try:
            return page(request, **names)
        except TooManyRequests as refusal:
            response = refuse(request, 429, refusal.message, title="Please wait")
            response["Retry-After"] = str(refusal.retry_after)
            return response

    return guarded


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
@throttled
def login(request: HttpRequest) -> HttpResponse:
    """Sign in with a password, then redirect to `next` if that is a page of this server."""
    next_ = local_path(request.POST.get("next") or request.GET.get("next"))
    if request.user.is_authenticated:
        return redirect(next_)
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        auth.login(request, form.get_user())
        return redirect(next_)
    context = {"form": form, "next": next_, "is_cut": "cut" in request.GET}
    return render(request, "frontend/login.html", context, status=400 if form.errors else 200)


@throttled
def admin_login(request: HttpRequest) -> HttpResponse:
    """The admin's own sign-in, for operators."""
    return admin.site.login(request)


@throttled
def admin_password(request: HttpRequest) -> HttpResponse:
    """The admin's page where operators change their own password."""
    if isinstance(request.user, User):
        request.user.changed_by = request.user.username
    return admin.site.admin_view(admin.site.password_change, cacheable=True)(request)


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    auth.logout(request)
    return redirect("frontend:login")
