"""The tree of objects, and the overview of one with what lies directly in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access.explain import reach
from authz import operations, policy
from authz.actor import Actor
from catalogs.services import browsing
from catalogs.services.description import describe
from formats.iceberg.outlines import contents_of
from frontend import needs, tabs, view_as
from frontend.page_decorators import is_partial, signed_in
from frontend.pages import object_changes, undo, views
from frontend.pages.outside import watched
from frontend.sections import first_level
from metalake.errors import MetalakeError, NotFound
from metalake.kinds import CONTAINERS, Kind
from metalake.lineage import Located
from metalake.logs import note_failure
from metalake.rest.exceptions import shape_of
from outside import monitoring

Row = tuple[browsing.Child, monitoring.Condition | None]


@require_safe
@signed_in
def home(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The first page: what needs somebody, with the tree."""
    first = first_level(request, actor)
    level = browsing.top_level(actor, _after(request)) if _after(request) else first
    tops = [Located(nodes=(child.node,)) for child in first.children if child.enabled]
    context: dict[str, Any] = {"level": level, "may_create": actor.service_admin}
    context |= {"needs": needs.needs_of(actor, tops), "fresh": needs.new_objects(actor, tops)}
    context |= view_as.dimmed_metalakes(request, actor, level.children)
    return render(request, "frontend/welcome.html" if is_partial(request) else "frontend/home.html", context)


@require_safe
@signed_in
def show_object(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """The overview of one object; a container's with a page of what lies directly in it."""
    target = tabs.locate(actor, object_id, tabs.OVERVIEW)
    about = describe(actor, target)
    context: dict[str, Any] = {"about": about, "standing": reach.standing(actor, target)}
    context |= object_changes.editing(actor, target, about) | {"lately": undo.lately(actor, target)}
    if target.kind == Kind.VIEW and not about.is_path:
        context |= views.about_view(actor, target)
    if target.kind == Kind.TABLE and not about.is_path:
        context["contents"] = contents_of(about.metadata or {})
        context["may_alter"] = bool(about.columns) and policy.permits(actor, operations.ALTER_TABLE, target)
    if target.kind in CONTAINERS and not target.disabled and not about.notice:
        context |= _below(request, actor, target)
    if monitoring.may_watch(actor, target):  # after the external system was queried for the children
        context |= watched(actor, target)
    return tabs.show(request, actor, target, tabs.OVERVIEW, context)


def _below(request: HttpRequest, actor: Actor, target: Located) -> dict[str, Any]:
    """A page of the objects directly below, or the reason why they cannot be listed now."""
    try:
        level = browsing.level_below(actor, target, request.GET.get("kind"), _after(request))
    except NotFound:
        raise
    except MetalakeError as failure:
        note_failure(failure)
        return {"unlisted": failure.message}
    goes_on = "after" in request.GET
    context = {"below": level, "goes_on": goes_on} | view_as.dimmed(request, actor, target, level.children)
    conditions = {}
    if target.kind == Kind.METALAKE:
        conditions = monitoring.conditions(actor, target, [child.node for child in level.children])
        context["has_conditions"] = bool(conditions)
    rows = [(child, conditions.get(child.id)) for child in level.children]
    if conditions and not goes_on and level.next is None:  # a part of the list in another order would mislead
        sorting = Sorting(request.GET.get("order", ""))
        context["sorting"], rows = sorting, sorting.of(rows)
    return context | {"rows": rows}


@dataclass(frozen=True)
class Sorting:
    """The order of the catalogs in a list: a column's name, with `-` before it from the last to the first."""

    order: str

    @property
    def columns(self) -> dict[str, tuple[str, str]]:
        """Each column that sorts, with the order that a click on it asks for, and how it is sorted now (ARIA)."""
        now = {self.order: "ascending", f"-{self.order.removeprefix('-')}": "descending"}
        return {
            name: (f"-{name}" if self.order == name else name, now.get(name) or now.get(f"-{name}", "none"))
            for name in _KEYS
        }

    def of(self, rows: list[Row]) -> list[Row]:
        """The rows in this order; what is no catalog comes last."""
        key = _KEYS.get(self.order.removeprefix("-"))
        if key is None:
            return rows
        catalogs = [row for row in rows if row[1] is not None]
        rest = [row for row in rows if row[1] is None]
        return sorted(catalogs, key=lambda row: key(*row), reverse=self.order.startswith("-")) + rest


_KEYS: dict[str, Callable[[Any, Any], Any]] = {
    "name": lambda child, condition: child.name.casefold(),
    "provider": lambda child, condition: (condition.provider, child.name.casefold()),
    "health": lambda child, condition: (condition.rank, child.name.casefold()),
    "owner": lambda child, condition: (child.owner.casefold(), child.name.casefold()),
}


@require_safe
@signed_in
def list_metalakes(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The first level of the tree: the next metalakes, or the `only` one asked for."""
    only = _only(request)
    level = browsing.child_alone(actor, None, only) if only else browsing.top_level(actor, _after(request))
    context: dict[str, Any] = {"level": level, "depth": 1, "goes_on": "after" in request.GET}
    context |= view_as.dimmed_metalakes(request, actor, level.children)
    return render(request, "frontend/level.html", context)


@require_safe
@signed_in
def list_children(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """One level of the tree, its next objects, or the `only` one asked for."""
    parent = browsing.locate(actor, object_id)
    context: dict[str, Any] = {"parent": parent, "depth": len(parent.nodes) + 1, "goes_on": "after" in request.GET}
    only, status = _only(request), 200
    try:
        if only:
            level = browsing.child_alone(actor, parent, only)
        else:
            level = browsing.level_below(actor, parent, request.GET.get("kind"), _after(request))
        context |= {"level": level} | view_as.dimmed(request, actor, parent, level.children)
    except NotFound:
        raise
    except MetalakeError as failure:
        note_failure(failure)
        context["message"], status = failure.message, shape_of(failure)[0]
    return render(request, "frontend/level.html", context, status=status)


def _after(request: HttpRequest) -> str | None:
    return request.GET.get("after", "").replace("\x00", "") or None


def _only(request: HttpRequest) -> int | None:
    id = request.GET.get("only", "")
    return int(id) if id.isascii() and id.isdigit() and len(id) < 20 else None
