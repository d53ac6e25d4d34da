"""The tree of objects, and one object with its grants."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from authz import operations
from authz.access import inspect
from authz.actor import Actor
from catalogs.services import browsing
from frontend.guarding import is_partial, permits, signed_in
from frontend.pages.outside import watched
from metalake.kinds import KINDS, Kind
from outside import watching


@require_safe
@signed_in
def home(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The first page, with the tree."""
    level = browsing.top_level(actor)
    trail = [level.children[0].id] if len(level.children) == 1 else []
    context = {"level": level, "trail": trail, "may_create": actor.service_admin}
    return render(request, "frontend/welcome.html" if is_partial(request) else "frontend/home.html", context)


@require_safe
@signed_in
def show_object(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """One object beside the tree: what it is, and every grant that reaches it."""
    target = browsing.locate(actor, object_id)
    context = {
        "target": target,
        "node": target.nodes[-1],
        "above": target.nodes[:-1],
        "about": browsing.describe(actor, target),
        "sections": [f"frontend/sections/{name}.html" for name in KINDS[target.kind].sections],
        "seen": inspect.grants_on(actor, target),
        "standing": inspect.standing(actor, target),
        "may_register": target.kind == Kind.METALAKE and permits(request, operations.CREATE_CATALOG, target),
        "may_grant": permits(request, operations.grant_on(target.kind), target),
        "may_change": target.kind == Kind.CATALOG and permits(request, operations.ALTER_CATALOG, target),
    }
    if watching.may_watch(actor, target):
        context |= watched(actor, target)
    if is_partial(request):
        return render(request, "frontend/object.html", context | {"is_partial": True})
    context |= {"level": browsing.top_level(actor), "trail": [node.id for node in target.nodes], "chosen": target.id}
    return render(request, "frontend/home.html", context)


@require_safe
@signed_in
def list_metalakes(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The next metalakes on the first level of the tree."""
    return _render_level(request, browsing.top_level(actor, _after(request)))


@require_safe
@signed_in
def list_children(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """One level of the tree, or its next objects."""
    parent = browsing.locate(actor, object_id)
    level = browsing.level_below(actor, parent, request.GET.get("kind"), _after(request))
    return _render_level(request, level, parent=parent)


def _after(request: HttpRequest) -> str | None:
    return request.GET.get("after", "").replace("\x00", "") or None


def _render_level(request: HttpRequest, level: browsing.Level, **context: Any) -> HttpResponse:
    """Render a level; `trail` are the ids on the path to the object that is shown, which open by themselves."""
    ids = request.GET.get("trail", "").split("-")
    trail = [int(id) for id in ids if id.isascii() and id.isdigit() and len(id) < 20]
    context |= {"level": level, "trail": trail, "chosen": trail[-1] if trail else None}
    return render(request, "frontend/level.html", context | {"goes_on": "after" in request.GET})
