"""The crash matrix of writes to outside systems: every point that they pass, times every way that it can go wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from metalake.errors import OutcomeUnknown
from tests.outside.cells import Series, every_cell, most_cells, sample_of
from tests.outside.crashes import Cell, Told, leave_no_call, perform, prepared, run_cell, undisturbed
from tests.outside.outside import Outside
from tests.outside.writes import EVERY_DAY, IN_DATABASES, IN_GLUE, IN_HIVE, IN_OLD_HIVE, OF_VIEWS, WRITES, Bench, Write

BENCHES = {"pg": "postgres_bench", "maria": "maria_bench"}
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def run(bench: Bench, write: Write, series: Callable[[Outside, Told], Series]) -> int:
    """How many cells there were; all is well after each."""
    after, told = undisturbed(bench, write)
    cells, wrong, number = series(bench.outside, told), [], 0
    try:
        cell = next(cells)
        while True:
            number += 1
            ending = run_cell(bench, write, cell, after)
            wrong += ending.wrong
            assert len(wrong) < 20, "\n".join(wrong)
            cell = cells.send(ending)
    except StopIteration:
        assert not wrong, "\n".join(wrong)
    return number


@pytest.mark.store
@pytest.mark.parametrize("write", WRITES, ids=str)
def test_a_sample_of_the_matrix(benches: dict[str, Bench], write: Write) -> None:
    run(benches[write.catalog], write, sample_of(str(write)))


@pytest.mark.store(once=True)
@pytest.mark.parametrize("write", OF_VIEWS, ids=str)
def test_a_sample_of_views(views_bench: Bench, write: Write) -> None:
    run(views_bench, write, sample_of(str(write)))


@pytest.mark.parametrize("write", IN_HIVE, ids=str)
def test_a_sample_in_a_metastore(hive_bench: Bench, write: Write) -> None:
    run(hive_bench, write, sample_of(str(write)))


@pytest.mark.parametrize("write", IN_OLD_HIVE[:1], ids=str)
def test_a_sample_in_an_older_metastore(old_hive_bench: Bench, write: Write) -> None:
    run(old_hive_bench, write, sample_of(f"{write} in 2.3.9"))


@pytest.mark.parametrize("write", IN_GLUE, ids=str)
def test_a_sample_in_glue(glue_bench: Bench, write: Write) -> None:
    run(glue_bench, write, sample_of(str(write)))


@pytest.mark.parametrize("write", EVERY_DAY, ids=str)
def test_a_sample_in_databases(request: pytest.FixtureRequest, write: Write) -> None:
    run(request.getfixturevalue(BENCHES[write.catalog]), write, sample_of(str(write)))


@pytest.mark.parametrize(("system", "writes"), [("hive_bench", IN_HIVE), ("glue_bench", IN_GLUE)], ids=["hive", "glue"])
def test_a_call_that_nobody_waits_for_changes_nothing(
    request: pytest.FixtureRequest, system: str, writes: list[Write]
) -> None:
    """Its first request is answered when the caller has left; it would make the change after any look for it."""
    bench = request.getfixturevalue(system)
    alteration = next(write for write in writes if write.name == "alter a table")
    before = prepared(bench, alteration)
    told = perform(bench, alteration, Cell(faults=((0, "slow"),)))
    assert isinstance(told.error, OutcomeUnknown)
    bench.outside.heal()
    leave_no_call()
    assert bench.there() == before.there


@pytest.mark.store
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", WRITES, ids=str)
def test_the_whole_matrix(benches: dict[str, Bench], write: Write) -> None:
    print(f"{write}: {run(benches[write.catalog], write, every_cell)} cells")  # noqa: T201


@pytest.mark.store
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", OF_VIEWS, ids=str)
def test_the_whole_matrix_of_views(views_bench: Bench, write: Write) -> None:
    print(f"{write}: {run(views_bench, write, every_cell)} cells")  # noqa: T201


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", IN_HIVE, ids=str)
def test_the_matrix_in_a_metastore(hive_bench: Bench, write: Write) -> None:
    print(f"{write}: {run(hive_bench, write, most_cells)} cells")  # noqa: T201


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", IN_OLD_HIVE, ids=str)
def test_the_matrix_in_an_older_metastore(old_hive_bench: Bench, write: Write) -> None:
    print(f"{write} (2.3.9): {run(old_hive_bench, write, most_cells)} cells")  # noqa: T201


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", IN_GLUE, ids=str)
def test_the_matrix_in_glue(glue_bench: Bench, write: Write) -> None:
    print(f"{write}: {run(glue_bench, write, most_cells)} cells")  # noqa: T201


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("write", IN_DATABASES, ids=str)
def test_the_matrix_in_databases(request: pytest.FixtureRequest, write: Write) -> None:
    print(f"{write}: {run(request.getfixturevalue(BENCHES[write.catalog]), write, most_cells)} cells")  # noqa: T201
