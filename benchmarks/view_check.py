"""builtin-view_check over 5,000 views of one Iceberg catalog, one in twenty of them broken; then again.

    python -m benchmarks.view_check [--short] [views]

Each reads one of a hundred tables, and every third another view. `--short` takes 200 views.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

from benchmarks.audit_rollup import of_job, run, snapshots
from benchmarks.harness import claim, finish, own_store, serve

VIEWS, SHORT, TABLES = 5000, 200, 100
MINUTES, BROKEN = 5.0, 20


def main(arguments: list[str]) -> None:
    given = [each for each in arguments if each != "--short"]
    views = int(given[0]) if given else SHORT if "--short" in arguments else VIEWS
    own_store()
    began = time.perf_counter()
    token = fill(views)
    print(f"  {views:,} views made in {time.perf_counter() - began:.0f} s", flush=True)
    with ExitStack() as stack:
        environment = of_job(serve(stack).url, token)
        seconds = run(environment, "view_check")
        claim(f"minutes for {views:,} views", seconds / 60, MINUTES, unit=" min")
        before = snapshots(environment["METALAKE_URL"], token, "lineage")
        run(environment, "view_check")
        claim("tables that the next run wrote to", snapshots(environment["METALAKE_URL"], token, "lineage") - before, 0)
    finish()


def fill(views: int) -> str:
    """A metalake with the system catalog, tables and views; the token of its owner."""
    from authz.actor import Actor
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks import population
    from catalogs.services import schemas
    from catalogs.services.tables import create_table
    from catalogs.table_stores import TableDraft
    from formats.native.views import CreateViewRequest
    from jobs.services import system
    from metalake.kinds import Kind
    from metalake.lineage import Address
    from views_mgmt.services.views import create_view

    owner: Actor = population.first_catalog()
    system.create(owner, population.METALAKE)
    home = Address(metalake=population.METALAKE, catalog=population.CATALOG, schema="s")
    schemas.create_schema(owner, home, None, {})

    def address(name: str, kind: Kind) -> Address:
        return Address(metalake=home.metalake, catalog=home.catalog, schema="s", leaf=name, leaf_kind=kind)

    columns = [{"name": f"c{number}", "type": "long"} for number in range(1, 11)]
    fields = [{"id": number, "name": f"c{number}", "type": "long", "required": False} for number in range(1, 11)]
    for number in range(TABLES):
        draft = TableDraft({"type": "struct", "fields": fields}, None, None, {})
        create_table(owner, address(f"t{number}", Kind.TABLE), draft)
    place = {"defaultCatalog": home.catalog, "defaultSchema": "s"}
    for number in range(views):
        query = {"type": "sql", "dialect": "spark", "sql": sql_of(number)} | place
        body = {"name": f"v{number}", "columns": columns[:3], "representations": [query]}
        create_view(owner, address(f"v{number}", Kind.VIEW), CreateViewRequest.model_validate(body))
    return issue_token(User.objects.get(username="admin"), "bench")


def sql_of(number: int) -> str:
    if number % BROKEN == 0:
        return f"SELECT c1, c2, nope FROM t{number % TABLES}"
    if number % 3 == 1 and number > 3:
        return f"SELECT v.c1, t.c2 + 1 AS c2, v.c3 FROM v{number - 2} v JOIN t{number % TABLES} t ON t.c1 = v.c1"
    return f"SELECT c1, max(c2) AS c2, sum(c3) AS c3 FROM t{number % TABLES} WHERE c9 > {number} GROUP BY c1"


if __name__ == "__main__":
    main(sys.argv[1:])
