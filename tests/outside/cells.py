"""Which cells the crash matrix of a write has: all of them, and a sample that tests/outside/choosing.py chose.

A series goes on until its number is beyond what the write really passes or asks, which the ending of each cell tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

from tests.outside.crashes import Cell, Ending, Told
from tests.outside.outside import Outside

Series = Generator[Cell, Ending, None]

SILENCES = ("lost", "dropped", "late")
TIMEOUTS = ("slow", "slow, dropped")
OF_SWEEPERS = ("lost", "dropped", "down", "killed", "killed after")


def every_cell(outside: Outside, undisturbed: Told) -> Series:
    bare = Cell()
    yield bare
    yield from killed_everywhere(bare)
    yield from sweepers_faults(range(len(undisturbed.points)))
    last = max(number for number, request in enumerate(undisturbed.requests) if outside.changes(request))
    for number, request in enumerate(undisturbed.requests):
        for fault in outside.endings:
            faulty = Cell(faults=((number, fault),))
            yield faulty
            yield replace(faulty, outage=True)
            if outside.changes(request) and fault in SILENCES:
                yield from killed_everywhere(faulty) if number == last else killed_in_turn(faulty)
        if outside.changes(request):
            yield from silences_unread(number)
            yield from undone(outside, number)


def most_cells(outside: Outside, undisturbed: Told) -> Series:
    """What takes no hours with a real system: a second kill only where the first one left something new."""
    bare = Cell()
    for number, name in enumerate(undisturbed.points):
        yield Cell(killed_at=number, outage=number % 2 == 1)
        if name.startswith(("before", "after")):
            yield from sweeper_killed_everywhere(Cell(killed_at=number))
            yield from sweepers_faults([number])
    for number, request in enumerate(undisturbed.requests):
        for fault in outside.endings:
            yield Cell(faults=((number, fault),))
        if not outside.changes(request):
            yield Cell(faults=((number, "slow"),))
        else:
            yield Cell(faults=((number, "lost"),), outage=True)
            yield from killed_in_turn(replace(bare, faults=((number, "lost"),)))
            yield from silences_unread(number)
            yield from undone(outside, number)


def silences_unread(number: int) -> Series:
    """Nobody can look what became of it, or not in time."""
    for fault in TIMEOUTS:
        yield Cell(faults=((number, fault),))
    for fault in SILENCES:
        unread = Cell(faults=((number, fault),), away_from=number + 1)
        yield unread
        yield from killed_in_turn(unread)


def undone(outside: Outside, number: int) -> Series:
    """A change is refused, and each request that is made after it goes wrong."""
    denied = (number, "denied")
    yield from killed_in_turn(Cell(faults=(denied,)))
    for fault in outside.endings:
        for later in count(number + 1):
            ending = yield Cell(faults=(denied, (later, fault)))
            if not ending.told.was_spoilt:
                break


def killed_in_turn(cell: Cell) -> Series:
    """At every point."""
    for number in count():
        ending = yield replace(cell, killed_at=number)
        if not ending.told.was_killed:
            return


def killed_everywhere(cell: Cell) -> Series:
    """At every point, in an outage, too, and the sweeper at every of its points."""
    for number in count():
        killed = replace(cell, killed_at=number)
        ending = yield killed
        if not ending.told.was_killed:
            return
        yield replace(killed, outage=True)
        yield from sweeper_killed_everywhere(killed)


def sweeper_killed_everywhere(cell: Cell) -> Series:
    for number in count():
        ending = yield replace(cell, sweeper_killed_at=number)
        if not ending.swept.was_killed:
            return


def sweepers_faults(points: Iterable[int]) -> Series:
    """Killed at these points, and then each request of the sweeper goes wrong."""
    for number in points:
        for fault in OF_SWEEPERS:
            for request in count():
                ending = yield Cell(killed_at=number, sweeper_faults=((request, fault),))
                if not ending.swept.was_spoilt:
                    break


SAMPLE = Path(__file__).with_name("sample.json")  # of each write, the cells with what is not as by default


def sample_of(name: str) -> Callable[[Outside, Told], Series]:
    """The cells that were chosen for a write. They stop it at each of its points, or they are to be chosen anew."""

    def series(outside: Outside, undisturbed: Told) -> Series:
        points, killed = set(points_of(outside, undisturbed)), set()
        for cell in chosen_cells()[name]:
            ending = yield cell
            if not cell.faults and ending.told.was_killed:
                killed.add(cell.killed_at)
        assert points <= killed, f"{name} is not stopped at {points - killed}: run python -m tests.outside.choosing"

    return series


@cache
def chosen_cells() -> dict[str, list[Cell]]:
    return {name: [_cell(**one) for one in cells] for name, cells in json.loads(SAMPLE.read_text()).items()}


def _cell(faults: Iterable[tuple[int, str]] = (), **rest: int) -> Cell:
    return Cell(faults=tuple((number, fault) for number, fault in faults), **rest)  # type: ignore[arg-type]


def points_of(outside: Outside, undisturbed: Told) -> list[int]:
    """Where the sample stops a write: everywhere in memory, and beside its calls in a real system."""
    names = ("before", "after", "comm")
    is_in_memory = outside.provider.startswith("memory")
    return [number for number, name in enumerate(undisturbed.points) if is_in_memory or name.startswith(names)]


def candidates(outside: Outside, undisturbed: Told) -> Series:
    """The cells from which a sample is chosen."""
    series = many_cells if outside.provider.startswith("memory") else some_cells
    yield from series(outside, undisturbed)


def many_cells(outside: Outside, undisturbed: Told) -> Series:
    """Killed at every point, each fault of each change once, and the sweeper killed where one of it matters."""
    changes = [number for number, request in enumerate(undisturbed.requests) if outside.changes(request)]
    for number in range(len(undisturbed.points)):
        yield Cell(killed_at=number, outage=number % 2 == 1)
        yield Cell(killed_at=number, sweeper_killed_at=number % 6)
    for number in changes:
        for fault in outside.endings:
            yield Cell(faults=((number, fault),))
    last = changes[-1]
    for fault in SILENCES:
        yield Cell(faults=((last, fault),), away_from=last + 1)
    for number in count():
        sweeper_killed_at = None if number % 2 else 1
        ending = yield Cell(faults=((last, "denied"),), killed_at=number, sweeper_killed_at=sweeper_killed_at)
        if not ending.told.was_killed:
            return


def some_cells(outside: Outside, undisturbed: Told) -> Series:
    """Killed at points that matter most, each fault of one change, and faults of the requests beside it."""
    changes = [number for number, request in enumerate(undisturbed.requests) if outside.changes(request)]
    points = points_of(outside, undisturbed)
    for number in points:
        yield Cell(killed_at=number, outage=number % 2 == 1)
    last = changes[-1]
    for fault in outside.endings:
        yield Cell(faults=((last, fault),))
    for fault, number in zip(outside.endings, range(len(undisturbed.requests)), strict=False):
        if number not in changes:
            yield Cell(faults=((number, fault),))
    yield Cell(faults=((last, "lost"),), away_from=last + 1)
    yield Cell(faults=((last, TIMEOUTS[len(undisturbed.requests) % 2]),))
    yield Cell(killed_at=points[-1], sweeper_faults=((0, "lost"),))
    yield Cell(killed_at=points[0], sweeper_faults=((0, "killed after"),))
