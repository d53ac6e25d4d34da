"""Views: how one runs, its dialects with the forms that change them, and making a view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from authz import operations, policy
from authz.actor import Actor
from catalogs.services import browsing
from formats.native.view_definition import Representation, ViewDefinition
from formats.native.views import CreateViewRequest, ViewUpdatesRequest
from frontend import tabs, toasts
from frontend.confusables import spelled
from frontend.forms.views import DialectForm, ViewForm
from frontend.highlighting import coloured, reads_as_written
from frontend.page_decorators import is_partial, keeps_form, may_make_view, signed_in, takes_views
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.logs import note_failure
from metalake.wire import read
from views_mgmt import versions
from views_mgmt.replies import UNKNOWN
from views_mgmt.services import definer, findings, views, workbench
from views_mgmt.services.workbench import DialectCheck
from views_mgmt.stores import ViewRecord

DIALECTS = "dialects"


def about_view(actor: Actor, target: Located) -> dict[str, Any]:
    """The view as it is now, with why the actor must not change its SQL; or why it cannot be read."""
    try:
        record = views.load_view(actor, target.address)
        definition = record.definition
    except (NotFound, Forbidden):
        raise
    except MetalakeError as failure:
        note_failure(failure)
        return {"unreadable": failure.message, "last_read": versions.latest_number(target)}
    version = versions.meta_of(record.view).current_version
    only_read = views.store_of(record.view).only_read(record.view)
    locked = only_read or _reason_to_lock(actor, record, definition)
    about = {"record": record, "view": definition, "version": version}
    return about | {"locked": locked, "only_read": only_read, "unknown": definition.properties.get(UNKNOWN, "")}


def _reason_to_lock(actor: Actor, record: ViewRecord, definition: ViewDefinition) -> str:
    if not policy.permits(actor, operations.ALTER_VIEW, record.view):
        return policy.refusal(actor.name, operations.ALTER_VIEW, record.view).message
    if reason := definer.refusal(actor, record.view, definition):
        return reason.message
    return "It is a materialized view, which its engine alone changes." if record.is_materialized else ""


class Dialect(NamedTuple):
    """A dialect as it is shown, with the answer of a check if one was asked for."""

    of: Representation
    html: SafeString
    reads_as_written: bool
    check: DialectCheck | None
    finding: dict[str, Any] | None  # an engine's result, as delivered by a job
    is_unseen: bool  # whether it is hidden from the actor


@require_safe
@signed_in
def show_dialects(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Every dialect of a view with its SQL and, with `check`, what each reads and yields."""
    target = tabs.locate(actor, object_id, DIALECTS)
    about = about_view(actor, target)
    if "view" in about and "check" in request.GET:
        try:
            about["checks"] = {each.representation.key: each for each in workbench.check(actor, target.address)}
        except NotFound:
            raise
        except MetalakeError as failure:
            note_failure(failure)
            about["problem"] = failure.message
    return _show_dialects(request, actor, target, about)


def _show_dialects(
    request: HttpRequest, actor: Actor, target: Located, about: dict[str, Any], status: int = 200
) -> HttpResponse:
    if "view" in about:
        parts, checks = about["view"].representations, about.get("checks", {})
        html = coloured(each.sql for each in parts)
        about["finding"] = finding = findings.finding_about(actor, target)
        by_dialect = {each["dialect"].casefold(): _with_names(each) for each in finding.dialects} if finding else {}
        unseen = {each.casefold() for each in finding.unseen} if finding else set()
        about["dialects"] = [
            Dialect(
                each,
                one,
                reads_as_written(each.sql),
                checks.get(each.key),
                by_dialect.get(each.key),
                each.key in unseen,
            )
            for each, one in zip(parts, html, strict=True)
        ]
    return tabs.show(request, actor, target, DIALECTS, about, status=status)


