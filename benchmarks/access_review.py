"""The executors' part of an access review, on one core and on two: 1,000,000 objects, 1,000 people, 100,000 grants.

    python -m benchmarks.access_review [--short]

The state comes from a generator in place of the server's stream, of the same lines; `--short` has a twentieth of it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import claim, finish

OBJECTS, PEOPLE, GRANTS, ROLES = 1_000_000, 1_000, 100_000, 1_000
ROLES_OF_ONE, TABLES_OF_SCHEMA, SCHEMAS_OF_CATALOG = 10, 50, 200
SECONDS, SPEEDUP = 600.0, 1.6
PRIVILEGES = ("use_catalog", "use_schema", "select_table", "modify_table")
GRANTED = "2026-01-01T00:00:00+00:00"


def lines(share: float) -> Iterator[dict[str, Any]]:
    """A state: catalogs of schemas of tables, owners among the people, and grants at random, a tenth of them DENY."""
    chance = random.Random(17)
    people, roles = range(1, PEOPLE + 1), range(10_000, 10_000 + ROLES)
    yield {"metalake": "bench", "id": 0, "place": 1, "moment": "2026-11-01T00:00:00.000000Z"}
    for user in people:
        yield {"topic": "user_roles", "holder": user, "has": chance.sample(roles, ROLES_OF_ONE)}
        yield {"topic": "members", "id": user, "name": f"user{user:04}"}
    top = 100_000
    yield _object(top, None, "bench", "metalake", 1)
    for role in roles:
        yield _object(role, top, f"role{role}", "role", 1)
    count, id = int(OBJECTS * share), top
    kinds: dict[str, list[int]] = {"catalog": [], "schema": [], "table": []}
    while id - top < count:
        for kind, parent, many in (("catalog", top, 1), ("schema", 0, SCHEMAS_OF_CATALOG)):
            for _ in range(many):
                id += 1
                kinds[kind].append(id)
                yield _object(id, parent or kinds["catalog"][-1], f"{kind}{id}", kind, chance.choice(people))
                for _ in range(TABLES_OF_SCHEMA if kind == "schema" else 0):
                    id += 1
                    kinds["table"].append(id)
                    yield _object(id, kinds["schema"][-1], f"table{id}", "table", chance.choice(people))
    containers = {*kinds["catalog"], *kinds["schema"]}
    for _ in range(int(GRANTS * share)):
        on = chance.choice(kinds[chance.choices(("catalog", "schema", "table"), (1, 10, 89))[0]])
        is_table = on not in containers
        one = {"privilege": chance.choice(PRIVILEGES[2:] if is_table else PRIVILEGES[1:]), "granted": GRANTED}
        effect = "deny" if chance.random() < 0.1 else "allow"
        yield {"topic": "grants", "role": chance.choice(roles), "on": on, "grants": [{**one, "effect": effect}]}
    for role in roles:
        entries = [{"privilege": each, "effect": "allow", "granted": GRANTED} for each in PRIVILEGES[:2]]
        yield {"topic": "grants", "role": role, "on": top, "grants": entries}


def _object(id: int, parent: int | None, name: str, kind: str, owner: int) -> dict[str, Any]:
    return {"topic": "object", "id": id, "parent": parent, "name": name, "kind": kind, "ownerUser": owner}


def measure(cores: int, share: float) -> dict[str, float]:
    """Seconds of reading and of resolving, and the rows, in this process."""
    import django
    from pyspark.sql import SparkSession

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()  # for the rules, which the server's endpoint tells a job

    from access.explain.rules import rules
    from pipelines.job import bring_python
    from pipelines.review import executors
    from pipelines.review.rules import rules_in
    from pipelines.review.state import World

    began = time.perf_counter()
    world = World(":")
    for _ in world.read(lines(share)):
        pass
    principals, grants = world.principals(), list(world.grants({}))
    read = time.perf_counter() - began
    bring_python()
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", "2g")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    session.range(1).count()
    began = time.perf_counter()
    types = dict.fromkeys(world.catalogs(), "relational")
    frame, _ = executors.rights(session, ("now", _moment()), principals, grants, rules_in(rules()), types)
    rows = frame.count()
    return {"objects": len(world.objects), "grants": len(grants), "read": read, "rows": rows,
            "resolve": time.perf_counter() - began}  # fmt: skip


def _moment() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 11, 1, tzinfo=UTC)


def main(arguments: list[str]) -> None:
    share = 0.05 if "--short" in arguments else 1.0
    if "--cores" in arguments:
        print(json.dumps(measure(int(arguments[arguments.index("--cores") + 1]), share)))
        return
    figures = {cores: _apart(cores, share) for cores in (1, 2)}
    one, two = figures[1], figures[2]
    for cores, took in figures.items():
        print(
            f"  local[{cores}]: {took['objects']:,.0f} objects, {PEOPLE:,} people, {took['grants']:,.0f} grants, "
            f"read in {took['read']:.1f} s, resolved to {took['rows']:,.0f} rows in {took['resolve']:.1f} s"
        )
    claim("an access review, read and resolved on two cores", two["read"] + two["resolve"], SECONDS, unit=" s")
    ratio = one["resolve"] / two["resolve"]
    claim("local[2] to local[1] in the executors' part", ratio, SPEEDUP, at_least=True)
    finish()


def _apart(cores: int, share: float) -> dict[str, float]:
    more = ["--short"] if share < 1 else []
    command = [sys.executable, "-m", "benchmarks.access_review", "--cores", str(cores), *more]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    took: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return took


if __name__ == "__main__":
    main(sys.argv[1:])
