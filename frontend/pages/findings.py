"""Job findings on a metalake: broken views, and dormant objects and people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access.usage import reports
from authz import operations
from authz.actor import Actor
from authz.models import Dormancy
from frontend.page_decorators import permits, signed_in
from frontend.pages.catalogs import located
from frontend.pages.jobs import SORTS
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from views_mgmt.services import findings

VIEWS, OBJECTS, PEOPLE = "views", "objects", "people"
LABELS = {VIEWS: "Broken views", OBJECTS: "Dormant objects", PEOPLE: "Dormant people"}
SIZE = 100  # lines of a page
LONGEST = 9  # digits of a place


@require_safe
@signed_in
def show_findings(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """What jobs say of a metalake (`of`); what is dormant, for whoever may read everybody's access."""
    target = located(actor, metalake_id, Kind.METALAKE)
    of, begin = request.GET.get("of", VIEWS), request.GET.get("after", "0")
    if of not in LABELS or not (begin.isascii() and begin.isdigit() and len(begin) <= 2 * LONGEST):
        raise NotFound("There is no such list.")
    labels = LABELS if permits(request, operations.READ_ACCESS_TO_METALAKE, target) else {VIEWS: LABELS[VIEWS]}
    about = _broken(actor, target, int(begin)) if of == VIEWS else _dormant(actor, target, of, int(begin))
    context = {"target": target, "of": of, "labels": labels, "sorts": SORTS, "label": LABELS[of], **about}
    return render(request, "frontend/jobs/findings.html", context)


def _broken(actor: Actor, target: Located, after: int) -> dict[str, Any]:
    rows = list(islice(findings.broken_views(actor, target.name, after), SIZE + 1))
    return {"rows": rows[:SIZE], "next": rows[SIZE - 1].view.id if len(rows) > SIZE else None}


def _dormant(actor: Actor, target: Located, of: str, begin: int) -> dict[str, Any]:
    report = reports.report_on(actor, target, Dormancy)
    if report is None:
        return {"report": None, "rows": []}
    end = begin + SIZE
    rows: Sequence[object]
    if of == OBJECTS:
        rows, count, there = reports.objects_in(report, begin, end), report.object_count, report.objects_unused
    else:
        rows, count, there = reports.people_in(report, begin, end), report.people_count, report.people_unused
    more = {"next": end if len(there) > end else None, "is_cut": count > len(there)}
    return {"report": report, "rows": rows, "count": count, **more}
