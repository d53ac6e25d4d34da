"""The audit of a metalake: who did what and what was refused, the proof of the history, and the same as files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access.explain import audit_search
from access.explain.audit_search import CHANGES, Entry, Wanted
from access.explain.permissions import open_on, reads_access
from access.usage.refusals import refusals_on
from access.wire.audit import entry_reply
from authz import facts
from authz.actor import Actor
from authz.usage_counter import is_recorded
from frontend.csv_files import download
from frontend.forms.audit import AuditForm
from frontend.page_decorators import is_partial, signed_in
from frontend.pages.catalogs import located
from metalake.errors import Forbidden, Invalid, NotFound
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.rest.exceptions import shape_of
from metalake.rest.ndjson import lines_of
from metalake.wire import written

PAGE = 50
HEADER = ("id", "at", "user", "outcome", "event", "type", "name", "what")
CUT = "earlier entries are left out: choose an earlier end"


class Row(NamedTuple):
    """An entry, with the queries that follow its person and its object."""

    entry: Entry
    person_query: str
    object_query: str


@require_safe
@signed_in
def show_audit(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """One page of the entries that the query asks for, before the entry `before`."""
    target = located(actor, metalake_id, Kind.METALAKE)
    form = AuditForm(request.GET)
    whole = audit_search.reads_all(actor, target)
    context: dict[str, Any] = {"target": target, "form": form, "query": form.query(), "reads_all": whole}
    status = 200
    if form.is_valid():
        try:
            context |= _page(actor, target, form, request.GET.get("before", ""))
        except (Forbidden, Invalid, NotFound) as refusal:
            form.add_error("on" if form.cleaned_data.get("on") else None, refusal.message)
            status, _, _ = shape_of(refusal)
    else:
        status = 422
    if is_partial(request) and request.htmx.target == "entries":  # type: ignore[attr-defined]
        return render(request, "frontend/audit/entries.html", context | {"is_alone": True}, status=status)
    if whole:
        context |= {"proof": facts.proof(), "begins": audit_search.begins(target)}
    context |= {"is_recorded": is_recorded(), "use_days": settings.METALAKE_USE_DAYS}
    return render(request, "frontend/audit/page.html", context, status=status)


@require_safe
@signed_in
def download_csv(request: HttpRequest, actor: Actor, metalake_id: int) -> Any:
    """The entries of the same query as a file, up to a bound that the last line names. Raises as the search does."""
    target, batches = _every(request, actor, metalake_id)
    return download(f"audit-{target.name}", HEADER, (row for batch in batches for row in _cells(batch)))


@require_safe
@signed_in
def download_lines(request: HttpRequest, actor: Actor, metalake_id: int) -> Any:
    """The same as lines of JSON, in the form of the API."""
    target, batches = _every(request, actor, metalake_id)
    lines = (
        [{"cutAt": written(batch)}] if isinstance(batch, datetime) else map(entry_reply, batch) for batch in batches
    )
    response = lines_of({"metalake": target.name}, lines)
    response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    return response


def _every(request: HttpRequest, actor: Actor, metalake_id: int) -> tuple[Located, Iterator[list[Entry] | datetime]]:
    target = located(actor, metalake_id, Kind.METALAKE)
    form = AuditForm(request.GET)
    if not form.is_valid():
        raise Invalid(" ".join(f"{name}: {error}" for name, errors in form.errors.items() for error in errors))
    return target, audit_search.every_entry(actor, target, _wanted(actor, target, form))


def _wanted(actor: Actor, target: Located, form: AuditForm) -> Wanted:
    asked = form.cleaned_data
    on = open_on(actor, target.name, asked["on"])[1] if asked["on"] else None
    return Wanted(asked["user"], on, asked["event"], asked["outcome"], *form.times)


def _page(actor: Actor, target: Located, form: AuditForm, given: str) -> dict[str, Any]:
    before = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else None
    wanted = _wanted(actor, target, form)
    page = audit_search.search(actor, target, wanted, before, PAGE)
    context: dict[str, Any] = {
        "page": page,
        "rows": [_row(actor, form, entry) for entry in page.entries],
        "goes_on": before is not None,
        "next_query": page.next and form.query(before=str(page.next)),
        "on": wanted.on,
    }
    if wanted.on and wanted.outcome != CHANGES and not wanted.event and before is None and is_recorded():
        context["refusals"] = refusals_on(actor, wanted.on, wanted.user, wanted.since, wanted.until)
    return context


def _row(actor: Actor, form: AuditForm, entry: Entry) -> Row:
    on = entry.on
    followed = on is not None and reads_access(actor, on)
    path = f"{on.kind} {dotted(on.full_name)}" if on is not None and followed else ""
    return Row(entry, form.query(user=entry.actor), path and form.query(on=path))


def _cells(batch: list[Entry] | datetime) -> Iterator[tuple[Any, ...]]:
    if isinstance(batch, datetime):
        yield "", written(batch), "", "", "", "", "", CUT
        return
    for one in batch:
        outcome = "refusal" if one.is_refusal else "change"
        yield one.id, written(one.at), one.actor, outcome, one.event, one.kind, one.name, one.says
