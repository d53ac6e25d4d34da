"""The tab of an object's history: what was done to it and by whom."""

from __future__ import annotations

from itertools import islice

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authz.access.auditing import audit_of
from authz.actor import Actor
from frontend import tabs
from frontend.guarding import signed_in

SHOWN = 50


@require_safe
@signed_in
def show_history(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """A page of the changes, the newest first; `before` is the last change of the page before."""
    target = tabs.locate(actor, object_id, tabs.HISTORY)
    before = request.GET.get("before", "")
    is_number = before.isascii() and before.isdigit() and len(before) < 19
    lines = list(islice(audit_of(actor, target, int(before) if is_number else None), SHOWN + 1))
    following = lines[SHOWN - 1].id if len(lines) > SHOWN else None
    context = {"lines": lines[:SHOWN], "next": following, "goes_on": is_number}
    return tabs.show(request, actor, target, tabs.HISTORY, context)
