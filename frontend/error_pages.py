"""Error pages: a full page with its navigation, or a sentence if htmx requested a part.

On GET the sentence replaces the part. On POST the page stays and the sentence is shown above it, so that no form or
list is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.urls import reverse
from django_htmx.http import reswap, retarget, trigger_client_event

from frontend.confusables import spelled
from metalake import headers

SAFE = ("GET", "HEAD", "OPTIONS")
TEXTS = {
    400: ("The request cannot be read", "Go back and try again from the page you came from."),
    403: (
        "You may not do this",
        "You are signed in and it is there, but your roles do not allow this. Its owner can grant you one that does.",
    ),
    404: (
        "There is nothing here",
        "It may have been dropped or never existed, or it is not yours to see. Whoever owns it can grant you a role.",
    ),
    405: ("Nothing is shown at this address", "It only takes forms. Go back to the page that the form is on."),
    500: (
        "The server failed",
        "It is not your doing. Try again; if it stays, tell the operators when it happened: the log has the rest.",
    ),
}
"""Title and message of a page, by status."""
UNSENT = (
    "The form was not accepted",
    "It was open for too long, was sent from another site, or cookies are switched off. Open the page again and send "
    "it once more.",
)


def is_partial(request: HttpRequest) -> bool:
    """Whether htmx requests a part of a page; uses only headers, since the request may have failed early."""
    asks = request.headers.get("HX-Request") == "true"
    return asks and request.headers.get("HX-History-Restore-Request") != "true"


def refuse(
    request: HttpRequest, status: int, message: str = "", *, title: str = "", link: str = "", link_text: str = ""
) -> HttpResponse:
    """The response to a refused request; the default message is that of the status. `link` leads to what may help."""
    usual_title, usual_message = TEXTS.get(status, ("That did not work", ""))
    context = {"title": title or usual_title, "message": message or usual_message}
    context |= {"link": link, "link_text": link_text}
    if is_partial(request):
        return _sentence(request, status, context)
    return _contained(render(request, "frontend/error.html", context, status=status))


def refuse_without_store(request: HttpRequest, status: int, message: str = "", *, title: str = "") -> HttpResponse:
    """The same without the caller's account, since the database may be what failed."""
    usual_title, usual_message = TEXTS.get(status, ("Try again in a moment", ""))
    context = {"title": title or usual_title, "message": message or usual_message}
    if is_partial(request):
        return _sentence(request, status, context)
    return _contained(render(None, "frontend/error.html", context, status=status))


def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The response to a form that fails CSRF; a part gets a new token, and is sent again by a click."""
    title, message = UNSENT
    if not is_partial(request):
        return refuse(request, 403, message, title=title)
    if not request.user.is_authenticated:
        return signed_out(request)
    again = (
        f"You signed in anew meanwhile, as {spelled(request.user.get_username())}. Nothing was changed and what you "
        f"typed is still here: look at it, and send it once more."
    )
    response = refuse(request, 403, again, title="Not sent")
    return trigger_client_event(response, "renewed", {"value": get_token(request)})


def stays_open(request: HttpRequest) -> bool:
    """Whether the page of a partial request stays as it is: its form is submitted, or a field validates its input."""
    return request.method not in SAFE or "HX-Trigger-Name" in request.headers


def signed_out(request: HttpRequest) -> HttpResponse:
    """The response to a form sent after the session expired: it stays, and can be sent again after signing in."""
    context = {
        "title": "You are signed out",
        "message": "Nothing was changed, and what you typed is still here: sign in, then send it once more.",
        "link": reverse("frontend:login"),
        "link_text": "Sign in, in a new tab",
    }
    return _sentence(request, 401, context)


class WithoutMethod:
    """Middleware that turns the empty 405 response of a page into a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != 405 or response.streaming or response.content:
            return response
        page = refuse(request, 405)
        page["Allow"] = response["Allow"]
        return page


def _sentence(request: HttpRequest, status: int, context: dict[str, str]) -> HttpResponse:
    was_sent = request.method not in SAFE or status == 401
    response = render(None, "frontend/notice.html", context | {"was_sent": was_sent}, status=status)
    return _contained(reswap(retarget(response, "#trouble"), "innerHTML") if was_sent else response)


def _contained(response: HttpResponse) -> HttpResponse:
    """Failures may be rendered outside of the middleware that sets the Content-Security-Policy of pages."""
    response.setdefault("Content-Security-Policy", headers.PAGES)
    return response
