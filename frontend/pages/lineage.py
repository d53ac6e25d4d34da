"""What a view reads and which views read an object, as a picture and as a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from authz.actor import Actor
from frontend import tabs
from frontend.graph_layout import layered
from frontend.page_decorators import signed_in
from frontend.svg import Stop, flow
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Located
from views_mgmt.services import lineage
from views_mgmt.services.lineage import Link

TAB = "lineage"
MOST_DRAWN = 8  # objects of one level
MOST_LEVELS = 3  # on either side
MOST_LISTED = 200


class Line(NamedTuple):
    """An object of the list: None with the `name` that the SQL has for what may not be loaded."""

    target: Located | None
    name: str
    level: int
    via: str
    dialects: str
    columns: tuple[tuple[str, str], ...]


@require_safe
@signed_in
def show_lineage(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """What the object reads, if it is a view, and which views read it; both level by level."""
    target = tabs.locate(actor, object_id, TAB)
    reads = lineage.read_by(actor, target.address) if target.kind is Kind.VIEW else []
    readers = lineage.readers_of(actor, target.address)
    context = {
        "is_view": target.kind is Kind.VIEW,
        "reads": [_line(each, each.target, each.view) for each in reads[:MOST_LISTED]],
        "readers": [_line(each, each.view, each.target) for each in readers[:MOST_LISTED]],
        "is_cut": max(len(reads), len(readers)) > MOST_LISTED,
        "picture": _picture(target, reads, readers),
    }
    return tabs.show(request, actor, target, TAB, context)


def _line(link: Link, target: Located | None, via: Located | None) -> Line:
    name = ".".join(target.full_name) if target else _spelling(link)
    between = ".".join(via.full_name) if via and link.level > 1 else ""
    return Line(target, name, link.level, between, ", ".join(link.dialects), link.columns)


def _spelling(link: Link) -> str:
    catalog, schema, name = link.names
    return ".".join(part for part in (catalog, HierarchicalSchema.from_physical(schema).logical(), name) if part)


def _picture(start: Located, reads: Sequence[Link], readers: Sequence[Link]) -> SafeString:
    """Draws what the object reads on its left, and its readers on the right."""
    near = {start.id: start} | _near(reads, lambda link: link.target) | _near(readers, lambda link: link.view)
    layers = layered(start.id, _pairs(reads, near), _pairs(readers, near))
    columns = [
        [_stop(near[slot], start) if isinstance(slot, int) else None for slot in column] for column in layers.columns
    ]
    return flow(columns, layers.lines) if layers.lines else SafeString("")


def _near(links: Sequence[Link], leads_to: Callable[[Link], Located | None]) -> dict[int, Located]:
    """The objects that are drawn on one side: a few of each level, and few levels."""
    drawn: dict[int, Located] = {}
    for level in range(1, MOST_LEVELS + 1):
        here = {each.id: each for each in map(leads_to, (link for link in links if link.level == level)) if each}
        drawn |= dict(islice(((id, each) for id, each in here.items() if id not in drawn), MOST_DRAWN))
    return drawn


def _pairs(links: Sequence[Link], near: Mapping[int, Located]) -> list[tuple[int, int]]:
    pairs = [(link.target.id, link.view.id) for link in links if link.target is not None]
    return [pair for pair in pairs if pair[0] in near and pair[1] in near]


def _stop(target: Located, start: Located) -> Stop:
    return Stop(target.kind.value, target.name, "ok" if target.id == start.id else "")
