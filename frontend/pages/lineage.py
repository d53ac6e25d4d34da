"""What a view reads and which views read an object, as a picture and as a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from authz.actor import Actor
from frontend import tabs
from frontend.drawing import Stop, flow
from frontend.guarding import signed_in
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
        "picture": _picture(target, reads, readers) if reads or readers else "",
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
    """What is read on the left of the object, and its readers on the right."""
    left = [_boxes(each.target for each in reads if each.level == level) for level in range(MOST_LEVELS, 0, -1)]
    right = [_boxes(each.view for each in readers if each.level == level) for level in range(1, MOST_LEVELS + 1)]
    columns = [column for column in (*left, {start.id: start}, *right) if column]
    places: dict[int, tuple[int, int]] = {}
    for number, column in enumerate(columns):
        for row, id in enumerate(column):
            places.setdefault(id, (number, row))
    pairs = {(each.target.id, each.view.id) for each in (*reads, *readers) if each.target is not None}
    lines = [(places[one], places[other]) for one, other in sorted(pairs) if one in places and other in places]
    return flow([_stops(column, start) for column in columns], [line for line in lines if line[0][0] < line[1][0]])


def _boxes(targets: Iterable[Located | None]) -> dict[int, Located]:
    known = {each.id: each for each in targets if each is not None}
    return dict(list(known.items())[:MOST_DRAWN])


def _stops(column: dict[int, Located], start: Located) -> list[Stop]:
    return [Stop(each.kind.value, each.name, "ok" if each.id == start.id else "") for each in column.values()]
