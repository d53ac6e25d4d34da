"""Layered layout of a lineage graph: each object once, to the right of everything it reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import fmean

Pair = tuple[int, int]
"""The ids of an object and of one that reads it."""
Slot = int | Pair
"""What occupies a slot in a column: an object, or a line that passes between objects."""
Place = tuple[int, Slot]
"""A slot in the column of this number."""


@dataclass(frozen=True)
class Layers:
    """The slots of each column from the top, and each line as its slots from left to right."""

    columns: Sequence[Sequence[Slot]]
    lines: Sequence[Sequence[tuple[int, int]]]
    """Slots as (column, index)."""


def layered(start: int, reads: Iterable[Pair], readers: Iterable[Pair]) -> Layers:
    """What an object reads, directly or indirectly, on its left, and its readers on the right.

    Edges that would lead to the left, as in a cycle, are left out.
    """
    reads, readers = list(dict.fromkeys(reads)), list(dict.fromkeys(readers))
    left = _levels(start, [(other, one) for one, other in reads])
    levels = _levels(start, readers) | {id: -level for id, level in left.items()}
    number_of = {level: number for number, level in enumerate(sorted(set(levels.values())))}
    column_of = {id: number_of[level] for id, level in levels.items()}
    ways = [_way(pair, column_of) for pair in dict.fromkeys([*reads, *readers]) if _goes_right(pair, column_of)]
    columns = _sorted(column_of[start], [(at, id) for id, at in column_of.items()], ways)
    row_of = {(at, slot): row for at, column in enumerate(columns) for row, slot in enumerate(column)}
    return Layers(columns, [[(place[0], row_of[place]) for place in way] for way in ways])


def _levels(start: int, steps: Iterable[Pair]) -> dict[int, int]:
    """The length of the longest path to each reachable object; cycles are cut where they close."""
    following = defaultdict[int, list[int]](list)
    for one, other in steps:
        following[one].append(other)
    ended: dict[int, None] = {}
    _end(start, following, {start}, ended)
    order = {id: number for number, id in enumerate(reversed(ended))}
    levels = {start: 0}
    for id in order:
        for other in following.get(id, ()):
            if order[id] < order[other]:
                levels[other] = max(levels.get(other, 0), levels[id] + 1)
    return levels


def _end(id: int, following: Mapping[int, Sequence[int]], begun: set[int], ended: dict[int, None]) -> None:
    """Depth-first search that adds an object to `ended` after everything reachable from it (post-order)."""
    for other in following.get(id, ()):
        if other not in begun:
            begun.add(other)
            _end(other, following, begun, ended)
    ended[id] = None


def _goes_right(pair: Pair, column_of: Mapping[int, int]) -> bool:
    one, other = pair
    return one in column_of and other in column_of and column_of[one] < column_of[other]


def _way(pair: Pair, column_of: Mapping[int, int]) -> list[Place]:
    """The places of a line: both objects, and a slot of its own in each column between them."""
    start, end = column_of[pair[0]], column_of[pair[1]]
    return [(start, pair[0]), *((at, pair) for at in range(start + 1, end)), (end, pair[1])]


def _sorted(middle: int, objects: Iterable[Place], ways: Sequence[Sequence[Place]]) -> list[list[Slot]]:
    """The columns from left to right; each slot is placed near its neighbours on the side of the middle column."""
    slots = list(dict.fromkeys(chain(objects, *ways)))
    last = max(at for at, _ in slots)
    columns = [[slot for at, slot in slots if at == number] for number in range(last + 1)]
    beside = defaultdict[Place, list[Place]](list)
    for one, other in chain.from_iterable(pairwise(way) for way in ways):
        inner, outer = (one, other) if one[0] >= middle else (other, one)
        beside[outer].append(inner)
    row_of: dict[Place, int] = {}
    for number in (*range(middle, -1, -1), *range(middle + 1, last + 1)):
        heights = {slot: _mean(row_of[place] for place in beside[number, slot]) for slot in columns[number]}
        columns[number].sort(key=heights.__getitem__)
        row_of |= {(number, slot): row for row, slot in enumerate(columns[number])}
    return columns


def _mean(rows: Iterable[int]) -> float:
    numbers = list(rows)
    return fmean(numbers) if numbers else 0.0
