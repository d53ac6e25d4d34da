"""The part of a page about an outside catalog: refreshes with their progress, and writes that wait for a decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from authz.actor import Actor
from catalogs.models import RefreshRun
from frontend.page_decorators import is_partial, signed_in
from frontend.pages.catalogs import located
from metalake.errors import Forbidden, MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import monitoring, refresh


def watched(actor: Actor, target: Located) -> dict[str, Any]:
    """The context of the part about an outside catalog."""
    seen = monitoring.watch(actor, target)
    context: dict[str, Any] = {"target": target, "watch": seen}
    if seen.run and seen.is_running:
        context["rate"], context["eta"] = refresh.speed(seen.run)
    return context


@require_safe
@signed_in
def outside(request: HttpRequest, actor: Actor, catalog_id: int) -> HttpResponse:
    """The part by itself, as of now; with a message if the run that the page was watching has ended."""
    target = located(actor, catalog_id, Kind.CATALOG)
    context = watched(actor, target)
    if not is_partial(request):
        return redirect("frontend:object", catalog_id)
    run = context["watch"].run
    if run and str(run.pk) == request.GET.get("run") and not context["watch"].is_running:
        context["message"] = _summary_of(run)
    return render(request, "frontend/outside.html", context)


def _button(act: Callable[..., str]) -> Callable[..., HttpResponse]:
    """A page that does the act and then shows the part anew, with a message of success or refusal."""

    @require_POST
    @signed_in
    @wraps(act)
    def pressed(request: HttpRequest, actor: Actor, catalog_id: int, **which: int) -> HttpResponse:
        target, status = located(actor, catalog_id, Kind.CATALOG), 200
        try:
            message = act(request, actor, target, **which)
        except Forbidden:
            raise
        except MetalakeError as refusal:
            message, status = refusal.message, 422
        if not is_partial(request):
            return redirect("frontend:object", target.id)
        context = watched(actor, target) | {"message": message, "takes_focus": True}
        return render(request, "frontend/outside.html", context, status=status)

    return pressed


@_button
def start(request: HttpRequest, actor: Actor, target: Located) -> str:
    accepts = request.POST.get("accept_drops") == "yes"
    run = refresh.start(actor, target.metalake.name, target.catalog.name, accept_drops=accepts)
    run.refresh_from_db()  # the run of a small catalog may already have ended
    return "The refresh begins." if run.state == RefreshRun.State.RUNNING else _summary_of(run)


@_button
def stop(request: HttpRequest, actor: Actor, target: Located, run_id: int) -> str:
    refresh.cancel(actor, target.metalake.name, target.catalog.name, str(run_id))
    return "The refresh is stopped. What it compared so far stays."


@_button
def retry(request: HttpRequest, actor: Actor, target: Located, intent_id: int) -> str:
    monitoring.retry(actor, target, intent_id)
    return "The write is tried again within 15 seconds."


@_button
def give_up(request: HttpRequest, actor: Actor, target: Located, intent_id: int) -> str:
    monitoring.give_up(actor, target, intent_id)
    return "The write is given up, and its names are free."


def _summary_of(run: RefreshRun) -> str:
    if run.state == RefreshRun.State.FAILED:
        return f"The refresh did not finish. {run.error}"
    missing = f" {run.held_back:,} that are missing were kept." if run.held_back else ""
    figures = f"{run.seen:,} seen, {run.created:,} new, {run.changed:,} changed, {run.dropped:,} gone"
    return f"The refresh is done: {figures}.{missing}"
