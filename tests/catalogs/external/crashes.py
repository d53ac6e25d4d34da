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

import orjson
from django.utils import timezone

from authz.models import AuditEntry, Grant, User
from authz.policy import Actor
from catalogs import intents, steps
from catalogs.hierarchy import HierarchicalSchema
from catalogs.lookup import Ident, by_id
from catalogs.models import Intent, LocationClaim, Mirror, Reservation, Schema, Table
from catalogs.providers import remote
from catalogs.providers.external import MARKER, digest
from catalogs.services import schemas, tables
from catalogs.services.changes import Alteration, remove
from catalogs.table_wire import CreateTableRequest, SetProperty
from metalake.context import request_id
from metalake.errors import MetalakeError, NotFound, OutcomeUnknown
from metalake.models import Securable
from metalake.privileges import Kind
from tests.providers.memory import LEVELS, World

FOREIGN = "hr"  # a schema of others with a table in it
REQUEST = "a-request-of-mia"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]
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


# -- What is written


@dataclass(frozen=True)
class Write:
    """`calls` are the verbs that change the outside system, in their order; `audited` what a success leaves."""

    name: str
    catalog: str
    act: Callable[[Bench], object]
    calls: tuple[str, ...]
    audited: tuple[str, ...]
    prepare: Callable[[Bench], object] = lambda bench: None


@dataclass
class Bench:
    """One catalog and its world, in which `actor` may make schemas and tables, and others have something."""

    catalog: str
    world: World
    actor: Actor
    empty: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.empty:
            return
        self.world.put_schema(FOREIGN)
        self.world.put_table(FOREIGN, "staff")
        self.empty = self.world.path.read_bytes()

    def ident(self, schema: str, table: str | None = None) -> Ident:
        return Ident("demo", self.catalog, schema, table)

    def make_schema(self, name: str, **properties: str) -> None:
        schemas.create_schema(self.actor, self.ident(name), "made by mia", properties)

    def make_table(self, schema: str, name: str) -> None:
        asked = CreateTableRequest.model_validate({"name": name, "columns": COLUMNS})
        tables.create_native_table(self.actor, self.ident(schema, name), asked)

    def reset(self) -> None:
        """As it was at first."""
        Intent.objects.all().delete()
        for row in Schema.objects.filter(in_catalog__name=self.catalog, parent__kind=Kind.CATALOG):
            found = by_id(row.pk)
            assert found is not None
            remove(found)
        self.world.path.write_bytes(self.empty)
        remote._lines.clear()

    # What is there, but for what others made and the markers.

    def here(self) -> set[tuple[Any, ...]]:
        """Kind, full name, owner and definition of every object."""
        kept = {mirror.pk: mirror.definition for mirror in Mirror.objects.filter(in_catalog__name=self.catalog)}
        owners = dict(User.objects.values_list("pk", "username"))
        paths = {row.pk: row.path for row in Schema.objects.filter(in_catalog__name=self.catalog)}
        rows = [(row, paths[row.pk].logical()) for row in Schema.objects.filter(pk__in=paths)]
        rows += [
            (row, f"{paths[row.parent_id or 0].logical()}.{row.name}")
            for row in Securable.objects.filter(kind=Kind.TABLE, parent_id__in=paths)
        ]
        return {
            (row.kind, name, owners.get(row.owner_user_id or 0), _plain(kept.get(row.pk)))
            for row, name in rows
            if not _is_foreign(name)
        }

    def there(self) -> set[tuple[Any, ...]]:
        with self.world.open() as state:
            found = [*state["schemas"].items(), *state["tables"].items()]
        return {(name, _plain(one["definition"])) for name, one in found if not _is_foreign(name)}

    def audited(self) -> Counter[str]:
        entries = AuditEntry.objects.exclude(full_name__startswith=f"{self.catalog}.{FOREIGN}")
        return Counter(entries.values_list("event", flat=True))


def _is_foreign(name: str) -> bool:
    return name.replace(LEVELS, ".").split(".")[0] == FOREIGN


def _plain(definition: dict[str, Any] | None) -> str | None:
    if definition is None:
        return None
    properties = {key: value for key, value in definition["properties"].items() if key != MARKER}
    return orjson.dumps({**definition, "properties": properties}, option=orjson.OPT_SORT_KEYS).decode()


def _alter_schema(bench: Bench) -> None:
    alteration = Alteration(properties=(("team", "ops"), ("region", None)))
    schemas.alter_schema(bench.actor, bench.ident("sales"), alteration)


def _alter_table(bench: Bench) -> None:
    update = SetProperty.model_validate({"@type": "setProperty", "property": "team", "value": "ops"})
    tables.alter_native_table(bench.actor, bench.ident("flights", "delays"), [update])


def _with_table(bench: Bench) -> None:
    bench.make_schema("flights")
    bench.make_table("flights", "delays")


