"""The tab of an object's access: every grant that reaches it, and what the reader may do there."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authz.access import inspect
from authz.actor import Actor
from frontend import tabs
from frontend.guarding import signed_in

NAME = "access"


@require_safe
@signed_in
def show_access(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Every grant that reaches the object; for whoever may not read them all, those of their own roles."""
    target = tabs.locate(actor, object_id, NAME)
    context = {"seen": inspect.grants_on(actor, target), "standing": inspect.standing(actor, target)}
    return tabs.show(request, actor, target, NAME, context)
