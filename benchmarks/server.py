"""The server against the one before it: loading a table and listing 180 tables with rights; two processes against one.

wrk is the client; the servers run side by side on copies of one SQLite store and are measured in turn, round by round;
ratios are medians over the rounds. `python -m benchmarks.server [rounds]`
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import claim, finish, median, own_store, ratio, serve, serve_twin
from benchmarks.load_table import fetch
from benchmarks.usage import processor_seconds
from benchmarks.wrk import load, require_wrk

if TYPE_CHECKING:
    from tests.servers import MetalakeServer

ROUNDS, SECONDS = 12, 1  # many short turns, so that a disturbance of some does not change the medians
TABLES = 180


class Turn(NamedTuple):
    server: str
    what: str
    clients: int

    def __str__(self) -> str:
        return f"{self.server}, {self.what}, {self.clients} clients"


GOALS = {("load", 1): 1.3, ("load", 8): 4.0, ("load", 32): 4.0, ("list", 8): 3.5}
TURNS = [Turn(server, *asked) for server in ("old", "new") for asked in GOALS] + [Turn("one process", "load", 8)]


def main(arguments: list[str]) -> None:
    require_wrk()
    own_store()
    rounds = int(arguments[0]) if arguments else ROUNDS
    with ExitStack() as stack:
        paths, reader = fill()
        servers = {
            "old": serve_twin(stack, "-m", "benchmarks.old_server"),
            "new": serve_twin(stack, METALAKE_WORKERS="2"),
            "one process": serve_twin(stack, METALAKE_WORKERS="1"),
        }
        measure(servers, paths, reader, rounds)
    finish()


def fill(columns: int = 30) -> tuple[dict[str, str], str]:
    """The paths that are requested, and the authorization of a user who may read them through a role.

    `columns` are those of the table that is loaded.
    """
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.load_table import make_table
    from benchmarks.population import CATALOG, METALAKE, children, first_catalog, grant, member, role, schema
    from benchmarks.views import make_view
    from metalake.kinds import Kind
    from metalake.privileges import Privilege

    owner = first_catalog()
    home = schema(owner, "a:b:c")
    admin, user = User.objects.get(username="admin"), member("reader")
    readers = role("readers", user)
    grant(readers, Privilege.USE_CATALOG, [home.lineage_ids[1]])
    grant(readers, Privilege.USE_SCHEMA, [home.lineage_ids[2]])
    for privilege in (Privilege.SELECT_TABLE, Privilege.SELECT_VIEW):
        grant(readers, privilege, [home.pk])
    make_view(owner, CATALOG, "a:b:c", "v")
    with ExitStack() as stack:
        make_table(serve(stack).url, METALAKE, CATALOG, f"Bearer {issue_token(admin, 'bench')}", columns)
    children(home, (f"table_{n:03}" for n in range(TABLES - 1)), Kind.TABLE, admin)
    tables = f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/a%1Fb%1Fc/tables"
    return {"load": f"{tables}/t", "list": tables}, f"Bearer {issue_token(user, 'bench')}"


def measure(servers: dict[str, MetalakeServer], paths: dict[str, str], reader: str, rounds: int) -> None:
    for turn in TURNS:
        fetch(servers[turn.server].url + paths[turn.what], reader)  # the first request may take longer than a turn
        load(servers[turn.server].url + paths[turn.what], reader, turn.clients, SECONDS)
    rates: dict[Turn, list[float]] = {turn: [] for turn in TURNS}
    used, answered = dict.fromkeys(TURNS, 0.0), dict.fromkeys(TURNS, 0)
    order, chance = [*TURNS], random.Random(0)
    for _ in range(rounds):
        # A random order, so that neither drift of the machine nor the turn before favours one.
        chance.shuffle(order)
        for turn in order:
            server = servers[turn.server]
            before = processor_seconds(server)
            figures = load(server.url + paths[turn.what], reader, turn.clients, SECONDS)
            used[turn] += processor_seconds(server) - before
            answered[turn] += figures.answered
            rates[turn].append(figures.rate)
    cost = {turn: used[turn] / answered[turn] * 1e6 for turn in TURNS}
    for turn in TURNS:
        print(f"  {turn}: {median(rates[turn]):.0f} requests/s, {cost[turn]:.0f} us of processor time each")
    for (what, clients), goal in GOALS.items():
        new, old = (rates[Turn(server, what, clients)] for server in ("new", "old"))
        claim(f"{what}, {clients} clients, new : old", ratio(new, old), goal, at_least=True, unit="x")
    two, one = Turn("new", "load", 8), Turn("one process", "load", 8)
    claim("two processes : one", ratio(rates[two], rates[one]), 1.4, at_least=True, unit="x")
    claim("processor time of a request, two processes : one", cost[two] / cost[one], 1.1, unit="x")


if __name__ == "__main__":
    main(sys.argv[1:])
