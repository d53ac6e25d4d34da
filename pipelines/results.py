"""Result tables of the catalog `system`: each unit of a job's work is published once, in all tables atomically.

Rows are staged on a branch of each table. Then one multi-table commit (transactions/commit of Iceberg REST) moves
`main` of all tables to the staged snapshots. Snapshot summaries have the unit and a key of its input, so that a
restarted run skips published units and reuses staged ones.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metalake_client.failures import Exit, Failure
from pipelines.job import SYSTEM, Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

UNIT, KEY = "metalake.unit", "metalake.key"  # snapshot summary keys
Json = dict[str, Any]


@dataclass(frozen=True)
class ResultTable:
    """A table that a job writes: `columns` is Spark DDL, "day date, times bigint"."""

    schema: str
    name: str
    columns: str
    partitioned_by: tuple[str, ...] = ()
    comment: str = ""

    @property
    def full_name(self) -> str:
        return f"{SYSTEM}.{self.schema}.{self.name}"


@dataclass(frozen=True)
class Unit:
    """A part of a job's results that is replaced as a whole: the rows matching `where`, an SQL expression.

    `key` identifies their input: nothing is written while it is unchanged.
    """

    name: str
    key: str
    where: str


class Results:
    """The tables of one job."""

    def __init__(self, job: Job, session: SparkSession, name: str, tables: Sequence[ResultTable]) -> None:
        """Creates missing tables; `name` is the job's. Raises Failure if the columns of one were changed by hand."""
        self.job, self.session, self.name, self.tables = job, session, name, tables
        for table in tables:
            self._require(table)

    def is_done(self, unit: Unit) -> bool:
        """Whether all tables have the unit, from the same input."""
        return not [state for state in self._states() if not state.has(unit)]

    def write(self, unit: Unit, frames: Mapping[ResultTable, Callable[[], DataFrame]]) -> Pending:
        """Stage the rows of a unit; those staged by an earlier run are reused.

        Raises Failure if another run of the job committed meanwhile.
        """
        missing = (state for state in self._states() if not state.has(unit))
        written = (state.written_for(unit) or self._write(state, unit, frames[state.table]()) for state in missing)
        return Pending(self, unit, [*written])

    def shown(self, unit: Unit, table: ResultTable) -> DataFrame:
        """The published rows of a unit."""
        return self.session.table(table.full_name).where(unit.where)

    def _states(self) -> list[_State]:
        return [_State(table, self._load(table) or {}) for table in self.tables]

    def _require(self, table: ResultTable) -> None:
        if self._load(table) is None:
            self._make(table)
            return
        there, wanted = (_shape(schema) for schema in (self.session.table(table.full_name).schema, _declared(table)))
        if there != wanted:
            odd = ", ".join(f"{name} {type_}" for name, type_ in sorted(there ^ wanted))
            raise Failure(
                f"The columns of {table.full_name} were changed by hand ({odd}): undo that, or drop the table, and the "
                "next run makes it anew.",
                Exit.CONFLICT,
            )

    def _make(self, table: ResultTable) -> None:
        parts = f" PARTITIONED BY ({', '.join(table.partitioned_by)})" if table.partitioned_by else ""
        comment = table.comment.replace("'", "\\'")
        self.session.sql(
            f"CREATE TABLE IF NOT EXISTS {table.full_name} ({table.columns}) USING iceberg{parts} COMMENT '{comment}'"
        )

    def _load(self, table: ResultTable) -> Json | None:
        """The table's metadata; None if there is no such table."""
        path = (SYSTEM, "namespaces", table.schema, "tables", table.name)
        try:
            metadata: Json = self.job.writer.call_iceberg("GET", self.job.metalake, *path)["metadata"]
        except Failure as failure:
            if failure.kind == "NoSuchTableException":
                return None
            raise
        return metadata

    def _write(self, state: _State, unit: Unit, frame: DataFrame) -> _Written:
        branch = f"{self.name}_{secrets.token_hex(6)}"
        table = state.table
        self.session.sql(f"ALTER TABLE {table.full_name} CREATE BRANCH {branch}")
        writer = frame.writeTo(f"{table.full_name}.branch_{branch}")
        for name, value in ((UNIT, unit.name), (KEY, unit.key)):
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.overwrite(_expression(unit.where))
        fresh = _State(table, self._load(table) or {})
        ref = fresh.refs.get(branch)
        if ref is None or fresh.main != state.main or fresh.uuid != state.uuid:
            raise _overtaken(self.name, unit)
        return _Written(fresh, branch, ref)

    def publish(self, unit: Unit, written: Sequence[_Written]) -> None:
        """See Pending.publish."""
        try:
            self._commit(each.change(self.name) for each in written)
        except Failure as failure:
            unknown = failure.exit_code is Exit.UNREACHABLE or (failure.status or 0) >= 500
            if (unknown or failure.exit_code is Exit.CONFLICT) and self.is_done(unit):
                return  # by this commit, whose response was lost, or by another run's
            if failure.exit_code is Exit.CONFLICT:
                self.clear(written)
                raise _overtaken(self.name, unit) from None
            raise

    def _commit(self, changes: Iterable[Json]) -> None:
        self.job.writer.post_iceberg(
            self.job.metalake, SYSTEM, "transactions", "commit", body={"table-changes": [*changes]}
        )

    def clear(self, written: Iterable[_Written]) -> None:
        """Remove staged branches; those that cannot be removed now are left to the next run."""
        for each in written:
            try:
                self._commit([each.removal()])
            except Failure:
                continue


