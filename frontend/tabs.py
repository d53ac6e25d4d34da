"""The tabs of an object's page: each kind declares its tabs, and each tab is a page with its own URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from authz import operations, policy
from authz.actor import Actor
from catalogs.services import browsing
from frontend import view_as
from frontend.page_decorators import is_partial, may_make_schema, may_make_table, may_make_view, permits
from frontend.sections import first_level
from metalake.errors import NotFound
from metalake.kinds import KINDS, Kind
from metalake.lineage import Located

OVERVIEW = "overview"
HISTORY = "history"  # a tab for users who may read access to the object
OF_A_NAME = (OVERVIEW, "access")  # the tabs of an object of which the actor may know only the name


@dataclass(frozen=True)
class Tab:
    """One tab of an object. Its page is the route of its name; the overview's is the object's own."""

    name: str
    object_id: int

    @property
    def label(self) -> str:
        return self.name.capitalize()

    @property
    def url(self) -> str:
        route = "object" if self.name == OVERVIEW else self.name
        return reverse(f"frontend:{route}", args=[self.object_id])


def tabs_of(actor: Actor, target: Located) -> list[Tab]:
    """The tabs that the actor may open, in the order of the kind's declaration."""
    may_load = policy.permits(actor, operations.load_of(target.kind), target)
    may_read_access = policy.permits(actor, operations.read_access(target.kind), target)

    def may_open(name: str) -> bool:
        return may_read_access if name == HISTORY else may_load or name in OF_A_NAME

    return [Tab(name, target.id) for name in KINDS[target.kind].tabs if may_open(name)]


def locate(actor: Actor, object_id: int, name: str) -> Located:
    """The object whose tab is requested. Raises NotFound if it is hidden or missing, or has no such tab."""
    target = browsing.locate(actor, object_id)
    if all(tab.name != name for tab in tabs_of(actor, target)):
        raise NotFound("There is no such object.")
    return target


def show(
    request: HttpRequest,
    actor: Actor,
    target: Located,
    name: str,
    context: dict[str, Any],
    *,
    status: int = 200,
    **instead: str,
) -> HttpResponse:
    """The object with this tab open: the part that changes if htmx asks, else the whole page with the tree.

    The tab's template is `frontend/tabs/<name>.html`; an overview's is `frontend/overviews/<kind>.html`, if there is
    one, else what every kind's shows. A page that belongs to a tab says its own `panel` and `title` instead.
    """
    overviews = [f"frontend/overviews/{target.kind}.html", "frontend/overviews/any.html"]
    context = context | {
        "target": target,
        "node": target.node,
        "above": target.nodes[:-1],
        "trail": "-".join(str(node.id) for node in target.nodes),
        "title": target.name if name == OVERVIEW else f"{name.capitalize()} · {target.name}",
        "tabs": tabs_of(actor, target),
        "shown_tab": name,
        "panel": overviews if name == OVERVIEW else f"frontend/tabs/{name}.html",
        "may_register": target.kind == Kind.METALAKE and permits(request, operations.CREATE_CATALOG, target),
        "may_make_schema": may_make_schema(actor, target),
        "may_make_view": may_make_view(actor, target),
        "may_ask_why": target.kind in operations.FAMILIES["read_access"],
        "may_make_table": may_make_table(actor, target),
        "may_grant": policy.permits(actor, operations.grant_on(target.kind), target),
        "may_change": target.kind == Kind.CATALOG and permits(request, operations.ALTER_CATALOG, target),
    }
    context |= instead
    context |= view_as.chosen(request, actor, target)
    if is_partial(request):
        return render(request, "frontend/object.html", context | {"is_partial": True}, status=status)
    level = first_level(request, actor)
    first = view_as.dimmed_metalakes(request, actor, level.children)
    unseen = {*context.get("unseen", ()), *first.get("unseen", ())}
    return render(request, "frontend/home.html", context | first | {"unseen": unseen, "level": level}, status=status)