WRITES = [
    Write(
        "a chain of four schemas",
        "deep",
        lambda bench: bench.make_schema("sales:emea:q3:late", k="v"),
        ("create_schema",) * 4,
        ("schema.created",) * 4,
    ),
    Write(
        "a chain below a schema of others",
        "deep",
        lambda bench: bench.make_schema("sales:emea:q3"),
        ("create_schema",) * 3,
        ("schema.found_outside", "schema.created", "schema.created"),
        lambda bench: bench.world.put_schema("sales", team="others"),
    ),
    Write(
        "a chain in a flat system",
        "flat",
        lambda bench: bench.make_schema("sales:emea", k="v"),
        ("create_schema",),
        ("schema.created",) * 2,
    ),
    Write(
        "alter a schema",
        "deep",
        _alter_schema,
        ("alter_schema",),
        ("schema.altered",),
        lambda bench: bench.make_schema("sales", region="emea"),
    ),
    Write(
        "drop a schema",
        "deep",
        lambda bench: schemas.drop_schema(bench.actor, bench.ident("sales:emea")),
        ("drop_schema",),
        ("schema.dropped",),
        lambda bench: bench.make_schema("sales:emea"),
    ),
    Write(
        "create a table",
        "deep",
        lambda bench: bench.make_table("flights", "delays"),
        ("create_table",),
        ("table.created",),
        lambda bench: bench.make_schema("flights"),
    ),
    Write(
        "create a table and its schema's place",
        "flat",
        lambda bench: bench.make_table("flights", "delays"),
        ("create_schema", "create_table"),
        ("table.created",),
        lambda bench: bench.make_schema("flights:eu"),
    ),
    Write("alter a table", "deep", _alter_table, ("alter_table",), ("table.altered",), _with_table),
    Write(
        "rename a table",
        "deep",
        lambda bench: tables.rename_table(
            bench.actor, bench.ident("flights", "delays"), bench.ident("flights", "late")
        ),
        ("rename_table",),
        ("table.renamed",),
        _with_table,
    ),
    Write(
        "rename a table by copying it",
        "flat",
        lambda bench: tables.rename_table(
            bench.actor, bench.ident("flights", "delays"), bench.ident("flights", "late")
        ),
        ("create_table", "drop_table"),
        ("table.renamed",),
        _with_table,
    ),
    Write(
        "drop a table",
        "deep",
        lambda bench: tables.drop_table(bench.actor, bench.ident("flights", "delays")),
        ("drop_table",),
        ("table.dropped",),
        _with_table,
    ),
]


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


# -- What must hold


def check_invariants(bench: Bench) -> list[str]:
    """I1-I10 of this catalog as sentences; no other write may be under way."""
    wrong = []
    live = Intent.objects.filter(state__in=Intent.LIVE)
    wrong += [f"I3: {intent} at {intent.steps} is live: {intent.last_failure}" for intent in live]
    wrong += [f"I3: {held.name} is still reserved" for held in Reservation.objects.all()]
    return wrong + _of_the_tree(bench) + _of_both_sides(bench) + _of_the_audit() + _of_references()


def _of_the_tree(bench: Bench) -> list[str]:
    rows = {row.pk: row for row in Securable.objects.all()}
    wrong = [f"I1: {row.name} has no parent" for row in rows.values() if row.parent_id and row.parent_id not in rows]
    for row in rows.values():
        if row.parent_id in rows and row.lineage != f"{rows[row.parent_id].lineage}/{row.pk}":
            wrong.append(f"I1: {row.name} lies at {row.lineage}")
        if not row.owner_user_id and not row.owner_group_id:
            wrong.append(f"I8: {row.name} has no owner")
    names = Counter((row.parent_id, row.slot, row.name) for row in rows.values())
    return wrong + [f"I4: {name} is there {count} times" for name, count in names.items() if count > 1]


def _of_both_sides(bench: Bench) -> list[str]:
    """I2, I6, I7: the same is here and there, but for what others made; no marker of what was undone; nothing lost."""
    with bench.world.open() as state:
        there = {**state["schemas"], **state["tables"]}
    above = {row.pk: row.wire_name for row in Mirror.objects.filter(in_catalog__name=bench.catalog)}
    here = {}
    for mirror in Mirror.objects.select_related("securable").filter(in_catalog__name=bench.catalog):
        is_table = mirror.securable.kind == Kind.TABLE
        parent = above.get(mirror.securable.parent_id or 0)
        here[f"{parent}{LEVELS}{mirror.wire_name}" if is_table else mirror.wire_name] = mirror
    ours = {name for name in there if not _is_foreign(name)}
    adopted = {name for name in ours if not there[name]["definition"]["properties"].get(MARKER)}
    wrong = [f"I2: {name} is here and not there" for name in here.keys() - there.keys()]
    wrong += [f"I2: {name} is there and not here" for name in ours - here.keys() - adopted]
    for name in here.keys() & there.keys():
        known, found = here[name], there[name]
        if (known.identity, known.version) != (found["identity"], digest(found["definition"])):
            wrong.append(f"I2: {name} is another than is known")
    aborted = Intent.objects.filter(state=Intent.State.ABORTED).values_list("pk", flat=True)
    markers = {name: one["definition"]["properties"].get(MARKER) for name, one in there.items()}
    wrong += [f"I6: {name} has the marker of what was undone" for name in markers if markers[name] in map(str, aborted)]
    before = orjson.loads(bench.empty)
    foreign = {**before["schemas"], **before["tables"]}
    return wrong + [f"I7: {name} of others was touched" for name in foreign if there.get(name) != foreign[name]]


def _of_the_audit() -> list[str]:
    entries = AuditEntry.objects.exclude(actor="metalake")
    return [
        f"I5: {entry} was audited without its request or object"
        for entry in entries
        if entry.actor != "mia" or entry.request_id != REQUEST or not entry.object_id
    ]


def _of_references() -> list[str]:
    there = set(Securable.objects.values_list("pk", flat=True))
    lost = set(Grant.objects.values_list("content_object_id", flat=True)) - there
    wrong = [f"I9: a grant on {id} that is gone" for id in lost]
    claimed = set(LocationClaim.objects.values_list("table_id", flat=True))
    return wrong + [f"I10: {id} is claimed" for id in claimed ^ set(Table.objects.values_list("pk", flat=True))]


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
