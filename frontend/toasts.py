"""Toasts: a message shown once in the corner of the next page or part, with an undo button."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

UNDO = "undo"


def add(request: HttpRequest, message: str, *, undo_path: str = "", undo_token: str = "") -> None:
    """Show a message in the page that follows a redirect, or in this part if it includes frontend/toasts_part.html.

    With `undo_path` it has a button, which posts the token there.
    """
    messages.success(request, message, extra_tags=f"{UNDO} {undo_path} {undo_token}" if undo_path else "")


def add_applied(request: HttpRequest, says: str, metalake_id: int, token: str | None, back: str) -> None:
    """Have the next page say this; `token` is that of the applied plan, None where nothing can be undone.

    `back` is the path of the page that is shown when it was undone.
    """
    if token is None:
        add(request, says)
    else:
        path = f"{reverse('frontend:undo', args=[metalake_id])}?{urlencode({'back': back})}"
        add(request, says, undo_path=path, undo_token=token)


def undo_of(message: Message) -> dict[str, str] | None:
    """The path and the token of a message's button; None if it has none."""
    word, _, rest = (message.extra_tags or "").partition(" ")
    if word != UNDO:
        return None
    path, _, token = rest.partition(" ")
    return {"path": path, "token": token}
