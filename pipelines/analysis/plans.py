"""Extracts the sources and the column lineage from an analysed Spark plan.

Spark's JSON of a plan is a pre-order list of nodes; expressions in their fields are such lists too. A column keeps its
id throughout the plan. A view that the SQL reads is one source, whatever is behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipelines.analysis.results import Json, Source

LISTED = ("projectList", "aggregateExpressions")  # fields with a node's output as expressions
OUTPUT = ("output", "dataCols")
MOST_MADE_OF = 1000
SEPARATOR = ", "


class Node:
    """One node of a plan or an expression."""

    def __init__(self, fields: Json, children: Sequence[Node]) -> None:
        self.fields, self.children = fields, children
        self.kind = str(fields.get("class", "")).rpartition(".")[2]

    @cached_property
    def inside(self) -> list[Node]:
        """The expression trees in its fields."""
        return [tree for name, value in self.fields.items() if name != "class" for tree in _trees(value)]

    def all(self) -> Iterator[Node]:
        """The node and its descendants, including those in fields."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [*node.children, *node.inside]

    @property
    def id(self) -> int | None:
        identity = self.fields.get("exprId")
        return identity["id"] if isinstance(identity, dict) else None


def tree_of(nodes: Sequence[Json]) -> Node:
    """Parse a pre-order list of nodes."""
    node, _ = _read(nodes, 0)
    return node


def _read(nodes: Sequence[Json], at: int) -> tuple[Node, int]:
    fields, children, following = nodes[at], list[Node](), at + 1
    for _ in range(fields.get("num-children", 0)):
        child, following = _read(nodes, following)
        children.append(child)
    return Node(fields, children), following


def _trees(value: Any) -> Iterator[Node]:
    if isinstance(value, list) and value:
        if all(isinstance(each, dict) and "num-children" in each for each in value):
            yield tree_of(value)
        else:
            for each in value:
                yield from _trees(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _trees(each)


@dataclass(frozen=True)
class Home:
    """The context for resolving names: `place`, the default catalog and schema levels, and all catalogs and views.

    `quoted` are the backquoted names in the SQL.
    """

    place: tuple[str, ...]
    catalogs: Collection[str]
    views: Collection[Source]
    quoted: Collection[str] = ()

    def parts_of(self, qualifier: str) -> list[str]:
        """Split a qualifier, which Spark joins by ", ", even if its names contain that separator."""
        parts = qualifier.split(SEPARATOR)
        for name in {*self.quoted, *self.place}:
            inner = name.split(SEPARATOR)
            for at in range(len(parts) - len(inner), -1, -1) if len(inner) > 1 else ():
                if parts[at : at + len(inner)] == inner:
                    parts[at : at + len(inner)] = [name]
        return parts

    def completed(self, parts: Sequence[str]) -> Source:
        """The fully qualified source of a name; its first part is a catalog if one of that name exists."""
        if len(parts) == 1:
            parts = [*self.place, *parts]
        elif parts[0] not in self.catalogs:
            parts = [self.place[0], *parts]
        return Source(parts[0], tuple(parts[1:-1]), parts[-1])


class Lineage:
    """The sources of a plan, in traversal order, and its column lineage."""

    def __init__(self, plan: Node, home: Home) -> None:
        self._home = home
        self.sources: list[Source] = []
        self._definitions: dict[int, Node] = {}
        self._made_of: dict[int, set[int]] = {}  # a column's id, and those of its inputs
        self._origins: dict[int, tuple[int, str]] = {}  # ids of source columns
        self._plan = plan
        self._walk(plan)

    @cached_property
    def columns(self) -> list[tuple[tuple[int, str], ...]]:
        """The source columns of each output column: indexes into `sources`, and names."""
        return [self._origins_of(id) for id, _ in self._output(self._plan)]

    def _walk(self, node: Node) -> None:
        if node.kind == "SubqueryAlias" and (source := self._source(node)):
            self._meet(source, node)
            return
        if node.kind == "CTERelationDef":
            self._definitions[node.fields["id"]] = node
        for child in [*node.children, *node.inside]:
            self._walk(child)
        if node.kind == "Alias" and node.id is not None:
            self._note(node.id, [each.id for each in node.all() if each.kind == "AttributeReference"])
        elif node.kind == "CTERelationRef":
            definition = self._definitions.get(node.fields.get("cteId", -1))
            self._pair(node, definition.children if definition else ())
        elif node.kind in ("Union", "Intersect", "Except"):
            self._pair(node.children[0], node.children[1:])
        elif node.kind == "Generate":
            made = [tree.id for tree in _trees(node.fields.get("generatorOutput"))]
            of = [each.id for tree in _trees(node.fields.get("generator")) for each in tree.all()]
            for id in made:
                self._note(id, of)

    def _source(self, node: Node) -> Source | None:
        """The source behind an alias; None for the alias of a subquery.

        Tables have their full name, Iceberg views only the one written in the SQL.
        """
        identifier = node.fields.get("identifier") or {}
        qualifier, name = str(identifier.get("qualifier") or ""), str(identifier.get("name"))
        if qualifier.startswith("[") and qualifier != "[]":
            return self._home.completed([*self._home.parts_of(qualifier[1:-1]), name])
        view = self._home.completed([name])
        is_query = node.children[0].kind == "Project"
        return view if is_query and view in self._home.views else None

    def _meet(self, source: Source, node: Node) -> None:
        if source not in self.sources:
            self.sources.append(source)
        place = self.sources.index(source)
        for id, name in self._output(node):
            self._origins.setdefault(id, (place, name))

    def _pair(self, node: Node, others: Sequence[Node]) -> None:
        """Link the columns of a node to those of the others by position."""
        for other in others:
            for (id, _), (of, _) in zip(self._output(node), self._output(other), strict=False):
                self._note(id, [of])

    def _note(self, id: int | None, of: Sequence[int | None]) -> None:
        if id is not None:
            self._made_of.setdefault(id, set()).update(each for each in of if each is not None and each != id)

    def _output(self, node: Node) -> list[tuple[int, str]]:
        """The ids and names of a node's output columns, as far as known."""
        for name in (*LISTED, *OUTPUT):
            if isinstance(value := node.fields.get(name), list):
                named = [tree for tree in _trees(value) if tree.id is not None]
                return [(tree.id, str(tree.fields.get("name"))) for tree in named if tree.id is not None]
        if node.kind == "Join" and "Left" in str(node.fields.get("joinType")) and _is_half(node):
            return self._output(node.children[0])
        if node.kind in ("Union", "Intersect", "Except"):
            return self._output(node.children[0])
        if node.kind == "WithCTE":
            return self._output(node.children[-1])
        return [each for child in node.children for each in self._output(child)]

    def _origins_of(self, id: int) -> tuple[tuple[int, str], ...]:
        origins, seen, waiting = dict[tuple[int, str], None](), set[int](), [id]
        while waiting and len(origins) < MOST_MADE_OF:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in self._origins:
                origins[self._origins[one]] = None
            waiting += self._made_of.get(one, ())
        return tuple(sorted(origins))


def _is_half(join: Node) -> bool:
    return any(word in str(join.fields.get("joinType")) for word in ("Semi", "Anti", "Existence"))
