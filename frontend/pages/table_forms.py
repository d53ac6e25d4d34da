"""The pages that make a table in a schema, of whatever its catalog offers, and alter its columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from authz import operations, policy
from authz.actor import Actor
from catalogs.services import browsing, tables
from formats.native.tables import CreateTableRequest
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.tables import ROWS, TableForm
from frontend.page_decorators import keeps_form, may_make_table, signed_in
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.logs import note_failure
from metalake.wire import read
from providers.table_shapes import TableShape

MORE = "more-"  # the button that adds rows to a part: `act=more-columns`
TITLES = {"columns": "Columns", "partitioning": "Partitions", "sorting": "Sort order"}


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def make_table(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """A new table in a schema, in the format of the query if its catalog has several; its creator owns it."""
    target = browsing.locate(actor, object_id)
    shapes = tables.shapes(target)
    if not shapes:
        raise NotFound("Tables are made in schemas of catalogs that have them.")
    if not may_make_table(actor, target):
        raise policy.refusal(actor.name, operations.CREATE_TABLE, target)
    chosen = request.GET.get("format", "")
    chosen = chosen if chosen in shapes else next(iter(shapes))
    sent = request.POST if request.method == "POST" else None
    if sent is None and "name" in request.GET:
        sent = request.GET  # the input from before signing in again
    act = (sent or {}).get("act", "")
    more = act.removeprefix(MORE) if act.startswith(MORE) else ""
    form = TableForm(shapes[chosen], sent, more)
    is_wrong = False
    if request.method == "POST" and not more:
        made = _create(actor, target, form) if form.is_valid() else None
        if made is not None:
            toasts.add(request, f"Table {spelled(made.name)} is made, and you own it.")
            return redirect("frontend:object", made.id)
        is_wrong = True
    context: dict[str, Any] = {
        "target": target, "form": form, "shape": shapes[chosen], "shapes": shapes, "chosen": chosen,
        "parts": parts_of(form, shapes[chosen], is_wrong), "is_wrong": is_wrong,
    }  # fmt: skip
    return render(request, "frontend/tables/table_form.html", context, status=422 if is_wrong else 200)


def _create(actor: Actor, target: Located, form: TableForm) -> Located | None:
    """The table as it was made; None with the error in the form."""
    try:
        asked = read(CreateTableRequest, form.body(), kind=Kind.TABLE)
        address = replace(target.address, leaf=asked.name, leaf_kind=Kind.TABLE)
        return tables.create_native_table(actor, address, asked).published
    except (Forbidden, NotFound):
        raise
    except MetalakeError as refusal:
        note_failure(refusal)
        form.refuse(refusal)
        return None


def parts_of(form: TableForm, shape: TableShape, checks: bool) -> list[dict[str, Any]]:
    """Each part of the form for the template; its rows with their errors only if they were checked."""
    return [
        {
            "name": part,
            "title": TITLES[part],
            "rows": form.parts.get(part),
            "labels": [(name, ROW_LABELS[name]) for name in ROWS[part].base_fields],
            "lacks": shape.lacks.get(part, ""),
            "checks": checks,
        }
        for part in TITLES
        if part in form.parts or part in shape.lacks
    ]


ROW_LABELS = {
    "name": "Name", "type": "Type", "required": "Required", "comment": "Comment", "column": "Column", "how": "By",
    "number": "Number", "direction": "Direction", "nulls": "Empty values",
}  # fmt: skip
