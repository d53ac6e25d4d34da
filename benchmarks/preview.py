"""Proposing a role for people, with the plan and whom it lets in, over 1,000,000 objects.

`python -m benchmarks.preview [schemas]` takes that many schemas of 1,000 tables each instead of 1,000. All of it goes
through the native wire, called in this process.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import orjson

from benchmarks.harness import claim, finish, median, on_both_databases, percentile, timed
from benchmarks.reach import SCHEMAS, TABLES, World

ROUNDS = 20
LIMIT = 300.0  # milliseconds


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.preview", arguments)
    schemas = int(arguments[0]) if arguments else SCHEMAS
    started = time.perf_counter()
    world = World(schemas)
    print(f"  {schemas * (TABLES + 1) + 2:,} objects written in {time.perf_counter() - started:.0f} s")
    name = world.schemas[1].name
    places = {"table": f"lake.{name}.table1007", "schema": f"lake.{name}", "catalog": "lake", "metalake": "bench"}
    for kind, full_name in places.items():
        for who in ({"users": ["user00000"]}, {"groups": [f"group{n}" for n in range(0, 50, 2)]}):
            preview(world, {"type": kind, "fullName": full_name, **who})
    whole(world)
    finish()


def preview(world: World, wish: dict[str, Any]) -> None:
    body = orjson.dumps(wish | {"privileges": [{"name": "modify_table", "condition": "allow"}]})
    plan = world.call("admin", "proposals", body).json()["proposal"]["plan"]
    times = timed(lambda: world.call("admin", "proposals", body), ROUNDS, 2)
    who = "a user" if "users" in wish else f"{len(wish['groups'])} groups"
    print(f"  {who}, on a {wish['type']}: {plan['summary']}")
    print(f"  p50 {median(times):.0f} ms, p99 {percentile(times, 0.99):.0f} ms")
    claim(f"a proposal for {who} on a {wish['type']}", median(times), LIMIT, unit=" ms")


def whole(world: World) -> None:
    """The same without a limit on counting, for comparison."""
    changes = [
        {"change": "createRole", "role": "writers"},
        {"change": "grant", "role": "writers", "privilege": "modify_table", "condition": "allow",
         "on": {"type": "catalog", "fullName": "lake"}},
        *({"change": "assign", "role": "writers", "group": f"group{n}"} for n in range(0, 50, 2)),
    ]  # fmt: skip
    body = orjson.dumps({"changes": changes})
    times = timed(lambda: world.call("admin", "changes", body), 3, 1)
    plan = world.call("admin", "changes", body).json()["plan"]
    print(f"  a plan that counts everything: {median(times):.0f} ms, {plan['summary']}")


if __name__ == "__main__":
    main(sys.argv[1:])
