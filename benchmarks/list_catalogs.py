"""Listing 298 catalogs of a metalake with 1,500 roles, as a user who holds 3 of them and as one who holds all.

Each role may use five catalogs, and every fourth is denied one: a user with all roles sees all catalogs but those.
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

CATALOGS, ROLES, EACH = 298, 1500, 5


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_catalogs", arguments)
    from django.test import Client

    from authz.callers.identity import issue_token
    from benchmarks.population import METALAKE, analyze, first_catalog, grant_all, hold, make_catalogs, members, roles
    from metalake.privileges import Privilege

    first_catalog()
    catalogs = make_catalogs(f"catalog_{n:03}" for n in range(CATALOGS))
    everyone = roles(f"role{n:04}" for n in range(ROLES))
    allowed = {n: {(n + k) % CATALOGS for k in range(EACH)} for n in range(ROLES)}
    denied = {n: {(n * 7) % 40} if n % 4 == 0 else set() for n in range(ROLES)}
    grant_all(
        (role, Privilege.USE_CATALOG, catalogs[k], effect)
        for n, role in enumerate(everyone)
        for effect, on in (("allow", allowed[n] - denied[n]), ("deny", denied[n]))
        for k in on
    )
    few, lots = members(["few", "lots"])
    roles_of = {few: [1, 70, 140], lots: list(range(ROLES))}
    hold((user, everyone[n]) for user, numbers in roles_of.items() for n in numbers)
    analyze()

    for user, numbers in roles_of.items():
        client = Client(headers={"Authorization": f"Bearer {issue_token(user, 'bench')}"})
        seen = set().union(*(allowed[n] for n in numbers)) - set().union(*(denied[n] for n in numbers))
        for query in ("", "?details=true"):
            get = partial(client.get, f"/api/metalakes/{METALAKE}/catalogs{query}")
            listed = len(get().json()["catalogs" if query else "identifiers"])
            assert listed == len(seen), f"{user} sees {listed}, not {len(seen)}"
            what = f"{listed} of {CATALOGS} catalogs with {len(numbers)} of {ROLES} roles{query and ', in detail'}"
            claim(f"p50, {what}", median(timed(get, 50)), 50, unit=" ms")
            claim(f"SQL statements, {what}", statements(get), 5)
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
