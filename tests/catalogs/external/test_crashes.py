"""The crash matrix of writes to outside systems: every point that they pass, times every way that it can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.catalogs.external.crashes import Cell, fault_at, points_of, run_cell, undisturbed
from tests.catalogs.external.writes import WRITES, Bench, Write

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

FAULTS = ("lost", "dropped", "down", "busy", "bug")
AWAY = {"load_schema": ("down",) * 9, "load_table": ("down",) * 9}
UNDO_FAULTS = ("", "lost", "dropped", "down")


def cells(bench: Bench, write: Write) -> Iterator[Cell]:
    """All of them."""
    bare = Cell()
    yield bare
    yield from _killed(bench, write, bare)
    for number in range(len(write.calls)):
        for fault in FAULTS:
            faulty = Cell(fault_at(write, number, fault))
            yield faulty
            yield replace(faulty, outage=True)
            yield from _killed(bench, write, faulty, twice=fault in ("lost", "dropped"))
        for fault in ("lost", "dropped"):
            unread = Cell(fault_at(write, number, fault, **AWAY))
            yield unread
            yield from _killed(bench, write, unread)
    for fault in UNDO_FAULTS:
        undone = Cell(fault_at(write, len(write.calls) - 1, "denied", drop_schema=(fault,)))
        yield undone
        yield from _killed(bench, write, undone, twice=not fault)


def _killed(bench: Bench, write: Write, cell: Cell, *, twice: bool = True) -> Iterator[Cell]:
    """At every point; and with `twice` the sweeper at every of its points."""
    for number in range(points_of(bench, write, cell)):
        killed = replace(cell, killed_at=number)
        yield killed
        yield replace(killed, outage=True)
        for second in range(points_of(bench, write, killed, of_sweeper=True) if twice else 0):
            yield replace(killed, sweeper_killed_at=second)


def sample(bench: Bench, write: Write) -> Iterator[Cell]:
    """Killed at every point, each fault of each call once, and the sweeper killed where one of it matters."""
    bare = Cell()
    for number in range(points_of(bench, write, bare)):
        killed = replace(bare, killed_at=number)
        yield replace(killed, outage=number % 2 == 1)
        yield replace(killed, sweeper_killed_at=number % 6)
    for number in range(len(write.calls)):
        for fault in FAULTS:
            yield Cell(fault_at(write, number, fault))
    last = len(write.calls) - 1
    for fault in ("lost", "dropped"):
        yield Cell(fault_at(write, last, fault, **AWAY))
    undone = Cell(fault_at(write, last, "denied"))
    for number in range(points_of(bench, write, undone)):
        yield replace(undone, killed_at=number, sweeper_killed_at=None if number % 2 else 1)


def run(bench: Bench, write: Write, chosen: Iterator[Cell]) -> int:
    after, _ = undisturbed(bench, write)
    wrong, count = [], 0
    for cell in chosen:
        count += 1
        wrong += run_cell(bench, write, cell, after)
        assert len(wrong) < 20, "\n".join(wrong)
    assert not wrong, "\n".join(wrong)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_a_sample_of_the_matrix(benches: dict[str, Bench], write: Write) -> None:
    bench = benches[write.catalog]
    assert run(bench, write, sample(bench, write)) > 20


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_the_whole_matrix(benches: dict[str, Bench], write: Write) -> None:
    bench = benches[write.catalog]
    print(f"{write.name}: {run(bench, write, cells(bench, write))} cells")  # noqa: T201
