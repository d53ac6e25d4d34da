"""Clients that race over HTTP: on PostgreSQL with two servers, on SQLite with two processes of one.

benchmarks/races.py runs many more rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.authz import plan_races, revocations
from tests.catalogs import orders, races
from tests.catalogs.pairs import Disturbance, Write, pair, pairs
from tests.catalogs.racing import Nodes, one_node, two_nodes
from tests.databases import migrated_database
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

ROUNDS: list[tuple[Callable[[Nodes, str], list[str]], int]] = [
    (races.one_name, 3),
    (races.different_leaves, 2),
    (races.create_against_drop, 10),
    (races.table_against_drop, 10),
    (races.one_table, 3),
    (races.overlapping_places, 10),
    (races.many_commits, 1),
    (races.commit_against_purge, 6),
    *((race, 5) for race in revocations.RACES),
    *((race, 3) for race in plan_races.RACES),
]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("nodes")
    if request.param == "sqlite":
        with one_node(folder) as nodes:
            yield nodes
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    with two_nodes(folder, migrated_database(postgres)) as nodes:
        yield nodes


@pytest.mark.parametrize(("race", "rounds"), ROUNDS, ids=[race.__name__ for race, _ in ROUNDS])
def test_race(nodes: Nodes, race: Callable[[Nodes, str], list[str]], rounds: int) -> None:
    for number in range(rounds):
        assert race(nodes, f"{race.__name__}{number}") == []


MET = [
    pair("purge table on Iceberg's wire", "table moved"),
    pair("purge table", "table moved, another made"),
    pair("move table", "table dropped"),
    pair("drop catalog", "catalog renamed"),
    pair("drop metalake", "metalake renamed"),
    pair("rename table", "catalog disabled"),
    pair("create table", "writer removed"),
    pair("disable metalake", "writer removed"),
    pair("move view", "view dropped"),
    pair("replace view", "view made anew"),
    pair("create a table of its name", "view renamed"),
]


@pytest.mark.parametrize(("write", "disturbance"), MET, ids=str)
def test_two_that_meet_end_as_in_one_order(nodes: Nodes, write: Write, disturbance: Disturbance) -> None:
    assert orders.rounds(nodes, write, disturbance, 2) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.postgres
@pytest.mark.parametrize("nodes", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("write", "disturbance"), list(pairs()), ids=str)
def test_any_two_end_as_in_one_order(nodes: Nodes, write: Write, disturbance: Disturbance) -> None:
    assert orders.rounds(nodes, write, disturbance, 60) == []
