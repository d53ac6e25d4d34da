"""The versions of a view: list, side-by-side diff, and rollback with a preview."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from authz.actor import Actor
from frontend import tabs, toasts
from frontend.page_decorators import keeps_form, signed_in
from frontend.pages.views import about_view
from frontend.version_diff import in_other_parts, in_sql, summary
from metalake.errors import MetalakeError, NotFound
from metalake.logs import note_failure
from views_mgmt.models import ViewVersion
from views_mgmt.services import history
from views_mgmt.services.history import Difference

VERSIONS = "versions"
SHOWN = 50


class Line(NamedTuple):
    """A version in the list; `changed` names what differs from the version before, "" for the first one."""

    number: int
    at: datetime | None
    by: str
    changed: str


@require_safe
@signed_in
def show_versions(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """A page of the versions, the latest first; `before` is the last version of the page before.

    Those of a view that cannot be read now are shown below the reason.
    """
    target = tabs.locate(actor, object_id, VERSIONS)
    about = about_view(actor, target)
    before = _number(request.GET.get("before"))
    rows = history.list_versions(actor, target.address, before, SHOWN + 1)
    is_cut = len(rows) > SHOWN or (len(rows) > 1 and rows[-1].version > 1)
    lines = list(_lines(rows))[: -1 if is_cut else None]  # the last one is only for the diff of its successor
    about |= {"lines": lines, "next": lines[-1].number if is_cut else None, "goes_on": before}
    return tabs.show(request, actor, target, VERSIONS, about)


def _lines(rows: Sequence[ViewVersion]) -> Iterator[Line]:
    for row, previous in zip_longest(rows, rows[1:]):
        audit = row.audit_info
        at = datetime.fromisoformat(audit["createTime"]) if audit.get("createTime") else None
        changed = summary(history.differences(previous.definition, row.definition)) if previous else ""
        yield Line(row.version, at, audit.get("creator", ""), changed)


@require_safe
@signed_in
def compare(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Two versions side by side: by default the latest one and the one before it."""
    target = tabs.locate(actor, object_id, VERSIONS)
    about = about_view(actor, target)
    if latest := about.get("version") or about["last_read"]:
        after = _number(request.GET.get("after"), latest)
        before = _number(request.GET.get("before"), max(after - 1, 1))
        about |= _shown(history.compare(actor, target.address, before, after))
        about |= {"before": before, "after": after}
    instead = {"panel": "frontend/views/compare.html", "title": f"Versions compared · {target.name}"}
    return tabs.show(request, actor, target, VERSIONS, about, status=200, **instead)


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def roll_back(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Preview a rollback and apply it; if the view was changed meanwhile, the preview is shown again."""
    target = tabs.locate(actor, object_id, VERSIONS)
    sent = request.POST if request.method == "POST" else request.GET
    number, since, problem = _number(sent.get("version"), 0), _number(request.POST.get("since")), ""
    if since is not None:
        try:
            history.roll_back(actor, target.address, number, since)
        except NotFound:
            raise
        except MetalakeError as refusal:
            note_failure(refusal)
            problem = refusal.message
        else:
            toasts.add(request, f"The view is as it was in version {number}.")
            return redirect(reverse("frontend:versions", args=[object_id]))
    about = about_view(actor, target) | {"number": number, "problem": problem}
    if not about.get("locked", "unreadable"):
        about |= _shown(history.preview_of_roll_back(actor, target.address, number))
    instead = {"panel": "frontend/views/roll_back.html", "title": f"Roll back · {target.name}"}
    return tabs.show(request, actor, target, VERSIONS, about, status=409 if problem else 200, **instead)


def _shown(differences: Sequence[Difference]) -> dict[str, Any]:
    return {"in_sql": in_sql(differences), "in_other_parts": in_other_parts(differences)}


def _number(text: str | None, default: Any = None) -> Any:
    """The number of a version, or the default."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else default
