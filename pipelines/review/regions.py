"""Where a principal can use which privilege, as the objects in the tree at which that changes.

Rights apply to everything below an object up to the next change, so a million objects below one grant are one row. Only
objects with a grant of the principal's roles, or owned by them, can be changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pipelines.review.rules import CONTAINERS, SELF, Rule, Standing, may_use

Lineage = tuple[int, ...]


class Mark(NamedTuple):
    """An object where rights may change: what the principal's roles ALLOW and DENY on it, and whether they own it."""

    lineage: Lineage
    kind: str
    allowed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    owned: bool = False


class Change(NamedTuple):
    """From this object down, a privilege on objects of a kind starts to hold (`holds`) or ceases to."""

    object: int
    kind: str
    privilege: str
    holds: bool


class _Level(NamedTuple):
    lineage: Lineage
    standing: Standing
    usable: Mapping[str, frozenset[str]]


class Regions:
    """Resolves the marks of principals by one set of rules, with a cache shared by all."""

    def __init__(self, rules: Iterable[Rule], catalog_types: Mapping[int, str]) -> None:
        """`catalog_types` has the type of each catalog by id."""
        self.types = catalog_types
        self._rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            self._rules[rule.kind].append(rule)
        self._known: dict[tuple[str, Standing, str | None], frozenset[str]] = {}

    def changes(self, marks: Sequence[Mark]) -> Iterator[Change]:
        """The changes of a principal's effective privileges, in pre-order."""
        above: list[_Level] = [_Level((), Standing(), {})]
        for mark in sorted(marks, key=lambda mark: mark.lineage):
            while mark.lineage[: len(above[-1].lineage)] != above[-1].lineage:
                above.pop()
            level = self._level(above[-1], mark)
            yield from _differences(mark.lineage[-1], above[-1].usable, level.usable)
            above.append(level)

    def _level(self, above: _Level, mark: Mark) -> _Level:
        standing = Standing(
            above.standing.allowed | mark.allowed,
            above.standing.denied | mark.denied,
            above.standing.owned | ({mark.kind if mark.kind in CONTAINERS else SELF} if mark.owned else frozenset()),
        )
        kinds = [kind for kind in self._rules if _lies_in(kind, mark.kind)]
        return _Level(mark.lineage, standing, {kind: self._usable(kind, standing, mark.lineage) for kind in kinds})

    def _usable(self, kind: str, standing: Standing, lineage: Lineage) -> frozenset[str]:
        catalog_type = self.types.get(lineage[1]) if len(lineage) > 1 else None
        key = (kind, standing, catalog_type)
        if key not in self._known:
            fitting = (
                rule for rule in self._rules[kind] if catalog_type is None or rule.family in (None, catalog_type)
            )
            self._known[key] = frozenset(rule.privilege for rule in fitting if may_use(rule, standing))
        return self._known[key]


def _lies_in(kind: str, container: str) -> bool:
    """Whether objects of `kind` can be below a `container`, or are of its kind."""
    if container not in CONTAINERS:
        return kind == container
    return kind not in CONTAINERS[: CONTAINERS.index(container)]


def _differences(
    here: int, before: Mapping[str, frozenset[str]], now: Mapping[str, frozenset[str]]
) -> Iterator[Change]:
    for kind, usable in now.items():
        had = before.get(kind, frozenset())
        for privilege in sorted(usable ^ had):
            yield Change(here, kind, privilege, privilege in usable)
