"""Listing 10,000 views of one schema as a user who may see 1 %: on both wires, and with details.

The views are Iceberg views, and views that Metalake stores itself. `python -m benchmarks.list_views [views]`
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed
from benchmarks.views import PROVIDERS, ROWS, catalog_of_rows, fill_with_views, schema_in

VIEWS = 10_000
SLOWEST, MOST_STATEMENTS = 150, 6  # milliseconds


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_views", arguments, METALAKE_PROVIDERS=PROVIDERS)
    from django.test import Client

    from authz.callers.identity import issue_token
    from benchmarks.population import CATALOG, METALAKE, analyze, first_catalog, grant, member, role
    from metalake.models import Securable
    from metalake.privileges import Privilege

    count = int(arguments[0]) if arguments else VIEWS
    owner = first_catalog()
    catalog_of_rows(owner)
    user = member("sees_one_percent")
    readers = role("readers", user)
    names = [f"view_{number:05}" for number in range(count)]
    for catalog in (CATALOG, ROWS):
        home = schema_in(owner, catalog, "wide")
        views = fill_with_views(home, names)
        grant(readers, Privilege.USE_CATALOG, [Securable.objects.get(pk=home).lineage_ids[1]])
        grant(readers, Privilege.USE_SCHEMA, [home])
        grant(readers, Privilege.SELECT_VIEW, views[::100])
    analyze()

    native = f"/api/metalakes/{METALAKE}/catalogs/{{}}/schemas/wide/views"
    client = Client(headers={"Authorization": f"Bearer {issue_token(user, 'bench')}"})
    for what, path in (
        ("native", native.format(CATALOG)),
        ("native, with details", native.format(CATALOG) + "?details=true"),
        ("native, stored here", native.format(ROWS)),
        ("native, stored here, with details", native.format(ROWS) + "?details=true"),
        ("Iceberg wire", f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/wide/views"),
    ):
        get = partial(client.get, path)
        answer = get().json()
        for part in ("identifiers", *(["views"] if "details" in path else [])):
            assert len(answer[part]) == len(names[::100]), (what, part, str(answer)[:200])
        claim(f"p50, {what}", median(timed(get, 30)), SLOWEST, unit=" ms")
        claim(f"SQL statements, {what}", statements(get), MOST_STATEMENTS)
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