@dataclass(frozen=True)
class Pending:
    """A staged unit, not published yet. Without `written` it was published before."""

    results: Results
    unit: Unit
    written: Sequence[_Written]

    def reader(self, table: ResultTable) -> DataFrame:
        """The staged rows of the unit; only valid until they are published."""
        for each in self.written:
            if each.state.table == table:
                branch = f"{table.full_name}.branch_{each.branch}"
                return self.results.session.table(branch).where(self.unit.where)
        return self.results.shown(self.unit, table)

    def publish(self) -> None:
        """Publish the unit in all tables by one commit. Raises Failure if another run of the job was first."""
        if self.written:
            self.results.publish(self.unit, self.written)

    def clear(self) -> None:
        """Discard the staged rows."""
        self.results.clear(self.written)


@dataclass(frozen=True)
class _State:
    """A table's metadata as loaded."""

    table: ResultTable
    metadata: Json

    @property
    def uuid(self) -> str:
        return str(self.metadata.get("table-uuid"))

    @property
    def refs(self) -> dict[str, int]:
        return {name: ref["snapshot-id"] for name, ref in (self.metadata.get("refs") or {}).items()}

    @property
    def main(self) -> int | None:
        return self.refs.get("main")

    @property
    def snapshots(self) -> dict[int, Json]:
        return {each["snapshot-id"]: each for each in self.metadata.get("snapshots") or ()}

    def has(self, unit: Unit) -> bool:
        """Whether the unit's newest snapshot has the same key."""
        newest = next((each for each in self._history() if _summary(each).get(UNIT) == unit.name), None)
        return newest is not None and _summary(newest).get(KEY) == unit.key

    def _history(self) -> Iterator[Json]:
        """The snapshots of main, the newest first."""
        snapshots, at = self.snapshots, self.main
        while at in snapshots:
            yield snapshots[at]
            at = snapshots[at].get("parent-snapshot-id")

    def written_for(self, unit: Unit) -> _Written | None:
        """The unit as staged by an earlier run on top of the current snapshot; None if there is none."""
        for branch, id in self.refs.items():
            snapshot = self.snapshots.get(id, {})
            summary = _summary(snapshot)
            if branch == "main" or (summary.get(UNIT), summary.get(KEY)) != (unit.name, unit.key):
                continue
            parent = snapshot.get("parent-snapshot-id", 0)  # no snapshot has this id
            is_first = self.main is None and self.snapshots.get(parent, {}).get("parent-snapshot-id") is None
            if parent == (self.main or 0) or is_first:  # a branch of an empty table starts with an empty snapshot
                return _Written(self, branch, id)
        return None


@dataclass(frozen=True)
class _Written:
    """A branch with a staged unit, and its table's state at that time."""

    state: _State
    branch: str
    snapshot: int

    def change(self, job: str) -> Json:
        """Move main to the branch, and drop all branches of the job, so that no other run's can be published."""
        of_job = [name for name in self.state.refs if name.startswith(f"{job}_")]
        moved = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": self.snapshot}
        return self._of_table(
            [_ref("main", self.state.main), _ref(self.branch, self.snapshot)],
            [moved, *({"action": "remove-snapshot-ref", "ref-name": name} for name in of_job)],
        )

    def removal(self) -> Json:
        removed = {"action": "remove-snapshot-ref", "ref-name": self.branch}
        return self._of_table([_ref(self.branch, self.snapshot)], [removed])

    def _of_table(self, requirements: list[Json], updates: list[Json]) -> Json:
        table = self.state.table
        return {
            "identifier": {"namespace": [table.schema], "name": table.name},
            "requirements": [{"type": "assert-table-uuid", "uuid": self.state.uuid}, *requirements],
            "updates": updates,
        }


def _ref(name: str, snapshot: int | None) -> Json:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot}


def _summary(snapshot: Json) -> Json:
    return snapshot.get("summary") or {}


def _overtaken(job: str, unit: Unit) -> Failure:
    return Failure(f"Another run of {job} wrote {unit.name} meanwhile, and its results stand.", Exit.CONFLICT)


def _expression(where: str) -> Column:
    from pyspark.sql import functions

    return functions.expr(where)


def _declared(table: ResultTable) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(table.columns)


def _shape(schema: Any) -> set[tuple[str, str]]:
    return {(field.name, field.dataType.simpleString()) for field in schema.fields}
