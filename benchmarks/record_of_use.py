"""The record of use: what it costs a load (on against off, in turns), and what 1,000 members x 1,000 objects take in a
month, each pair in one hour a day.

    python -m benchmarks.record_of_use [rounds] [days]

With fewer days than thirty the size is extrapolated, and the line says so. SQLite's rows are in the store's file,
PostgreSQL's in pg_total_relation_size.
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack

from benchmarks.harness import claim, finish, median, on_both_databases, ratio, serve, serve_twin
from benchmarks.http import Load
from benchmarks.load_table import make_table

ROUNDS, SECONDS = 40, 0.4
DAYS, MEMBERS, OBJECTS = 30, 1000, 1000
GOAL = 3e9  # bytes
AT_ONCE = 20_000  # rows of a batch


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.record_of_use", arguments)
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, first_catalog, schema

    owner = first_catalog()
    schema(owner, "a:b:c")
    admin = f"Bearer {issue_token(User.objects.get(username='admin'), 'bench')}"
    path = f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/a%1Fb%1Fc/tables/t"
    given = [int(text) for text in arguments]
    rounds, days = [*given, *[ROUNDS, DAYS][len(given) :]]
    with ExitStack() as stack:
        on = serve(stack).url
        make_table(on, METALAKE, CATALOG, admin)
        off = serve_twin(stack, METALAKE_USE_DAYS="0").url
        loads = {"on": Load(on + path, admin), "off": Load(off + path, admin)}
        _measure(loads, rounds)
    size = _fill(days)
    extent = "" if days == DAYS else f" (of {days} days, extrapolated)"
    claim(f"a month of {MEMBERS} members x {OBJECTS} objects{extent}", size * DAYS / days / 1e9, GOAL / 1e9, unit=" GB")
    finish()


def _measure(loads: dict[str, Load], rounds: int) -> None:
    for load in loads.values():
        load.run(1.0)
    rates: dict[str, list[float]] = {name: [] for name in loads}
    order, chance = [*loads], random.Random(0)
    for _ in range(rounds):
        chance.shuffle(order)
        for name in order:
            rates[name].append(loads[name].run(SECONDS))
    for name, each in rates.items():
        print(f"  {name:4} {median(each):7.0f} loads/s")
    claim("loads with the record of use on : off", ratio(rates["on"], rates["off"]), 0.98, at_least=True, unit="x")


def _fill(days: int) -> float:
    """Write that many days of use as processes write it, in the order of time, and return the bytes that they take."""
    from access.usage import writer as writing
    from authz import usage_counter as asked

    before, chance, writer = _bytes(), random.Random(1), writing.Writer()
    for day in range(days):
        pairs: list[list[tuple[int, int]]] = [[] for _ in range(24)]
        for member in range(1, MEMBERS + 1):
            for about in range(1, OBJECTS + 1):
                pairs[chance.randrange(24)].append((member, about))
        for hour, some in enumerate(pairs):
            chance.shuffle(some)  # as requests come
            for begin in range(0, len(some), AT_ONCE):
                asked.put_back(dict(_questions(day * 24 + hour, some[begin : begin + AT_ONCE], chance)))
                assert writer.write()
        print(f"  day {day + 1} of {days}", end="\r", flush=True)
    return _bytes() - before


def _questions(hour: int, pairs, chance: random.Random):
    from authz.usage_counter import ALLOWED, HOUR, Count, Question

    for member, about in pairs:
        first = hour * HOUR + chance.randrange(HOUR)
        asked = Question(hour, member, (), None, 1, about, "load_table", ALLOWED, "iceberg", "java")
        yield asked, Count(chance.randint(1, 20), first, first)


def _bytes() -> float:
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_total_relation_size('authz_use')")
            return float(cursor.fetchone()[0])
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0]
        cursor.execute("PRAGMA page_size")
        return float(pages * cursor.fetchone()[0])


if __name__ == "__main__":
    main(sys.argv[1:])
