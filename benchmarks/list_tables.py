"""Listing 10,496 tables of one schema, as a user who may see all and as one who may see 1 %."""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

TABLES = 10_496


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_tables", arguments)
    from django.test import Client

    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, analyze, children, first_catalog, grant, member, role, schema
    from metalake.kinds import Kind
    from metalake.privileges import Privilege

    owner = first_catalog()
    admin = User.objects.get(username="admin")
    home = schema(owner, "wide")
    tables = children(home, (f"table_{n:05}" for n in range(TABLES)), Kind.TABLE, admin)
    all_of_it, one_percent = member("sees_all"), member("sees_one_percent")
    everyone = role("everyone", all_of_it, one_percent)
    grant(everyone, Privilege.USE_CATALOG, [home.lineage_ids[1]])
    grant(everyone, Privilege.USE_SCHEMA, [home.pk])
    grant(role("all", all_of_it), Privilege.SELECT_TABLE, [home.pk])
    grant(role("some", one_percent), Privilege.SELECT_TABLE, tables[::100])
    analyze()

    for user, expected in ((all_of_it, TABLES), (one_percent, len(tables[::100]))):
        client = Client(headers={"Authorization": f"Bearer {issue_token(user, 'bench')}"})
        get = partial(client.get, f"/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/wide/tables")
        answer = get()
        listed = len(answer.json()["identifiers"])
        assert listed == expected, f"{user} sees {listed} of {expected}: {answer.content[:200]!r}"
        claim(f"p50 as {user}, {listed} tables", median(timed(get, 30)), 150, unit=" ms")
        claim(f"SQL statements as {user}", statements(get), 6)
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
