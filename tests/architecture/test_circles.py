"""No circle of imports: not of files, of files and folders side by side, nor of rooms.

Imports within functions count, too; what is imported for types alone does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

import grimp

from tests.architecture.rooms import PROJECT

Graph = dict[str, set[str]]
ROOMS = PROJECT["tool"]["importlinter"]["root_packages"]
# These put the rooms together, so they are above all of them though they lie in the lowest; the server includes them.
WIRING = ("urls", "settings", "wsgi")


@cache
def files() -> Graph:
    graph = grimp.build_graph(*ROOMS, exclude_type_checking_imports=True)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def folders_of(room: str) -> set[str]:
    """The folders that lie directly in a room or in a folder of it."""
    return {module.rpartition(".")[0] for module in files() if module.startswith(f"{room}.")} - {room}


def room_of(module: str) -> str:
    room, _, rest = module.partition(".")
    return "server" if room == "metalake" and rest.split(".")[0] in WIRING else room


def folded(graph: Graph, place: Mapping[str, str]) -> Graph:
    """The graph of places, from that of the modules that have one."""
    edges: Graph = {name: set() for name in place.values()}
    for module, imported in graph.items():
        if module in place:
            edges[place[module]] |= {place[other] for other in imported if other in place} - {place[module]}
    return edges


def circle_in(graph: Graph) -> list[str]:
    """One circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return list(circle.args[1])
    return []


def within(parent: str, modules: Iterable[str]) -> dict[str, str]:
    """Of each module below `parent`, the file or folder directly in it."""
    depth = parent.count(".") + 2
    inside = [module for module in modules if module.startswith(f"{parent}.")]
    return {module: ".".join(module.split(".")[:depth]) for module in inside}


def test_a_circle_is_found() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not circle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    assert len(files()) > 300


def test_no_circle_of_files() -> None:
    assert circle_in(files()) == []


def test_no_circle_side_by_side() -> None:
    parents = {parent for room in ROOMS for parent in (room, *folders_of(room))}
    circles = {parent: circle_in(folded(files(), within(parent, files()))) for parent in parents}
    assert not {parent: circle for parent, circle in circles.items() if circle}


def test_no_circle_of_rooms() -> None:
    rooms = folded(files(), {module: room_of(module) for module in files()})
    assert circle_in(rooms) == []
