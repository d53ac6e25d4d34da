"""Writes to an outside system, stopped anywhere and healed: what must hold afterwards, whatever happened.

A cell is one write with faults of requests that it really makes and a crash at a point that it really passes, both
by number. After it the system heals, leases lapse, and sweepers sweep until nothing is due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authz import snapshot
from authz.models import AuditEntry
from catalogs.models import Intent
from catalogs.services import schemas, tables
from metalake.errors import MetalakeError, NotFound, OutcomeUnknown
from metalake.hierarchy import HierarchicalSchema
from metalake.lineage import Address
from metalake.request_context import request_id
from outside import recovery, steps
from providers import circuit_breaker, remote
from tests.emptying import Tables
from tests.faults import Faults
from tests.outside.invariants import check_invariants
from tests.outside.writes import REQUEST, Bench, Write
from tests.waiting import eventually

SHORT = 0.5  # seconds for a call that is answered too late


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


@contextmanager
def calling(faults: Faults, seconds: float) -> Iterator[None]:
    """Calls may take so long at most, and the process ends in one whose request has ended it."""
    real = remote.run

    def run(provider: Any, verb: str, arguments: dict[str, Any], *, total: float = remote.TOTAL) -> Any:
        try:
            return real(provider, verb, arguments, total=min(total, seconds))
        finally:
            if faults.process_ended:
                raise Killed("in a call")

    remote.run = run
    try:
        yield
    finally:
        remote.run = real


def killed_at(point: str, act: Callable[[], object]) -> Intent:
    """What a write leaves whose process ends at a point."""

    def stop(name: str) -> None:
        if name == point:
            raise Killed(name)

    before, steps.point = steps.point, stop
    try:
        with pytest.raises(Killed):
            act()
    finally:
        steps.point = before
    lapse()
    return Intent.objects.latest("created_at")


# -- What happens to it


Numbered = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Cell:
    """The faults of a write's requests by number, once it is promised, where its process ends; the same of the sweep
    after it.
    """

    faults: Numbered = ()
    away_from: int | None = None  # every request of the write from this number on
    killed_at: int | None = None
    outage: bool = False  # the system is away when the sweeper comes
    sweeper_faults: Numbered = ()
    sweeper_killed_at: int | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.given().items()) or "nothing"

    def given(self) -> dict[str, Any]:
        """What is not as by default."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}

    @property
    def seconds(self) -> float:
        is_slow = any(fault.startswith("slow") for _, fault in (*self.faults, *self.sweeper_faults))
        return SHORT if is_slow else remote.TOTAL


@dataclass
class Told:
    """How a write ended for its caller; `was_spoilt` says that all its faults came to pass."""

    was_killed: bool = False
    error: MetalakeError | None = None
    points: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    was_spoilt: bool = False
    waited: bool = False  # until a person gave it up


def perform(bench: Bench, write: Write, cell: Cell) -> Told:
    told, faults = Told(), bench.outside.faults

    def spoil() -> None:
        faults.listen()
        _set(faults, cell.faults)
        if cell.away_from is not None:
            faults.fail_from(cell.away_from)

    token = request_id.set(REQUEST)
    try:
        with stopping(cell.killed_at, spoil) as told.points, calling(faults, cell.seconds):
            write.act(bench)
    except Killed:
        told.was_killed = True
    except MetalakeError as error:
        told.error = error
    finally:
        request_id.reset(token)
    told.was_spoilt, told.requests = faults.is_used_up, faults.stop_listening()
    return told


def _set(faults: Faults, numbered: Numbered) -> None:
    for number, fault in numbered:
        faults.fail(number, fault)


def recover(bench: Bench, cell: Cell) -> Told:
    """How the first sweep went once the system is well again; then sweepers sweep until nothing is due."""
    told, faults = Told(), bench.outside.faults
    if cell.outage:
        faults.listen()
        faults.fail_from(0)
        for _ in range(2):
            lapse()
            recovery.sweep()
    bench.outside.heal()
    leave_no_call()
    if Intent.objects.filter(state__in=Intent.LIVE).exists():
        look_around(bench)
    lapse()
    faults.listen()
    _set(faults, cell.sweeper_faults)
    try:
        with stopping(cell.sweeper_killed_at) as told.points, calling(faults, cell.seconds):
            recovery.sweep()
    except Killed:
        told.was_killed = True
    told.was_spoilt, told.requests = faults.is_used_up, faults.stop_listening()
    bench.outside.heal()
    leave_no_call()
    if bench.outside.asks_people:
        told.waited = given_up()
    settle_all()
    return told


def given_up() -> bool:
    """Whether a person has to give a write up, after sweepers tried."""
    for _ in range(3):
        lapse()
        recovery.sweep()
    waiting = list(recovery.undecided())
    for intent in waiting:
        recovery.give_up_by_operator(intent, "otto")
    return bool(waiting)


