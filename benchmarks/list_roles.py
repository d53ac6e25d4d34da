"""Listing roles as an ordinary user who sees 2 of 10,000, in as many statements as of 100."""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

FEW, ROLES, OWN = 100, 10_000, 2


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_roles", arguments)
    from django.test import Client

    from authz.callers.identity import issue_token
    from benchmarks.population import METALAKE, analyze, first_catalog, hold, member, roles

    many = int(arguments[0]) if arguments else ROLES
    first_catalog()
    analyst = member("analyst")
    mine = roles(f"role{n:05}" for n in range(FEW))[::40][:OWN]
    hold((analyst, role) for role in mine)
    client = Client(headers={"Authorization": f"Bearer {issue_token(analyst, 'bench')}"})
    get = partial(client.get, f"/api/metalakes/{METALAKE}/roles")

    def listing() -> tuple[float, int]:
        analyze()
        answer = get()
        assert answer.json()["names"] == [role.name for role in mine], answer.content[:200]
        return median(timed(get, 100)), statements(get)

    few = listing()
    roles(f"role{n:05}" for n in range(FEW, many))
    lots = listing()
    print(f"  {few[0]:.2f} ms at {FEW} roles, {lots[0]:.2f} ms at {many:,}")
    claim(f"p50 of a user who sees {OWN} of {many:,} roles", lots[0], 50, unit=" ms")
    claim("SQL statements", lots[1], 5)
    claim(f"SQL statements beyond those at {FEW} roles", lots[1] - few[1], 0)
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
