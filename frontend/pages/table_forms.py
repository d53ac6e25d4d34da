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
from formats.native.tables import CreateTableRequest, TableUpdatesRequest
from frontend import tabs, toasts
from frontend.confusables import spelled
from frontend.forms.column_changes import STALE, Changes, ColumnChanges
from frontend.forms.tables import ROWS, TableForm
from frontend.page_decorators import UNTYPED, keeps_form, may_make_table, signed_in
from frontend.pages.tables import number
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.logs import note_failure
from metalake.wire import read
from providers.table_shapes import TableShape

MORE = "more-"  # the button that adds rows to a part: `act=more-columns`
AT_ONCE = 100  # columns of a wide table that one page changes
MANY = f"Columns of tables with more than {AT_ONCE} are moved over the APIs."
CHANGED = ("place", "name", "type", "required", "comment", "drop")
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
    act = sent.get("act", "") if sent else ""
    more = act.removeprefix(MORE) if act.startswith(MORE) else ""
    checks = request.method == "POST" and not more
    form = TableForm(shapes[chosen], sent, more, checks=checks)
    is_wrong = False
    if checks:
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


@require_http_methods(["GET", "POST"])
@signed_in
def change_columns(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The columns of a table as rows; what changes is shown (`act=preview`) before it is made (`act=apply`)."""
    target = tabs.locate(actor, object_id, "columns")
    if target.kind != Kind.TABLE:
        raise NotFound("There is no such table.")
    policy.require(actor, operations.ALTER_TABLE, target)
    record = tables.load_table(actor, target.address)
    parts = tables.native_parts(record)
    version, shape = tables.columns_version(parts), _shape_of(target, is_iceberg=record.metadata_location is not None)
    sent = request.POST if request.method == "POST" else None
    act, since = (sent.get("act", ""), sent.get("since", "")) if sent is not None else ("", version)
    asks, start, every = act in ("preview", "apply"), number(request.GET.get("after", "")), parts["columns"]
    if len(every) > AT_ONCE:
        shape = replace(shape, lacks={**shape.lacks, "moving": MANY})
    form = ColumnChanges(every[start : start + AT_ONCE], shape, sent, more=act == MORE + "columns", checks=asks)
    context: dict[str, Any] = {"target": target, "form": form, "shape": shape, "since": since, "is_wrong": False}
    if len(every) > AT_ONCE:
        context["pages"] = [(at, at + 1, min(at + AT_ONCE, len(every))) for at in range(0, len(every), AT_ONCE)]
        context["start"] = start
    if asks:
        changes = form.changes() if since == version and form.is_valid() else None
        if since != version:
            form.errors.append(STALE)
        if changes is not None and form.is_valid():
            if act == "preview" or not changes.updates:
                echoed = [(name, value) for name, value in request.POST.items() if name not in UNTYPED]
                shown = {"changes": changes, "echoed": echoed}
                return render(request, "frontend/tables/changes.html", context | shown)
            if _alter(actor, target, form, changes, since):
                toasts.add(request, f"The columns of {spelled(target.name)} are changed.")
                return redirect("frontend:object", target.id)
        context["is_wrong"] = True
    part = {"slug": "columns", "title": "Columns", "rows": form.rows, "checks": context["is_wrong"]}
    context["part"] = part | {"labels": [(name, ROW_LABELS[name]) for name in CHANGED]}
    return render(request, "frontend/tables/columns_form.html", context, status=422 if context["is_wrong"] else 200)


def _shape_of(table: Located, *, is_iceberg: bool) -> TableShape:
    """What this table may have: a catalog of several formats says it by the table's own."""
    shapes = tables.shapes(table.above())
    named = [shape for name, shape in shapes.items() if (name == "iceberg") == is_iceberg]
    return (named or list(shapes.values()))[0]


def _alter(actor: Actor, target: Located, form: ColumnChanges, changes: Changes, since: str) -> bool:
    """Make the changes in one commit; False with the error in the form."""
    try:
        asked = read(TableUpdatesRequest, {"updates": changes.updates}, kind=Kind.TABLE)
        tables.alter_native_table(actor, target.address, asked.updates, since)
    except (Forbidden, NotFound):
        raise
    except MetalakeError as refusal:
        note_failure(refusal)
        form.refuse(refusal, changes)
        return False
    return True


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
            "slug": part,
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
    "place": "Place", "drop": "Drop", "number": "Number", "direction": "Direction", "nulls": "Empty values",
}  # fmt: skip