def leave_no_call() -> None:
    """Of calls that nobody waits for any more, and of what was learnt of a system that was in trouble."""
    for line in circuit_breaker._lines.values():
        line.pool.shutdown()
    circuit_breaker.forget_all()


def look_around(bench: Bench) -> None:
    """Others list and load what is on its way: none of it may become theirs to see."""
    for path in schemas.list_schemas(bench.actor, Address(metalake="demo", catalog=bench.catalog), refresh=True).paths:
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
        taken, goes_on = recovery.sweep(), bool(recovery._swept)  # on a slow machine a sweep does not wait for all
        assert eventually(lambda: not recovery._swept)
        if not (taken or goes_on):
            return
    raise AssertionError(f"never settled: {list(Intent.objects.exclude(lease_until=None))}")


@dataclass(frozen=True)
class Ending:
    """How a write and the sweep after it went, and what is wrong after them, as sentences."""

    told: Told
    swept: Told
    wrong: list[str]


def run_cell(bench: Bench, write: Write, cell: Cell, after: State) -> Ending:
    """`after` is how the write ends where nothing happens to it."""
    before = prepared(bench, write)
    told = perform(bench, write, cell)
    shown = bench.here()
    committed = Intent.objects.filter(state=Intent.State.COMMITTED).exists()
    wrong = _differences("at once here", shown, after.here if committed else before.here)
    swept = recover(bench, cell)
    intent = Intent.objects.get()
    wrong += check_invariants(bench)
    if intent.state == Intent.State.COMMITTED:
        expected, audited = after, Counter(write.audited)
        if told.error is not None and not isinstance(told.error, OutcomeUnknown):
            wrong.append(f"{told.error!r} was told of what happened")
    else:
        expected, audited = before, Counter({"intent.aborted": 1})
        if told.error is None and not told.was_killed:
            wrong.append("it was acknowledged and did not happen")
        if intent.state != Intent.State.ABORTED and not swept.waited:
            wrong.append(f"it ended as {intent.state}")
    there, expected_there = bench.there(), expected.there
    if swept.waited:  # a person looks there, where each object is as before or as after
        expected_there = before.there & after.there | there & (before.there | after.there)
        wrong = [each for each in wrong if not each.startswith("I2")]
    wrong += _differences(f"{intent.state}, and here", bench.here(), expected.here)
    wrong += _differences(f"{intent.state}, and there", there, expected_there)
    wrong += [] if bench.audited() == audited else [f"I5: audited {bench.audited()} and not {audited}"]
    where = f"{write}: {cell}; stopped at {told.points[-1:]} of {told.points}, asked {told.requests}"
    return Ending(told, swept, [f"{where}: {one}" for one in wrong])


def _differences(where: str, found: Set[Any], expected: Set[Any]) -> list[str]:
    if found == expected:
        return []
    return [f"{where} is too much: {found - expected!s:.1000}, and missing: {expected - found!s:.1000}"]


@dataclass(frozen=True)
class State:
    here: frozenset[tuple[Any, ...]]
    there: frozenset[tuple[Any, ...]]

    @classmethod
    def of(cls, bench: Bench) -> State:
        return cls(frozenset(bench.here()), frozenset(bench.there()))


def undisturbed(bench: Bench, write: Write) -> tuple[State, Told]:
    """How a write ends where nothing happens to it."""
    prepared(bench, write)
    told = perform(bench, write, Cell())
    assert told.error is None, told.error
    wrong = check_invariants(bench)
    assert not wrong, wrong
    assert bench.audited() == Counter(write.audited), bench.audited()
    return State.of(bench), told


def prepared(bench: Bench, write: Write) -> State:
    """How all is before a write; a system that can be copied is prepared once, and then put back with the store."""
    state, rows, copy = bench.prepared.get(write, (None, None, None))
    if copy:
        snapshot.forget()
        circuit_breaker.forget_all()
        Tables.as_migrated.restore(rows)
        bench.outside.put_back(copy)
        return state
    bench.reset()
    write.prepare(bench)
    AuditEntry.objects.all().delete()
    Intent.objects.all().delete()
    if state is None:  # the same each time: what differs from one making to the next is left out of it
        copy = bench.outside.copy()
        bench.prepared[write] = State.of(bench), Tables.as_migrated.rows() if copy else None, copy
    return bench.prepared[write][0]


def ended(bench: Bench, write: Write, before: State, after: State) -> Intent:
    """The intent, once it is seen that all of it happened or nothing."""
    intent = Intent.objects.get()
    is_done = intent.state == Intent.State.COMMITTED
    assert intent.state in (Intent.State.COMMITTED, Intent.State.ABORTED), intent.state
    now, expected = State.of(bench), after if is_done else before
    wrong = _differences("here", now.here, expected.here) + _differences("there", now.there, expected.there)
    assert not wrong, wrong
    assert bench.audited() == Counter(write.audited if is_done else {"intent.aborted": 1}), bench.audited()
    assert check_invariants(bench) == [], check_invariants(bench)
    return intent
