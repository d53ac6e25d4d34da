"""Listing 5,000 tables of a Hive Metastore and of Glue through Metalake, against the bare client: for a metastore its
call that distinguishes tables from views, for Glue its pages.

Metalake asks the outside system at each listing, and has rows of all tables already. Both sides are measured in turn,
round by round. `python -m benchmarks.list_external [tables]` takes that many tables instead.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from benchmarks.harness import claim, finish, median, on_both_databases, percentile, ratio, serve

TABLES, ROUNDS = 5_000, 7
LIMIT = 1.3

Fetch = Callable[[], int]
"""Makes one listing and returns the number of names."""


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_external", arguments)
    tables = int(arguments[0]) if arguments else TABLES
    from authz.callers.identity import issue_token
    from benchmarks.outside import DELAY, GlueProcess, fill_glue, fill_metastore, metastore, outside_catalog
    from benchmarks.population import METALAKE, first_catalog, reader_of_outside_tables
    from tests.hms import running_hms

    owner = first_catalog()
    with ExitStack() as stack:
        hms, stand_in = stack.enter_context(running_hms()), GlueProcess(stack)
        database = fill_metastore(hms, tables)
        fill_glue(stand_in.glue, "flights", tables)
        outside_catalog(owner, "hive", "hive", **{"metastore.uris": hms.uri})
        outside_catalog(owner, "glue", "glue", **stand_in.settings)
        url, token = serve(stack).url, f"Bearer {issue_token(reader_of_outside_tables(), 'bench')}"

        def ours(catalog: str, schema: str) -> Fetch:
            asked = f"{url}/api/metalakes/{METALAKE}/catalogs/{catalog}/schemas/{schema}/tables"
            return lambda: listed(asked, token)

        thrift, aws = stack.enter_context(metastore(hms)), stand_in.glue.client()
        pages = aws.get_paginator("get_tables")

        def named(*kinds: str) -> int:
            by_kind = [thrift.get_tables_by_type(database, "*", kind) for kind in kinds]
            return len(thrift.get_all_tables(database)) + sum(map(len, by_kind))

        metas = partial(thrift.get_table_meta, database, "*", [])
        through = compare("Hive Metastore", tables, ours("hive", database), lambda: len(metas()))
        for kinds in ((), ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")):
            alone = median([duration(partial(named, *kinds), tables) for _ in range(ROUNDS)])
            what = "names and names of views" if kinds else "names alone, views among them"
            print(f"    {what}: {alone:.0f} ms; Metalake : that {through / alone:.1f}x")

        def fetch() -> int:
            return sum(len(page["TableList"]) for page in pages.paginate(DatabaseName="flights"))

        compare("Glue", tables, ours("glue", "flights"), fetch)
        stand_in.delay(DELAY)
        compare(f"Glue, {DELAY * 1000:.0f} ms a call", tables, ours("glue", "flights"), fetch)
    finish()


def listed(url: str, authorization: str) -> int:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": authorization})) as answer:
        return len(json.load(answer)["identifiers"])


def duration(fetch: Fetch, expected: int) -> float:
    """Milliseconds of one listing."""
    started = time.perf_counter()
    count = fetch()
    seconds = time.perf_counter() - started
    assert count == expected, f"{count} of {expected} tables are listed"
    return seconds * 1000


def compare(what: str, tables: int, ours: Fetch, bare: Fetch) -> float:
    """Compare the two; returns Metalake's median in milliseconds."""
    print(f"  {what}: the first listing, which meets the tables, takes {duration(ours, tables):.0f} ms")
    for fetch in (ours, bare):
        for _ in range(2):
            duration(fetch, tables)
    times: dict[str, list[float]] = {"Metalake": [], "bare client": []}
    for number in range(ROUNDS):
        for name, fetch in (("Metalake", ours), ("bare client", bare))[:: 1 if number % 2 else -1]:
            times[name].append(duration(fetch, tables))
    for name, all_of_them in times.items():
        print(f"    {name}: p50 {median(all_of_them):.0f} ms, p90 {percentile(all_of_them, 0.9):.0f} ms")
    claim(f"{tables:,} tables of {what}, Metalake : bare client", ratio(*times.values()), LIMIT, unit="x")
    return median(times["Metalake"])


if __name__ == "__main__":
    main(sys.argv[1:])
