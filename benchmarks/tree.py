"""A large tree of namespaces against a store of a hundred: loading, listing, making and dropping on the Iceberg wire.

The tree has 1,023 namespaces, 2,046 tables and some 1,535 views; with `--long` 1,048,575 namespaces, 2,097,150 tables
and some 1,572,860 views, loaded in bulk. Each store is measured in a process of its own, in turn.
`python -m benchmarks.tree [--long]`
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

WIDTH = 4  # namespaces in each that has any
SMALL, LARGE, LONG = (1, 3), (3, 5), (3, 10)  # trees side by side, and the levels of each: 21, 1,023, 1,048,575
TURNS, ROUNDS = 3, 60
COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
MOST = 1.5


def main(arguments: list[str]) -> None:
    if shape := os.environ.get("BENCH_TREE"):
        print(json.dumps(measure(*json.loads(shape))))
        return
    large, many = (LONG, 1) if "--long" in arguments else (LARGE, TURNS)
    turns = [(in_a_process(SMALL), in_a_process(large)) for _ in range(many)]
    for what in turns[0][0]:
        small, big = (median([turn[side][what] for turn in turns]) for side in (0, 1))
        claim(f"{what}: {big:.2f} ms, in a store of a hundred {small:.2f} ms", big / small, MOST, unit="x")
    finish()


def in_a_process(shape: tuple[int, int]) -> dict[str, float]:
    environment = os.environ | {"BENCH_TREE": json.dumps(shape)}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tree"], env=environment, stdout=subprocess.PIPE, check=True
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def measure(trees: int, levels: int) -> dict[str, float]:
    """Milliseconds of each work, in a store whose namespaces are so many trees of so many levels."""
    own_store()
    from django.test import Client

    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, first_catalog, schema

    owner = first_catalog()
    admin = User.objects.get(username="admin")
    path = "%1F".join(fill([schema(owner, f"top{n}") for n in range(trees)], levels))
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


def fill(tops: list[Any], levels: int) -> list[str]:
    """Grow trees from namespaces, with two tables and one or two views in each; the way to one of the ends.

    A level takes three statements, so a million rows take minutes.
    """
    from benchmarks.population import analyze
    from metalake.kinds import Kind

    ids = sorted(top.pk for top in tops)
    above, way = (ids[0], ids[-1] + 1), [tops[0].name]
    for level in range(levels):
        insert_below(above, ["t0", "t1"], Kind.TABLE)
        insert_below(above, ["v0", "v1"], Kind.VIEW)
        if level + 1 < levels:
            above = insert_below(above, [f"n{n}" for n in range(WIDTH)], Kind.SCHEMA)
            way.append("n0")
    analyze()
    return way


def insert_below(parents: tuple[int, int], names: list[str], kind: Any) -> tuple[int, int]:
    """Objects in each namespace whose id is in a range; the range of theirs. Half of the parents have no `v1`."""
    from django.db import connection, transaction

    from metalake.kinds import slot_of
    from metalake.models import Securable

    first = Securable.objects.latest("pk").pk
    each = " UNION ALL ".join(f"SELECT '{name}' AS name" for name in names)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO metalake_securable (id, kind, slot, name, parent_id, lineage, owner_user_id, properties, "
            "version, spec_version, creator, create_time) "
            "SELECT n, %s, %s, name, parent, lineage || '/' || n, owner_user_id, '{}', 1, '1.0', 'bench', create_time "
            "FROM (SELECT %s + ROW_NUMBER() OVER (ORDER BY p.id, each.name) AS n, each.name AS name, p.id AS parent, "
            "p.lineage AS lineage, p.owner_user_id AS owner_user_id, p.create_time AS create_time "
            f"FROM metalake_securable p CROSS JOIN ({each}) each WHERE p.kind = 'schema' AND p.id >= %s AND p.id < %s "
            "AND (each.name <> 'v1' OR p.id %% 2 = 0)) made",
            [kind.value, str(slot_of(kind)), first, *parents],
        )
        made = first + 1, first + 1 + cursor.rowcount
        if kind == "schema":
            cursor.execute(
                "INSERT INTO catalogs_schema (securable_ptr_id, catalog_id, physical_name) "
                "SELECT s.id, above.catalog_id, above.physical_name || %s || s.name FROM metalake_securable s "
                "JOIN catalogs_schema above ON above.securable_ptr_id = s.parent_id WHERE s.id >= %s AND s.id < %s",
                ["\x01", *made],
            )
        else:
            point(cursor, kind, made)
    return made


def point(cursor: Any, kind: Any, ids: tuple[int, int]) -> None:
    """The rows that tables and views have besides, with a pointer to no file."""
    from django.db import connection

    from benchmarks.population import POINTERS

    table, uuid = POINTERS[kind]
    fresh = "gen_random_uuid()" if connection.vendor == "postgresql" else "lower(hex(randomblob(16)))"
    cursor.execute(
        f"INSERT INTO {table} (securable_ptr_id, metadata_location, {uuid}) "
        f"SELECT id, '', {fresh} FROM metalake_securable WHERE id >= %s AND id < %s",
        ids,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
