"""Explaining why a user may or may not read a table, at 600,000 rules and a chain of ten ancestors.

`python -m benchmarks.explain [roles]` takes that many roles instead of 10,000. Half a thousand stewards may grant on
the catalog, so that a no has many people to name.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

from benchmarks.checks import GRANTS, ROLES, World
from benchmarks.harness import claim, finish, median, on_both_databases, percentile, statements, timed

if TYPE_CHECKING:
    from access.explain.explanations import Explanation
    from benchmarks.checks import Ask

ROLES_OF_USER, STEWARDS, ROUNDS = 20, 500, 600
LIMIT = 50.0  # milliseconds at p99


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.explain", arguments)
    from benchmarks import population
    from metalake.privileges import Privilege

    many = int(arguments[0]) if arguments else ROLES
    world = World()
    roles = world.add_roles(many)
    stewardship = population.role("stewardship")
    for privilege in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.MANAGE_GRANTS):
        population.grant(stewardship, privilege, [world.home.lineage_ids[1]])
    population.group("stewards", population.members(f"steward{n}" for n in range(STEWARDS)), [stewardship])
    asks = world.asks(roles, "asked", ROLES_OF_USER)
    population.analyze()
    print(f"  {many * GRANTS:,} rules of {many:,} roles, {ROLES_OF_USER} of them each user's")

    answers = [explain(ask) for ask in asks]
    for allowed, word in ((True, "yes"), (False, "no")):
        some = [ask for ask, answer in zip(asks, answers, strict=True) if answer.allowed == allowed]
        assert len(some) > len(asks) / 10, f"too few of {word}"
        times = milliseconds(some)
        print(f"  a {word}: p50 {median(times):.1f} ms, p99 {percentile(times, 0.99):.1f} ms")
        claim(f"p99 of explaining a {word}", percentile(times, 0.99), LIMIT, unit=" ms")
        asked = max(statements(partial(explain, ask)) for ask in some)
        claim(f"SQL statements of explaining a {word}, the caller's account included", asked, 16)
    named = next(step.by for answer in answers for steps in answer.changes or () for step in steps)
    assert named and named.more > 50, "the stewards are named"
    finish()


def milliseconds(asks: list[Ask]) -> list[float]:
    turns = cycle(asks)
    return timed(lambda: explain(next(turns)), ROUNDS)


def explain(ask: Ask) -> Explanation:
    """The explanation, as the owner of the metalake asks for it over the wire."""
    from access.explain import explanations as explaining
    from access.explain.permissions import Place
    from authz.callers.identity import actor_of
    from authz.models import User
    from benchmarks.population import METALAKE
    from metalake.full_names import dotted
    from metalake.kinds import Kind

    user, table = ask
    admin = actor_of(User.objects.get(username="admin"))
    wanted = explaining.read_wanted(Kind.TABLE, None, "load_table")
    return explaining.explain(admin, METALAKE, Place(Kind.TABLE, dotted(table.full_name)), wanted, user.username, None)


if __name__ == "__main__":
    main(sys.argv[1:])
