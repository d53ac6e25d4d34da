"""The search among 1,000,000 objects, for the owner, for who sees ten of them and for who reads a tenth.

`python -m benchmarks.search [schemas]` takes that many schemas of 1,000 tables each instead of 1,000. All of it goes
through the native wire, called in this process.
"""

from __future__ import annotations

import sys

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

SCHEMAS, TABLES, GOAL = 1000, 1000, 100  # milliseconds
TEXTS = ("table1500", "table", "schema00", "500", "nothing", "lake.schema0007.table19", "schema0007.table1")


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.search", arguments)
    from django.test import Client

    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks import population
    from metalake.kinds import Kind
    from metalake.models import Securable
    from metalake.privileges import Privilege

    count = int(arguments[0]) if arguments else SCHEMAS
    population.first_catalog()
    admin = User.objects.get(username="admin")
    catalog = Securable.objects.get(name=population.CATALOG, kind=Kind.CATALOG)
    ids = population.children(catalog, (f"schema{n:04}" for n in range(count)), Kind.SCHEMA, admin)
    population.fill(catalog, TABLES)
    schemas = list(Securable.objects.filter(pk__in=ids).order_by("name"))
    ten, tenth = (population.role(name, population.member(name)) for name in ("ten", "tenth"))
    for role in (ten, tenth):
        population.grant(role, Privilege.USE_CATALOG, [catalog.pk])
    some = list(Securable.objects.filter(parent=schemas[7]).order_by("name")[:9])
    population.grant(ten, Privilege.USE_SCHEMA, [schemas[7].pk])
    population.grant(ten, Privilege.SELECT_TABLE, [table.pk for table in some])
    for privilege in (Privilege.USE_SCHEMA, Privilege.SELECT_TABLE):
        population.grant(tenth, privilege, [schema.pk for schema in schemas[:: min(10, count)]])
    population.analyze()
    client = Client()
    for name in ("admin", "ten", "tenth"):
        token = issue_token(User.objects.get(username=name), "bench")
        for text in TEXTS:

            def ask(token: str = token, text: str = text) -> dict:
                path = f"/api/metalakes/{population.METALAKE}/search?q={text}"
                answer = client.get(path, headers={"Authorization": f"Bearer {token}"})
                assert answer.status_code == 200, answer.content
                return answer.json()["results"]

            shown = len(ask()["objects"])
            times = timed(ask, 20)
            print(f"  {name} searches {text}: {shown} shown, {statements(ask)} statements, {median(times):.1f} ms")
            if name != "tenth":
                claim(f"a search of {text} by {name}", median(times), GOAL, unit=" ms")
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
