"""A large tree of namespaces against a store of a hundred: loading, listing, making and dropping on the Iceberg wire.

The tree has 1,023 namespaces, 2,046 tables and 1,608 views. Each store is measured in a process of its own, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

from benchmarks.harness import claim, finish, median, own_store, timed

LEVELS, SMALL = 10, 5
TURNS, ROUNDS = 3, 60
COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
MOST = 1.5


def main() -> None:
    if os.environ.get("BENCH_LEVELS"):
        print(json.dumps(measure(int(os.environ["BENCH_LEVELS"]))))
        return
    turns = [(in_a_process(SMALL), in_a_process(LEVELS)) for _ in range(TURNS)]
    for what in turns[0][0]:
        small, big = (median([turn[side][what] for turn in turns]) for side in (0, 1))
        claim(f"{what}: {big:.2f} ms, in a store of a hundred {small:.2f} ms", big / small, MOST, unit="x")
    finish()


def in_a_process(levels: int) -> dict[str, float]:
    environment = os.environ | {"BENCH_LEVELS": str(levels)}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tree"], env=environment, stdout=subprocess.PIPE, check=True
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def measure(levels: int) -> dict[str, float]:
    """Milliseconds of each work, in a store whose namespaces are a binary tree of so many levels."""
    own_store()
    from django.test import Client

    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, first_catalog, schema

    owner = first_catalog()
    admin = User.objects.get(username="admin")
    path = "%1F".join(fill(schema(owner, "top"), levels, admin))
    client, token = Client(), f"Bearer {issue_token(admin, 'bench')}"
    base, numbers = f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces", count()

    def ask(method: str, where: str, body: Any = None) -> None:
        target = base + where
        given = b"" if body is None else json.dumps(body).encode()
        answer = client.generic(method, target, given, "application/json", HTTP_AUTHORIZATION=token, RAW_URI=target)
        assert answer.status_code < 300, answer.content

    tables = f"/{path}/tables"
    ask("POST", tables, {"name": "t", "schema": COLUMNS})
    levels_of = path.split("%1F")

    def make_table() -> None:
        ask("POST", tables, {"name": f"new_{next(numbers)}", "schema": COLUMNS})

    def make_and_drop(kind: str) -> None:
        name = f"gone_{next(numbers)}"
        if kind == "table":
            ask("POST", tables, {"name": name, "schema": COLUMNS})
            ask("DELETE", f"{tables}/{name}")
        else:
            ask("POST", "", {"namespace": [*levels_of, name]})
            ask("DELETE", f"/{path}%1F{name}")

    works: dict[str, Callable[[], None]] = {
        "load a table": lambda: ask("GET", f"{tables}/t"),
        "list tables": lambda: ask("GET", f"/{levels_of[0]}/tables"),
        "list namespaces": lambda: ask("GET", f"?parent={levels_of[0]}"),
        "create a table": make_table,
        "create and drop a table": lambda: make_and_drop("table"),
        "create and drop a namespace": lambda: make_and_drop("namespace"),
    }
    return {what: median(timed(act, ROUNDS)) for what, act in works.items()}


def fill(top: Any, levels: int, owner: Any) -> list[str]:
    """Fill a binary tree with two tables and a view or two in each namespace; the way to one of its ends."""
    from benchmarks.population import analyze, children
    from catalogs.models import Schema
    from metalake.kinds import Kind

    above, way = [top], [top.name]
    for level in range(levels):
        for each in above:
            children(each, ["t0", "t1"], Kind.TABLE, owner)
            children(each, ["v0"] if level % 3 else ["v0", "v1"], Kind.VIEW, owner)
            if level + 1 < levels:
                children(each, ["left", "right"], Kind.SCHEMA, owner)
        if level + 1 < levels:
            above = list(Schema.objects.filter(parent_id__in=[each.pk for each in above]))
            way.append("left")
    analyze()
    return way


if __name__ == "__main__":
    main()
