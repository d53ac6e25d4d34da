"""Loading a view against loading a table on both wires, and a view with 1,000 versions against one with one version.

The views are Iceberg views beside the table, and views that Metalake stores itself. One server answers all, in turn,
round by round; ratios are medians over the rounds. `python -m benchmarks.load_view [rounds]`
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.harness import claim, finish, median, on_both_databases, percentile, ratio, serve
from benchmarks.http import Load
from benchmarks.usage import processor_seconds
from benchmarks.views import PROVIDERS, ROWS, catalog_of_rows, make_view, schema_in

if TYPE_CHECKING:
    from tests.servers import MetalakeServer

# Many short turns, so that a disturbance of some does not change the medians.
ROUNDS, SECONDS = 40, 0.4
VERSIONS = 1000
NATIVE, ICEBERG, STORED_HERE = "native", "Iceberg wire", "native, stored here"


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.load_view", arguments, METALAKE_PROVIDERS=PROVIDERS)
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.load_table import make_table
    from benchmarks.population import CATALOG, METALAKE, first_catalog, grant, member, role, schema
    from metalake.models import Securable
    from metalake.privileges import Privilege

    owner = first_catalog()
    catalog_of_rows(owner)
    schema(owner, "a:b:c")
    schema_in(owner, ROWS, "a:b:c")
    for catalog in (CATALOG, ROWS):
        make_view(owner, catalog, "a:b:c", "v")
        make_view(owner, catalog, "a:b:c", "many", VERSIONS)
    user = member("reader")
    readers = role("readers", user)
    catalogs = Securable.objects.filter(kind="catalog").values_list("pk", flat=True)
    for privilege in (
        Privilege.USE_CATALOG,
        Privilege.USE_SCHEMA,
        Privilege.SELECT_TABLE,
        Privilege.SELECT_VIEW,
    ):
        grant(readers, privilege, list(catalogs))
    reader, admin = (f"Bearer {issue_token(one, 'bench')}" for one in (user, User.objects.get(username="admin")))
    with ExitStack() as stack:
        server = serve(stack, METALAKE_PROVIDERS=PROVIDERS)
        url = server.url
        make_table(url, METALAKE, CATALOG, admin)
        native = f"{url}/api/metalakes/{METALAKE}/catalogs/{{}}/schemas/a:b:c"
        homes = {
            NATIVE: native.format(CATALOG),
            ICEBERG: f"{url}/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/a%1Fb%1Fc",
            STORED_HERE: native.format(ROWS),
        }
        paths = {(home, leaf): f"{homes[home]}/views/{leaf}" for home in homes for leaf in ("v", "many")}
        paths |= {(home, "t"): f"{homes[home]}/tables/t" for home in (NATIVE, ICEBERG)}
        measure(
            server,
            {what: Load(path, reader) for what, path in paths.items()},
            int(arguments[0]) if arguments else ROUNDS,
        )
    finish()


def measure(server: MetalakeServer, loads: dict[tuple[str, str], Load], rounds: int) -> None:
    for load in loads.values():
        load.run(1.0)
    rates: dict[tuple[str, str], list[float]] = {what: [] for what in loads}
    latencies: dict[tuple[str, str], list[float]] = {what: [] for what in loads}
    costs: dict[tuple[str, str], list[float]] = {what: [] for what in loads}
    order, chance = [*loads], random.Random(0)
    for _ in range(rounds):
        # A random order, so that neither drift of the machine nor the turn before favours one.
        chance.shuffle(order)
        for what in order:
            before = processor_seconds(server)
            rates[what].append(loads[what].run(SECONDS))
            costs[what].append((processor_seconds(server) - before) / len(loads[what].latencies) * 1e6)
            latencies[what] += loads[what].latencies
    names = {"t": "table", "v": "view", "many": f"view of {VERSIONS:,} versions"}
    for (home, leaf), each in rates.items():
        p50 = percentile(latencies[home, leaf], 0.5)
        cost = f"{median(costs[home, leaf]):.0f} us of processor time each"
        print(f"  {home}, {names[leaf]}: {median(each):.0f} requests/s, p50 {p50:.2f} ms, {cost}")
    for home, wire in ((NATIVE, NATIVE), (ICEBERG, ICEBERG), (STORED_HERE, NATIVE)):
        claim(f"{home}, view : table", ratio(rates[home, "v"], rates[wire, "t"]), 0.9, at_least=True, unit="x")
        longer = ratio(rates[home, "v"], rates[home, "many"])
        claim(f"{home}, time with {VERSIONS:,} versions : with one", longer, 1.2, unit="x")


if __name__ == "__main__":
    main(sys.argv[1:])
