"""Grants as a file: what a pasted or uploaded one would change, applied as it was shown, and the present state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.forms import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from access.plans import blast_radius, plan, plan_file
from access.plans.desired import Change, Wanted
from access.plans.export import export
from authz import operations
from authz.actor import Actor
from frontend import plan_forms, toasts
from frontend.csv_files import attachment
from frontend.forms.matrix import read_place
from frontend.page_decorators import keeps_form, require, signed_in
from frontend.pages.catalogs import located
from metalake.errors import Invalid, MetalakeError, TooLarge
from metalake.kinds import Kind
from metalake.lineage import Located

EMPTY = "Choose a file, or paste one."
BUDGET = 10 * blast_radius.PREVIEW  # about 2 s
MEGABYTE = 1024 * 1024


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def plan_grants(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The form of a file of grants with what it would change; `act` is preview, drift or apply."""
    target = located(actor, metalake_id, Kind.METALAKE)
    require(request, operations.LOAD_METALAKE, target)
    sent = request.POST if request.method == "POST" else request.GET
    act, text = sent.get("act", ""), sent.get("text", "").replace("\r\n", "\n")
    limit = settings.METALAKE_MAX_PLAN_BODY // MEGABYTE
    context: dict[str, Any] = {
        "target": target,
        "text": text,
        "limit": limit,
        "is_drift": act == "drift",
        "status": 200,
    }
    if request.method == "POST":
        try:
            context["text"] = text = _uploaded(request.FILES.get("file")) or text
            if not text.strip():
                raise Invalid(EMPTY)
            token = sent.get("token", "") if act == "apply" else ""
            form = plan_forms.answer(
                actor,
                target.metalake.name,
                text,
                lambda: _changes(actor, target, text),
                token,
                sent.get("shown", ""),
                BUDGET,
            )
        except Invalid as refusal:
            context |= {"refusal": refusal.message, "status": 422}
        else:
            if form.applied:
                done = f"The file is applied: {len(form.applied.changes):,} changes."
                toasts.add_applied(request, done, target.id, form.applied.token, request.path)
                return redirect(request.path)
            context |= {"plan": form, "planned": form.planned, "before": form.before, "moved": form.moved}
            context |= {"refusal": form.refusal, "status": form.status}
    return render(request, "frontend/plan/page.html", context, status=context["status"])


@require_safe
@signed_in
def download_grants(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The present grants as a file: of the metalake, or of one object and all below it (`on`)."""
    target = located(actor, metalake_id, Kind.METALAKE)
    on = request.GET.get("on", "").replace("\x00", "").strip()
    try:
        place = read_place(on) if on else None
        state = export(actor, target.metalake.name, place)
    except ValidationError as wrong:
        return _refused(request, target, on, " ".join(wrong.messages), 422)
    except MetalakeError as refusal:
        return _refused(request, target, on, refusal.message, plan_forms.status_of(refusal))
    response = HttpResponse(plan_file.as_yaml(state), content_type=f"{plan_file.YAML}; charset=utf-8")
    response["Content-Disposition"] = attachment(f"grants-{target.name}", "yaml")
    return response


def _refused(request: HttpRequest, target: Located, on: str, sentence: str, status: int) -> HttpResponse:
    context = {"target": target, "on": on, "on_error": sentence} | _limits()
    return render(request, "frontend/plan/page.html", context, status=status)


def _limits() -> dict[str, int]:
    return {"most": settings.METALAKE_MAX_PLAN_BODY, "limit": settings.METALAKE_MAX_PLAN_BODY // MEGABYTE}


def _uploaded(file: UploadedFile | None) -> str:
    """The text of a file that was chosen. Raises Invalid if it is none, TooLarge."""
    if not file:
        return ""
    if (file.size or 0) > settings.METALAKE_MAX_PLAN_BODY:
        size = (file.size or 0) / MEGABYTE
        raise TooLarge(f"The file has {size:.1f} MB; up to {settings.METALAKE_MAX_PLAN_BODY // MEGABYTE} are read.")
    return plan_file.text_of(file.read())


def _changes(actor: Actor, target: Located, text: str) -> Sequence[Change]:
    """What the file would change, whether it has a state or changes. Raises what planning raises."""
    media_type = plan_file.JSON if text.lstrip().startswith(("{", "[")) else plan_file.YAML
    wanted: Wanted | list[Change] = plan_file.read_file(text.encode(errors="surrogatepass"), media_type)
    return plan.changes_to(actor, target.metalake.name, wanted) if isinstance(wanted, Wanted) else wanted
