"""30 users list 10,496 tables of one schema over HTTP, 14 requests a second, authorization on against off.

Arrivals are random but the same for both sides, which are measured in turn; no request waits for an earlier answer,
and latency counts from when a request was due. `python -m benchmarks.list_crowd [rounds]`
"""

from __future__ import annotations

import json
import random
import sys
import urllib.request
from contextlib import ExitStack

from benchmarks.harness import claim, finish, median, on_both_databases, percentile, ratio, serve_twin
from benchmarks.http import Crowd

TABLES, USERS, PER_SECOND = 10_496, 30, 14
ROUNDS, SECONDS = 12, 5


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_crowd", arguments)
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import (
        CATALOG,
        METALAKE,
        analyze,
        children,
        first_catalog,
        grant,
        members,
        role,
        schema,
    )
    from metalake.kinds import Kind
    from metalake.privileges import Privilege

    home = schema(first_catalog(), "wide")
    names = (f"table_{n:05}" for n in range(TABLES))
    children(home, names, Kind.TABLE, User.objects.get(username="admin"))
    users = members(f"analyst{n}" for n in range(USERS))
    readers = role("readers", *users)
    grant(readers, Privilege.USE_CATALOG, [home.lineage_ids[1]])
    grant(readers, Privilege.USE_SCHEMA, [home.pk])
    grant(readers, Privilege.SELECT_TABLE, [home.pk])
    analyze()
    tokens = [f"Bearer {issue_token(user, 'bench')}" for user in users]
    path = f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/wide/tables"
    with ExitStack() as stack:
        crowds = {
            which: Crowd(serve_twin(stack, METALAKE_AUTHORIZATION=which).url + path, tokens) for which in ("on", "off")
        }
        for crowd in crowds.values():
            assert listed(crowd.url, tokens[0]) == TABLES
            crowd.run(arrivals(0, 3))
        measure(crowds, int(arguments[0]) if arguments else ROUNDS)
    finish()


def arrivals(seed: int, seconds: float) -> list[float]:
    """When requests are due, in seconds."""
    chance, due, moment = random.Random(seed), [], 0.0
    while (moment := moment + chance.expovariate(PER_SECOND)) < seconds:
        due.append(moment)
    return due


def listed(url: str, authorization: str) -> int:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": authorization})) as answer:
        return len(json.load(answer)["identifiers"])


def measure(crowds: dict[str, Crowd], rounds: int) -> None:
    p50: dict[str, list[float]] = {name: [] for name in crowds}
    latencies: dict[str, list[float]] = {name: [] for name in crowds}
    for number in range(1, rounds + 1):
        for name in [*crowds][:: 1 if number % 2 else -1]:
            times = crowds[name].run(arrivals(number, SECONDS))
            p50[name].append(median(times))
            latencies[name] += times
    for name, times in latencies.items():
        half, most = median(times), percentile(times, 0.99)
        print(f"  {name:3} {len(times)} listings, p50 {half:.1f} ms, p99 {most:.0f} ms, longest {max(times):.0f} ms")
    claim(f"p50 of {USERS} users at {PER_SECOND} listings a second", median(latencies["on"]), 150, unit=" ms")
    claim("p50 of authorization on : off", ratio(p50["on"], p50["off"]), 1.1, unit="x")


if __name__ == "__main__":
    main(sys.argv[1:])
