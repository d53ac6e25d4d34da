"""The tabs of a table: its columns, and its snapshots with how its schema changed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authz.actor import Actor
from catalogs.services.description import describe
from formats.iceberg.outlines import outline_versions
from formats.native.outlines import matching, rows_of
from frontend import tabs
from frontend.page_decorators import signed_in
from metalake.kinds import Kind

COLUMNS_SHOWN = 500


@require_safe
@signed_in
def show_columns(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """A page of the columns with what is nested in them, or of those with `q` in a name."""
    target = tabs.locate(actor, object_id, "columns")
    about = describe(actor, target)
    q = request.GET.get("q", "").strip()
    columns = matching(about.columns, q) if q else about.columns
    start = number(request.GET.get("after", ""))
    end = start + COLUMNS_SHOWN
    context = {
        "about": about,
        "q": q,
        "matches": len(columns),
        "rows": list(rows_of(columns[start:end])),
        "has_ids": any(column.id is not None for column in columns),
        "has_defaults": target.kind == Kind.TABLE and any(column.default for column in columns),
        "next": end if end < len(columns) else None,
    }
    return tabs.show(request, actor, target, "columns", context)


@require_safe
@signed_in
def show_snapshots(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The newest snapshots and schemas of an Iceberg table; for other tables the page says there are none."""
    target = tabs.locate(actor, object_id, "snapshots")
    about = describe(actor, target)
    versions = outline_versions(about.metadata) if about.metadata is not None else None
    return tabs.show(request, actor, target, "snapshots", {"about": about, "versions": versions})


def number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
