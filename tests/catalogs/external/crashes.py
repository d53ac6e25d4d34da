"""Writes to an outside system, stopped anywhere and healed: what must hold afterwards, whatever happened.

A cell is one write with faults of the outside system and a crash at one of the points that it really passes, which
are found by recording a run. After it the system heals, leases lapse, and sweepers sweep until nothing is due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from authz.models import AuditEntry
from catalogs import intents, steps
from catalogs.hierarchy import HierarchicalSchema
from catalogs.lookup import Ident
from catalogs.models import Intent
from catalogs.providers import remote
from catalogs.services import schemas, tables
from metalake.context import request_id
from metalake.errors import MetalakeError, NotFound, OutcomeUnknown
from tests.catalogs.external.invariants import check_invariants
from tests.catalogs.external.writes import REQUEST, Bench, Write

CHANGES = ("create_schema", "alter_schema", "drop_schema", "create_table", "alter_table", "rename_table", "drop_table")
VERBS = (*CHANGES, "load_schema", "load_table", "list_schemas", "list_tables")


class Killed(BaseException):
    """The process ended here."""


@contextmanager
def stopping(at: int | None = None, at_first: Callable[[], object] = lambda: None) -> Iterator[list[str]]:
    """Records the points that are passed, and ends the process at the one of this number."""
    passed: list[str] = []

    def point(name: str) -> None:
        if not passed:
            at_first()
        passed.append(name)
        if len(passed) - 1 == at:
            raise Killed(name)

    before, steps.point = steps.point, point
    try:
        yield passed
    finally:
        steps.point = before


# -- What happens to it


@dataclass(frozen=True)
class Cell:
    """The faults that await each verb once it is promised, where the process ends, and where its sweeper does."""

    faults: tuple[tuple[str, tuple[str, ...]], ...] = ()
    killed_at: int | None = None
    sweeper_killed_at: int | None = None
    outage: bool = False  # the system is away when the sweeper comes

    def __str__(self) -> str:
        return (
            f"{dict(self.faults)}, killed at {self.killed_at}, {self.sweeper_killed_at}" + " in an outage" * self.outage
        )


def fault_at(write: Write, number: int, fault: str, **more: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A fault of the write's call of this number, and of other verbs."""
    verb = write.calls[number]
    before = write.calls[:number].count(verb)
    return ((verb, ("",) * before + (fault,)), *more.items())


@dataclass
class Told:
    """How a write ended for its caller."""

    killed: bool = False
    error: MetalakeError | None = None
    points: list[str] = field(default_factory=list)


def perform(bench: Bench, write: Write, cell: Cell) -> Told:
    told = Told()

    def spoil() -> None:
        for verb, faults in cell.faults:
            bench.world.fail(verb, *faults)

    token = request_id.set(REQUEST)
    try:
        with stopping(cell.killed_at, spoil) as told.points:
            write.act(bench)
    except Killed:
        told.killed = True
    except MetalakeError as error:
        told.error = error
    finally:
        request_id.reset(token)
    return told


def recover(bench: Bench, cell: Cell) -> list[str]:
    """The points that the first sweep passed."""
    if cell.outage:
        for verb in VERBS:
            bench.world.fail(verb, *["down"] * 99)
        for _ in range(2):
            lapse()
            intents.sweep()
    bench.world.heal()
    remote._lines.clear()
    if Intent.objects.filter(state__in=Intent.LIVE).exists():
        look_around(bench)
    lapse()
    try:
        with stopping(cell.sweeper_killed_at) as points:
            intents.sweep()
    except Killed:
        pass
    settle_all()
    return points


def look_around(bench: Bench) -> None:
    """Others list and load what is on its way: none of it may become theirs to see."""
    for path in schemas.list_schemas(bench.actor, Ident("demo", bench.catalog), refresh=True).paths:
        _look_into(bench, path)
    for name in ("sales", "sales:emea", "sales:emea:q3", "sales:emea:q3:late"):
        with suppress(NotFound):
            schemas.load_schema(bench.actor, bench.ident(name))


def _look_into(bench: Bench, path: HierarchicalSchema) -> None:
    ident = bench.ident(path.logical())
    with suppress(NotFound):  # it is being dropped
        tables.list_tables(bench.actor, ident, refresh=True)
    for below in schemas.list_schemas(bench.actor, ident, refresh=True).paths:
        _look_into(bench, below)


def lapse() -> None:
    """Every lease and every pause is over."""
    Intent.objects.exclude(lease_until=None).update(lease_until=timezone.now() - timedelta(seconds=1))


def settle_all(rounds: int = 20) -> None:
    for _ in range(rounds):
        lapse()
        if not intents.sweep():
            return
    raise AssertionError(f"never settled: {list(Intent.objects.exclude(lease_until=None))}")


def run_cell(bench: Bench, write: Write, cell: Cell, after: State) -> list[str]:
    """What is wrong after a cell, as sentences; `after` is how the write ends where nothing happens to it."""
    bench.reset()
    write.prepare(bench)
    AuditEntry.objects.all().delete()
    Intent.objects.all().delete()
    before = State.of(bench)
    told = perform(bench, write, cell)
    shown = bench.here()
    committed = Intent.objects.filter(state=Intent.State.COMMITTED).exists()
    wrong = [] if shown == (after.here if committed else before.here) else [f"at once {shown} was visible"]
    recover(bench, cell)
    intent = Intent.objects.get()
    wrong += check_invariants(bench)
    if intent.state == Intent.State.COMMITTED:
        expected, audited = after, Counter(write.audited)
        if told.error is not None and not isinstance(told.error, OutcomeUnknown):
            wrong.append(f"{told.error!r} was told of what happened")
    else:
        expected, audited = before, Counter({"intent.aborted": 1})
        if told.error is None and not told.killed:
            wrong.append("it was acknowledged and did not happen")
        if intent.state != Intent.State.ABORTED:
            wrong.append(f"it ended as {intent.state}")
    wrong += [] if bench.here() == expected.here else [f"{intent.state}, and here is {bench.here()}"]
    wrong += [] if bench.there() == expected.there else [f"{intent.state}, and there is {bench.there()}"]
    wrong += [] if bench.audited() == audited else [f"I5: audited {bench.audited()} and not {audited}"]
    return [f"{write.name}, {cell}, stopped at {told.points[-1:]}: {one}" for one in wrong]


@dataclass(frozen=True)
class State:
    here: frozenset[tuple[Any, ...]]
    there: frozenset[tuple[Any, ...]]

    @classmethod
    def of(cls, bench: Bench) -> State:
        return cls(frozenset(bench.here()), frozenset(bench.there()))


def undisturbed(bench: Bench, write: Write) -> tuple[State, list[str]]:
    """How a write ends where nothing happens to it, and the points it passes."""
    bench.reset()
    write.prepare(bench)
    AuditEntry.objects.all().delete()
    told = perform(bench, write, Cell())
    assert told.error is None, told.error
    assert check_invariants(bench) == []
    assert bench.audited() == Counter(write.audited)
    return State.of(bench), told.points


def points_of(bench: Bench, write: Write, cell: Cell, *, of_sweeper: bool = False) -> int:
    """How many points the write passes under these faults, or the sweeper after it."""
    bench.reset()
    write.prepare(bench)
    told = perform(bench, write, cell)
    return len(recover(bench, cell)) if of_sweeper else len(told.points)
