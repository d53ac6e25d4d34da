"""The access to one table among 1,000,000 objects: who reaches it by which role and group, for 500 users and 200 roles.

`python -m benchmarks.ways [schemas]` takes that many schemas of 1,000 tables each instead of 1,000. All of it goes
through the native wire, called in this process.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.population import Rule

SCHEMAS, TABLES = 1000, 1000
USERS, ROLES, GROUP_SIZE = 500, 200, 100
PAGE, LIMIT = 50, 200.0  # of a list; milliseconds
ROUNDS = 15


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.ways", arguments)
    schemas = int(arguments[0]) if arguments else SCHEMAS
    started = time.perf_counter()
    world = World(schemas)
    print(f"  {schemas * (TABLES + 1) + 2:,} objects written in {time.perf_counter() - started:.0f} s")
    whole = world.ways(limit=1)
    print(f"  {USERS} users, {ROLES} roles, groups of {GROUP_SIZE}: at least {whole['total']:,} ways to the table")
    for what, asked in (
        ("users", {}),
        ("users who are denied", {"condition": "deny"}),
        ("what is effective", {"show": "effective"}),
        ("one user", {"user": "user0499"}),
        ("users with a text in a name", {"q": "r049"}),
        ("a text in the name of a group", {"q": "group1"}),
        ("one role", {"role": "role007"}),
        ("groups", {"by": "group"}),
        ("roles", {"by": "role"}),
        ("a page far on", {"pageToken": world.far()}),
    ):
        used = time.process_time()
        times = timed(lambda asked=asked: world.ways(**asked), ROUNDS, 0)  # type: ignore[misc]
        used = (time.process_time() - used) / ROUNDS * 1000
        print(f"  load {os.getloadavg()[0]:.1f}: {used:.1f} ms on a core of our own")
        claim(f"{PAGE} of the ways, {what}", median(times), LIMIT, unit=" ms")
    claim("SQL statements of a page, the caller's account included", statements(world.ways), 14)
    finish()


class World:
    """A catalog of schemas with tables; one table is reached by every user, in several ways."""

    def __init__(self, schemas: int) -> None:
        from django.test import Client

        from authz.callers.identity import issue_token
        from authz.models import User
        from benchmarks import population
        from metalake.kinds import Kind
        from metalake.models import Securable

        population.first_catalog()
        admin = User.objects.get(username="admin")
        catalog = Securable.objects.get(name=population.CATALOG, kind=Kind.CATALOG)
        ids = population.children(catalog, (f"schema{n:04}" for n in range(schemas)), Kind.SCHEMA, admin)
        population.fill(catalog, TABLES)
        table = Securable.objects.get(parent=ids[-1], name="table1007")
        self.name = f"lake.schema{schemas - 1:04}.table1007"
        users = population.members(f"user{n:04}" for n in range(USERS))
        roles = population.roles(f"role{n:03}" for n in range(ROLES))
        population.hold((user, roles[n % ROLES]) for n, user in enumerate(users))
        for n in range(USERS // GROUP_SIZE * 2):
            inside = [user for m, user in enumerate(users) if m % (USERS // GROUP_SIZE) == n % (USERS // GROUP_SIZE)]
            population.group(f"group{n}", inside, roles[n * 20 : n * 20 + 20])
        population.grant_all(_rules(roles, [catalog.pk, ids[-1], table.pk]))
        population.analyze()
        self.client = Client()
        self.token = issue_token(admin, "bench")

    def ways(self, limit: int = PAGE, **asked: str) -> Any:
        answer = self.client.get(
            f"/api/metalakes/bench/access/objects/table/{self.name}/ways",
            {"limit": str(limit), **asked},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert answer.status_code == 200, answer.content
        return answer.json()

    def far(self) -> str:
        """The token of the twentieth page."""
        token = self.ways()["nextPageToken"]
        for _ in range(18):
            token = self.ways(pageToken=token)["nextPageToken"]
        return token


def _rules(roles: list[Any], lineage: list[int]) -> Iterator[Rule]:
    """Each role reads the table, by grants on the catalog, the schema or the table; one in ten is denied to change."""
    from metalake.privileges import Privilege

    catalog, schema, table = lineage
    for n, role in enumerate(roles):
        yield role, Privilege.USE_CATALOG, catalog, "allow"
        if n % 3:
            yield role, Privilege.USE_SCHEMA, schema, "allow"
        yield role, Privilege.SELECT_TABLE, lineage[n % 3], "allow"
        yield role, Privilege.MODIFY_TABLE, table, "deny" if n % 10 == 0 else "allow"


if __name__ == "__main__":
    main(sys.argv[1:])