def _with_names(finding: dict[str, Any]) -> dict[str, Any]:
    """With the names of what each column is made of."""
    reads = [each["name"] for each in finding["reads"]]
    columns = [
        {
            **each,
            "made_of": [
                f"{reads[one['source']]}.{one['name']}" for one in each["madeOf"] if one["source"] < len(reads)
            ],
        }
        for each in finding["columns"]
    ]
    return {**finding, "columns": columns}


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def change_dialect(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The form of one dialect, to be updated or, if the view does not have it, added."""
    target = tabs.locate(actor, object_id, DIALECTS)
    about = about_view(actor, target)
    if "unreadable" in about or (about["locked"] and request.method == "GET"):
        return _show_dialects(request, actor, target, about)
    now = about["view"].in_dialect(request.GET.get("dialect", ""))
    about |= _suggested(request, actor, target) if now is None else {}
    form = DialectForm(request, about["version"], now, about.get("draft"))
    if form.is_valid():
        kind = "updateRepresentation" if now else "addRepresentation"
        change = {"@type": kind, "representation": form.representation()}
        if _done(form, lambda: _alter(actor, target, change, form.cleaned_data["since"])):
            toasts.add(request, f"{spelled(form.cleaned_data['dialect'])} is {'updated' if now else 'added'}.")
            return _go_to(request, reverse("frontend:dialects", args=[object_id]))
    if form.errors and is_partial(request):
        return render(request, "frontend/form_answer.html", {"form": form}, status=422)
    about |= {"form": form, "now": now}
    title = f"{spelled(now.dialect) if now else 'Add a dialect'} · {target.name}"
    instead = {"panel": "frontend/views/dialect_form.html", "title": title}
    return tabs.show(request, actor, target, DIALECTS, about, status=422 if form.errors else 200, **instead)


def _suggested(request: HttpRequest, actor: Actor, target: Located) -> dict[str, Any]:
    """A draft of the dialect that is asked for, made of the one to `translate`; nothing is stored."""
    source, dialect = request.GET.get("translate"), request.GET.get("dialect", "")
    if request.method != "GET" or source is None:
        return {}
    try:
        suggestion = workbench.suggest(actor, target.address, dialect, source)
    except NotFound:
        raise
    except MetalakeError as refusal:
        note_failure(refusal)
        return {"no_draft": refusal.message}
    return {"suggestion": suggestion, "draft": suggestion.representation if suggestion.translation.sql else None}


@require_POST
@signed_in
def remove_dialect(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Remove one dialect of a view; an error is shown above the dialects."""
    target = tabs.locate(actor, object_id, DIALECTS)
    dialect = request.POST.get("dialect", "")
    try:
        _alter(actor, target, {"@type": "removeRepresentation", "dialect": dialect})
    except NotFound:
        raise
    except MetalakeError as refusal:
        note_failure(refusal)
        about = about_view(actor, target) | {"problem": refusal.message}
        return _show_dialects(request, actor, target, about, status=422)
    toasts.add(request, f"{spelled(dialect)} is removed. The versions before have it.")
    return _go_to(request, reverse("frontend:dialects", args=[object_id]))


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def make_view(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Create a view in a schema, in one dialect; its creator owns it."""
    target = browsing.locate(actor, object_id)
    if not takes_views(target):
        raise NotFound("Views are made in schemas of catalogs that have them.")
    if not may_make_view(actor, target):
        raise policy.refusal(actor.name, operations.CREATE_VIEW, target)
    at = {"default_catalog": target.catalog.name, "default_schema": target.path.logical()}
    form, only_read = ViewForm(request, at), views.store_of(target).only_read(target)
    if form.is_valid():
        address = replace(target.address, leaf=form.cleaned_data["name"], leaf_kind=Kind.VIEW)
        if made := _done(form, lambda: _create(actor, address, form.body())):
            toasts.add(request, f"View {spelled(made.view.name)} is made, and you own it.")
            return _go_to(request, reverse("frontend:object", args=[made.view.id]))
    if form.errors and is_partial(request):
        return render(request, "frontend/form_answer.html", {"form": form}, status=422)
    status = 422 if form.errors else 200
    context = {"form": form, "target": target, "only_read": only_read}
    return render(request, "frontend/views/view_form.html", context, status=status)


def _alter(actor: Actor, target: Located, change: dict[str, Any], since: int | None = None) -> ViewRecord:
    """Apply one change, in the API's format."""
    updates = read(ViewUpdatesRequest, {"updates": [change]}, kind=Kind.VIEW).updates
    return views.alter_view(actor, target.address, updates, since)


def _create(actor: Actor, address: Address, body: dict[str, Any]) -> ViewRecord:
    return views.create_view(actor, address, read(CreateViewRequest, body, kind=Kind.VIEW))


def _done(form: Form, act: Callable[[], ViewRecord]) -> ViewRecord | None:
    """Run a form's action; None on failure, with the error above the form's fields."""
    try:
        return act()
    except NotFound:
        raise
    except MetalakeError as refusal:
        note_failure(refusal)
        form.add_error(None, refusal.message)
        return None


def _go_to(request: HttpRequest, path: str) -> HttpResponse:
    return HttpResponseClientRedirect(path) if is_partial(request) else redirect(path)
