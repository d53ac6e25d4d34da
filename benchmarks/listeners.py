"""The hook of listeners: loading a table on both wires while nobody listens, and while one listener does, against a
server without the hook.

wrk is the client; the servers run side by side on copies of one SQLite store and are measured in turn, round by round;
ratios are medians over the rounds. To tell one percent the machine must do nothing else.
`python -m benchmarks.listeners [rounds]`
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import claim, finish, median, own_store, ratio, serve_twin
from benchmarks.load_table import fetch
from benchmarks.server import fill
from benchmarks.usage import processor_seconds
from benchmarks.wrk import load, require_wrk

if TYPE_CHECKING:
    from tests.servers import MetalakeServer

ROUNDS, SECONDS, CLIENTS = 20, 1, 4  # many short turns, so that a disturbance of some does not change the medians
WITHOUT, NOBODY, ONE = "without the hook", "nobody listens", "one listener"


class Turn(NamedTuple):
    server: str
    wire: str

    def __str__(self) -> str:
        return f"{self.wire}, {self.server}"


def main(arguments: list[str]) -> None:
    require_wrk()
    own_store()
    rounds = int(arguments[0]) if arguments else ROUNDS
    with ExitStack() as stack:
        paths, reader = fill()
        from benchmarks.population import CATALOG, METALAKE

        native = f"/api/metalakes/{METALAKE}/catalogs/{CATALOG}/schemas/a:b:c/tables/t"
        servers = {
            WITHOUT: serve_twin(stack, "-m", "benchmarks.hooked", METALAKE_WORKERS="1"),
            NOBODY: serve_twin(stack, METALAKE_WORKERS="1"),
            ONE: serve_twin(stack, METALAKE_WORKERS="1", METALAKE_LISTENERS="benchmarks.hooked.ignore"),
        }
        measure(servers, {"iceberg": paths["load"], "native": native}, reader, rounds)
    finish()


def measure(servers: dict[str, MetalakeServer], paths: dict[str, str], reader: str, rounds: int) -> None:
    order, chance = [Turn(server, wire) for wire in paths for server in servers], random.Random(0)
    for turn in order:
        fetch(servers[turn.server].url + paths[turn.wire], reader)  # the first request may take longer than a turn
        load(servers[turn.server].url + paths[turn.wire], reader, CLIENTS, SECONDS)
    rates: dict[Turn, list[float]] = {turn: [] for turn in order}
    costs: dict[Turn, list[float]] = {turn: [] for turn in order}
    for _ in range(rounds):
        # A random order, so that neither drift of the machine nor the turn before favours one.
        chance.shuffle(order)
        for turn in order:
            server = servers[turn.server]
            before = processor_seconds(server)
            figures = load(server.url + paths[turn.wire], reader, CLIENTS, SECONDS)
            costs[turn].append((processor_seconds(server) - before) / figures.answered * 1e6)
            rates[turn].append(figures.rate)
    for turn in rates:
        print(f"  {turn}: {median(rates[turn]):.0f} requests/s, {median(costs[turn]):.0f} us of processor time each")
    for wire in paths:
        without = rates[Turn(WITHOUT, wire)]
        nobody = ratio(rates[Turn(NOBODY, wire)], without)
        claim(f"{wire}: nobody listens : without the hook", nobody, 0.99, at_least=True, unit="x")
        print(f"  {wire}: one listener : without the hook: {ratio(rates[Turn(ONE, wire)], without):.3f}x")


if __name__ == "__main__":
    main(sys.argv[1:])
