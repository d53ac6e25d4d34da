"""The races of the suite, in more rounds, on PostgreSQL with two servers: each with the number of rounds that failed.

`python -m benchmarks.races [share]` runs that share of the rounds, at least one of each: the default takes half an
hour, a share of 1 a night.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import claim, finish
from tests.authz import revocations
from tests.catalogs import orders, pairs, races
from tests.catalogs.racing import Nodes, two_nodes
from tests.postgres import running_postgres

Race = Callable[[Nodes, str], list[str]]
ROUNDS: dict[Race, tuple[int, str]] = {
    races.one_name: (50, "64 clients create the same A:B:C: one winner, one chain, one owner"),
    races.different_leaves: (50, "32 clients create A:B:Ci: all succeed, parents once"),
    races.create_against_drop: (200, "create A:B:C against drop A: never a child without its parent"),
    races.table_against_drop: (200, "create a table against drop its schema: only one of them"),
    races.one_table: (50, "8 clients create the same table: one winner, no file left over"),
    races.overlapping_places: (100, "4 tables in overlapping places: one winner"),
    races.many_commits: (3, "8 writers x 10 commits to one table: none lost"),
    races.commit_against_purge: (100, "commit against drop with purge: one drop, no file left over"),
    **{
        race: (125, f"{race.__name__.replace('_', ' ')} on one server, used on both: always refused")
        for race in revocations.RACES
    },
}

SHARE = 0.02


def main(arguments: list[str]) -> None:
    share = float(arguments[0]) if arguments else SHARE
    with (
        running_postgres() as postgres,
        tempfile.TemporaryDirectory() as folder,
        two_nodes(Path(folder), postgres.create_database()) as nodes,
    ):
        for race, (rounds, what) in ROUNDS.items():
            run(nodes, race, max(1, round(rounds * share)), what)
        for write in pairs.WRITES:
            run_pairs(nodes, write, max(1, round(60 * share)))
    finish()


def run(nodes: Nodes, race: Race, rounds: int, what: str) -> None:
    started = time.perf_counter()
    missed = [wrong for number in range(rounds) if (wrong := race(nodes, f"{race.__name__}{number}"))]
    for wrong in missed[:3]:
        print(f"       {wrong}")
    claim(f"{what}: rounds missed of {rounds}, in {time.perf_counter() - started:.0f} s", len(missed), 0)


def run_pairs(nodes: Nodes, write: pairs.Write, rounds: int) -> None:
    """Race a write against every other write that may disturb it, each for so many rounds."""
    started = time.perf_counter()
    disturbances = [disturbance for each, disturbance in pairs.pairs() if each is write]
    missed = [wrong for disturbance in disturbances for wrong in orders.rounds(nodes, write, disturbance, rounds)]
    for wrong in missed[:3]:
        print(f"       {wrong}")
    took = time.perf_counter() - started
    what = f"{write} against each of {len(disturbances)} others: as in one of their orders; rounds missed"
    claim(f"{what} of {len(disturbances) * rounds}, in {took:.0f} s", len(missed), 0)


if __name__ == "__main__":
    main(sys.argv[1:])
