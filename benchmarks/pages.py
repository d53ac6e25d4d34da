"""The pages among 1,000,000 objects: the page of a container, one level of the tree, and Access with 500 principals.

`python -m benchmarks.pages [schemas]` takes that many schemas of 1,000 tables each instead of 1,000. The pages are
called in this process, for the owner of all and for who sees ten objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

SCHEMAS, TABLES = 1000, 1000
PEOPLE, ROLES = 500, 50
PAGE, NODE, ACCESS = 150, 50, 200  # milliseconds
MOST_STATEMENTS = 12
ROUNDS = 20


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.pages", arguments)
    from django.test import Client

    from authz.models import User
    from benchmarks import population
    from metalake.kinds import Kind
    from metalake.models import Securable
    from metalake.privileges import Privilege
    from server import static_files

    static_files.prepare()
    count = int(arguments[0]) if arguments else SCHEMAS
    population.first_catalog()
    admin = User.objects.get(username="admin")
    catalog = Securable.objects.get(name=population.CATALOG, kind=Kind.CATALOG)
    ids = population.children(catalog, (f"schema{n:04}" for n in range(count)), Kind.SCHEMA, admin)
    population.fill(catalog, TABLES)
    schema = ids[len(ids) // 2]
    ten = population.role("ten", population.member("ten"))
    population.grant(ten, Privilege.USE_CATALOG, [catalog.pk])
    population.grant(ten, Privilege.USE_SCHEMA, [schema])
    some = list(Securable.objects.filter(parent_id=schema).order_by("name")[:9])
    population.grant(ten, Privilege.SELECT_TABLE, [table.pk for table in some])
    people = population.members(f"person{n:03}" for n in range(PEOPLE))
    roles = population.roles(f"role{n:02}" for n in range(ROLES))
    population.hold((person, roles[n % ROLES]) for n, person in enumerate(people))
    for role in roles:
        population.grant(role, Privilege.USE_CATALOG, [catalog.pk])
        population.grant(role, Privilege.USE_SCHEMA, [schema])
    population.analyze()
    metalake = catalog.parent_id
    for name in ("admin", "ten"):
        client = Client()
        client.force_login(User.objects.get(username=name), backend="authz.passwords.PasswordBackend")
        for what, path, goal in (
            ("the page of the metalake", f"/objects/{metalake}", PAGE),
            ("the page of the catalog", f"/objects/{catalog.pk}", PAGE),
            ("the page of a schema", f"/objects/{schema}", PAGE),
            ("a level of the tree, of schemas", f"/objects/{catalog.pk}/children", NODE),
            ("a level of the tree, of tables", f"/objects/{schema}/children", NODE),
        ):
            ask = _asking(client, path)
            ask()
            claim(f"{what}, for {name}", median(timed(ask, ROUNDS)), goal, unit=" ms")
            claim(f"SQL statements of {what}, for {name}", statements(ask), MOST_STATEMENTS)
        if name == "admin":
            ask = _asking(client, f"/objects/{schema}/access")
            ask()
            claim(f"Access of a schema with {PEOPLE} people", median(timed(ask, ROUNDS)), ACCESS, unit=" ms")
            claim(f"SQL statements of Access of a schema with {PEOPLE} people", statements(ask), MOST_STATEMENTS)
    finish()


def _asking(client: Any, path: str) -> Callable[[], None]:
    def ask() -> None:
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)

    return ask


if __name__ == "__main__":
    main(sys.argv[1:])
