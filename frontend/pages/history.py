"""The tab of an object's history: what was done to it and by whom, and who used it lately."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from access.explain.audit_log import audit_of
from access.usage.queries import use_on
from authz.actor import Actor
from authz.usage_counter import is_recorded
from frontend import tabs
from frontend.page_decorators import signed_in
from metalake.full_names import dotted

SHOWN = 50
USE_DAYS = 30  # of use shown


@require_safe
@signed_in
def show_history(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """A page of the changes, the newest first; `before` is the last change of the page before."""
    target = tabs.locate(actor, object_id, tabs.HISTORY)
    before = request.GET.get("before", "")
    is_number = before.isascii() and before.isdigit() and len(before) < 19
    lines = list(islice(audit_of(actor, target, int(before) if is_number else None, below=True), SHOWN + 1))
    following = lines[SHOWN - 1].id if len(lines) > SHOWN else None
    context: dict[str, Any] = {"lines": lines[:SHOWN], "next": following, "goes_on": is_number}
    asked = urlencode({"on": f"{target.kind} {dotted(target.full_name)}"})
    context["audit_url"] = f"{reverse('frontend:audit', args=[target.metalake.id])}?{asked}"
    if is_recorded() and not is_number:
        used = use_on(actor, target, timezone.now() - timedelta(days=USE_DAYS))
        latest = sorted(used.lines, key=lambda line: line.last, reverse=True)
        context |= {"used": used, "uses": latest[:SHOWN], "more_uses": len(latest) > SHOWN, "use_days": USE_DAYS}
    return tabs.show(request, actor, target, tabs.HISTORY, context)
