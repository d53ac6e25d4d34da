"""Load table on the Iceberg wire: authorization on against off, rights of groups against rights of users, and all
against a bare Django view of the same bytes.

The servers run side by side and are asked in turn, round by round; ratios are medians over the rounds.
"""

from __future__ import annotations

import os
import random
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import claim, finish, median, on_both_databases, percentile, ratio, serve, serve_twin
from benchmarks.http import Load
from tests import processes
from tests.ports import free_port

# Many short turns, so that a disturbance of some does not change the medians.
ROUNDS, SECONDS = 40, 0.4


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.load_table", arguments)
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, first_catalog, grant, group, members, role, schema
    from metalake.privileges import Privilege

    owner = first_catalog()
    home = schema(owner, "a:b:c")
    reader, grouped = members(["reader", "grouped"])
    readers = role("readers", reader)
    group("analysts", [grouped], [readers])
    grant(readers, Privilege.USE_CATALOG, [home.lineage_ids[1]])
    grant(readers, Privilege.USE_SCHEMA, [home.lineage_ids[2]])
    grant(readers, Privilege.SELECT_TABLE, [home.pk])
    user, member, admin = (
        f"Bearer {issue_token(one, 'bench')}" for one in (reader, grouped, User.objects.get(username="admin"))
    )
    path = f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/a%1Fb%1Fc/tables/t"
    with ExitStack() as stack:
        on = serve(stack).url
        make_table(on, METALAKE, CATALOG, admin)
        off = serve_twin(stack, METALAKE_AUTHORIZATION="off").url
        loads = {
            "on": Load(on + path, user),
            "groups": Load(on + path, member),
            "off": Load(off + path, user),
            "bare": Load(bare(stack, fetch(on + path, user)) + path, user),
        }
        measure(loads, int(arguments[0]) if arguments else ROUNDS)
    finish()


def make_table(url: str, metalake: str, catalog: str, authorization: str, columns: int = 30) -> None:
    import pyarrow as pa

    from pipelines.rest import Client

    lake = Client(url, token=authorization.removeprefix("Bearer ")).iceberg(metalake, catalog)
    schema = pa.schema([(f"column_{n}", pa.string()) for n in range(columns)])
    table = lake.create_table(("a", "b", "c", "t"), schema=schema)
    for _ in range(3):
        table.append(schema.empty_table())


def fetch(url: str, authorization: str) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": authorization})
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


def bare(stack: ExitStack, content: bytes) -> str:
    port, home = free_port(), Path(os.environ["METALAKE_HOME"])
    stored, url = home / "bytes", f"http://127.0.0.1:{port}"
    stored.write_bytes(content)
    command = [sys.executable, "-m", "benchmarks.bare", str(port), str(stored)]
    process = processes.start("the bare server", command, home / "bare.log", lambda: processes.answers(url))
    stack.callback(processes.kill, process)
    return url


def measure(loads: dict[str, Load], rounds: int) -> None:
    from django.db import connection

    for load in loads.values():
        load.run(1.0)
    rates: dict[str, list[float]] = {name: [] for name in loads}
    latencies: dict[str, list[float]] = {name: [] for name in loads}
    order, chance = [*loads], random.Random(0)
    for _ in range(rounds):
        # A random order, so that neither drift of the machine nor the turn before favours one.
        chance.shuffle(order)
        for name in order:
            rates[name].append(loads[name].run(SECONDS))
            latencies[name] += loads[name].latencies
    p50 = {name: percentile(latencies[name], 0.5) for name in loads}
    for name in loads:
        p99 = percentile(latencies[name], 0.99)
        print(f"  {name:6} {median(rates[name]):7.0f} requests/s, p50 {p50[name]:.2f} ms, p99 {p99:.2f} ms")
    claim("authorization on : off", ratio(rates["on"], rates["off"]), 0.95, at_least=True, unit="x")
    claim("what authorization adds to p50", p50["on"] - p50["off"], 2, unit=" ms")
    claim("rights of groups : of users", ratio(rates["groups"], rates["on"]), 0.95, at_least=True, unit="x")
    claim("what groups add to p50", p50["groups"] - p50["on"], 2, unit=" ms")
    share = ratio(rates["on"], rates["bare"])
    if connection.vendor == "sqlite":
        claim("Metalake : bare Django view", share, 0.5, at_least=True, unit="x")
    else:  # PostgreSQL is another process, which the bare view does not have to ask
        print(f"  Metalake : bare Django view: {share:.2f}x")


if __name__ == "__main__":
    main(sys.argv[1:])
