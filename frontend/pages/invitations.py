"""The page of an invitation: who has the link of a new account sets its password, once, and is signed in."""

from __future__ import annotations

from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from authz.models import PASSWORDS
from authz.services import invitations
from frontend.forms.people import PasswordForm
from frontend.page_decorators import home
from frontend.pages.sign_in import throttled
from metalake.errors import Invalid, NotFound


@sensitive_post_parameters()
@sensitive_variables("secret")
@never_cache
@require_http_methods(["GET", "POST"])
@throttled
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """The form of a first password. Its URL is not leaked as a referrer."""
    try:
        response = _answer(request, secret)
    except NotFound as refusal:
        context = {"title": "This link is good no more", "message": refusal.message}
        response = render(request, "frontend/error.html", context, status=404)
    response["Referrer-Policy"] = "strict-origin"  # with no-referrer, browsers send no origin and the CSRF check fails
    return response


def _answer(request: HttpRequest, secret: str) -> HttpResponse:
    user = invitations.invited(secret)
    form = PasswordForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            account = invitations.accept(secret, form.cleaned_data["password"])
        except Invalid as refusal:
            form.add_error("password", refusal.message)
        else:
            auth.login(request, account, backend=PASSWORDS)
            return redirect(home())
    context = {"form": form, "name": user.username}
    return render(request, "frontend/people/invitation.html", context, status=422 if form.errors else 200)
