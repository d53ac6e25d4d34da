"""The last access review's findings on a metalake's grants: unused, redundant, shadowed; a plan revokes each."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from access.usage import reports
from access.usage.reports import Shown
from authz.actor import Actor
from authz.models import AccessReview
from frontend.page_decorators import signed_in
from frontend.pages.catalogs import located
from metalake.full_names import dotted
from metalake.kinds import Kind

ON_A_PAGE = 100


class Row(NamedTuple):
    """A grant with its names, and the page that revokes it."""

    shown: Shown
    on: str
    by: str
    revoke_url: str


@require_safe
@signed_in
def show_reviewed(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The findings of the last review, from the one after `after` on."""
    target = located(actor, metalake_id, Kind.METALAKE)
    last = reports.report_on(actor, target, AccessReview)
    context: dict[str, Any] = {"target": target, "review": last}
    if last is not None:
        given = request.GET.get("after", "")
        begin = int(given) if given.isascii() and given.isdigit() and len(given) < 7 else 0
        end = begin + ON_A_PAGE
        context["rows"] = [_row(shown) for shown in reports.findings_in(last, begin, end)]
        context["next"] = end if end < len(last.findings) else None
        context["begin"] = begin
    return render(request, "frontend/jobs/reviewed.html", context)


def _row(shown: Shown) -> Row:
    finding = shown.finding
    asked = urlencode({"role": shown.role, "privilege": finding.privilege, "effect": finding.effect})
    url = f"{reverse('frontend:revoke-grant', args=[shown.on.id])}?{asked}"
    by = dotted(shown.by.full_name) if shown.by else "something that is gone"
    return Row(shown, dotted(shown.on.full_name), by, url)
