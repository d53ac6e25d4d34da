"""Processes that are really killed in the middle of a write to an outside system."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from django.db import connection

from catalogs.models import Intent
from outside import recovery
from tests.outside.crashes import ended, prepared, settle_all, undisturbed
from tests.outside.writes import EVERY_WRITE, IN_GLUE, IN_HIVE, WRITES, Bench, Write
from tests.servers import REPOSITORY
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

FORWARD = ("applied", "committing", "published")  # where all calls had been made


def named(writes: list[Write], name: str) -> Write:
    return next(write for write in writes if write.name == name)


CHAIN = named(WRITES, "a chain of four schemas")
TABLE = named(WRITES, "create a table")
MOVE = named(WRITES, "rename a table by copying it")


class Victim:
    """Another process that makes a write, having promised it when this is made."""

    def __init__(self, write: Write, at: int | None = None) -> None:
        arguments = [str(EVERY_WRITE.index(write)), "none" if at is None else str(at)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.outside.victim", *arguments],
            cwd=REPOSITORY,
            env=os.environ | {"METALAKE_TEST_DATABASE_URL": database_url()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "promised\n"

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def died(self) -> bool:
        return self.process.wait(60) == -signal.SIGKILL


def database_url() -> str:
    """The database that this test is on, for another process."""
    given = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{given['NAME']}"
    return f"postgres://{given['USER']}:{given['PASSWORD']}@{given['HOST']}:{given['PORT']}/{given['NAME']}"


def kill_at(bench: Bench, write: Write, point: str, *, is_forward: bool) -> None:
    after, told = undisturbed(bench, write)
    before = prepared(bench, write)
    victim = Victim(write, told.points.index(point))
    victim.go_on()
    assert victim.died()
    assert recovery.sweep() == 0, "its lease is not over"
    settle_all()
    state = ended(bench, write, before, after).state
    assert state == (Intent.State.COMMITTED if is_forward else Intent.State.ABORTED)


def kill_in_a_call(bench: Bench, write: Write, *, arrives: bool) -> None:
    """The last change of a write is under way, and is made either at once or when its process is gone."""
    after, told = undisturbed(bench, write)
    change = max(number for number, request in enumerate(told.requests) if bench.outside.changes(request))
    before = prepared(bench, write)
    victim = Victim(write)
    faults = bench.outside.faults
    faults.listen()
    faults.fail(change, "slow" if arrives else "slow, dropped")
    victim.go_on()
    assert eventually(lambda: len(faults.requests) > change)
    victim.process.kill()
    assert victim.died()
    bench.outside.heal()
    settle_all()
    assert ended(bench, write, before, after).state == Intent.State.COMMITTED


by_name = pytest.mark.parametrize(
    ("write", "point"),
    [
        (CHAIN, "promised"),
        (CHAIN, "after 1"),
        (CHAIN, "applied"),
        (CHAIN, "committing"),
        (TABLE, "after 0"),
        (MOVE, "before 1"),
        (MOVE, "published"),
    ],
    ids=lambda part: part if isinstance(part, str) else part.name,
)


@pytest.mark.store
@by_name
def test_a_process_that_is_killed(benches: dict[str, Bench], write: Write, point: str) -> None:
    is_forward = point in (*FORWARD, "before 1") or (write, point) == (TABLE, "after 0")
    kill_at(benches[write.catalog], write, point, is_forward=is_forward)


@pytest.mark.store
def test_a_process_that_is_killed_while_it_calls(bench: Bench) -> None:
    after, _ = undisturbed(bench, TABLE)
    before = prepared(bench, TABLE)
    bench.world.fail("create_table", "slow:30")
    victim = Victim(TABLE)
    victim.go_on()
    assert eventually(lambda: bench.world.calls("create_table") == 1)
    victim.process.kill()
    assert victim.died()
    settle_all()
    assert ended(bench, TABLE, before, after).state == Intent.State.ABORTED


at_points = pytest.mark.parametrize("point", ["before 0", "after 0", "committing"])
arriving = pytest.mark.parametrize("arrives", [True, False], ids=["applied", "applied late"])
some = pytest.mark.parametrize("name", ["create a table", "drop a table", "alter a schema"])


@pytest.mark.parametrize(("name", "point"), [("create a table", "after 0"), ("commit", "before 0")])
def test_killed_at_a_metastore(hive_bench: Bench, name: str, point: str) -> None:
    kill_at(hive_bench, named(IN_HIVE, name), point, is_forward=point != "before 0")


@pytest.mark.parametrize(
    ("name", "point"), [("create an Iceberg table", "after 0"), ("rename an Iceberg table", "after 0")]
)
def test_killed_at_glue(glue_bench: Bench, name: str, point: str) -> None:
    kill_at(glue_bench, named(IN_GLUE, name), point, is_forward="create" in name)


@arriving
def test_killed_while_a_metastore_is_at_work(hive_bench: Bench, arrives: bool) -> None:
    kill_in_a_call(hive_bench, named(IN_HIVE, "create a table"), arrives=arrives)


@arriving
def test_killed_while_glue_is_at_work(glue_bench: Bench, arrives: bool) -> None:
    kill_in_a_call(glue_bench, named(IN_GLUE, "drop a table"), arrives=arrives)


@pytest.mark.long
@at_points
@pytest.mark.parametrize("name", ["create a table", "rename a table", "commit"])
def test_killed_anywhere_at_a_metastore(hive_bench: Bench, name: str, point: str) -> None:
    kill_at(hive_bench, named(IN_HIVE, name), point, is_forward=point != "before 0")


@pytest.mark.long
@at_points
@pytest.mark.parametrize("name", ["create an Iceberg table", "rename an Iceberg table", "commit"])
def test_killed_anywhere_at_glue(glue_bench: Bench, name: str, point: str) -> None:
    is_half_a_move = name == "rename an Iceberg table" and point == "after 0"
    kill_at(glue_bench, named(IN_GLUE, name), point, is_forward=point != "before 0" and not is_half_a_move)


@pytest.mark.long
@arriving
@some
def test_killed_while_a_metastore_is_at_any_work(hive_bench: Bench, name: str, arrives: bool) -> None:
    kill_in_a_call(hive_bench, named(IN_HIVE, name), arrives=arrives)


@pytest.mark.long
@arriving
@some
def test_killed_while_glue_is_at_any_work(glue_bench: Bench, name: str, arrives: bool) -> None:
    kill_in_a_call(glue_bench, named(IN_GLUE, name), arrives=arrives)
