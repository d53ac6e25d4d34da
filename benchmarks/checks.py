"""One check of rights at 600,000 rules and a chain of 10 ancestors, and the memory that the policy takes.

`python -m benchmarks.checks [roles]` takes that many roles instead of 10,000. Each has 60 grants, a quarter of them
DENY.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.harness import (
    claim,
    finish,
    join_store,
    median,
    on_both_databases,
    percentile,
    ratio,
    statements,
    timed,
)
from benchmarks.usage import resident

if TYPE_CHECKING:
    from authz.models import Role, User
    from authz.snapshot import Snapshot
    from metalake.lineage import Located

FEW_ROLES, ROLES, GRANTS, DENIES = 100, 10_000, 60, 15
SCHEMAS, TABLES = 8, 10_000
ROLES_OF_USER = {1: 100.0, 5: 100.0, 20: 300.0}  # roles of a user: microseconds at p99
USERS, CHECKS, ROUNDS = 100, 1000, 40
MIB = 1024 * 1024

Ask = tuple["User", "Located"]


def main(arguments: list[str]) -> None:
    if arguments == ["load"]:
        join_store()
        report_load()
        return
    on_both_databases("benchmarks.checks", arguments)
    from authz import snapshot
    from benchmarks import population
    from metalake.kinds import Kind

    many = int(arguments[0]) if arguments else ROLES
    world = World()
    few_roles = world.add_roles(FEW_ROLES)
    few_asks = {number: world.asks(few_roles, f"few{number}", number) for number in ROLES_OF_USER}
    population.analyze()
    few = snapshot.load()
    started = time.perf_counter()
    all_roles = [*few_roles, *world.add_roles(many - FEW_ROLES)]
    many_asks = {number: world.asks(all_roles, f"many{number}", number) for number in ROLES_OF_USER}
    in_groups = world.asks(all_roles, "grouped", 5, through_groups=True)
    direct = world.asks(all_roles, "direct", 5)
    population.analyze()
    lots = snapshot.load()
    rules = sum(len(of_role) for of_role in lots.grants.values())
    print(f"  {rules:,} rules of {many:,} roles, written in {time.perf_counter() - started:.0f} s")
    assert len(in_groups[0][1].nodes) == 11 and in_groups[0][1].kind == Kind.TABLE

    for number, limit in ROLES_OF_USER.items():
        world.verify(lots, many_asks[number])
        latencies(number, limit, (few, few_asks[number]), (lots, many_asks[number]), rules)
    shares(lots, in_groups, direct)
    loads(rules)
    follow(all_roles[0], in_groups[0][1])
    finish()


class World:
    """A chain of ten ancestors with tables below it, and users who hold roles with grants on some of these."""

    def __init__(self) -> None:
        from authz.models import User
        from benchmarks.population import children, first_catalog, schema
        from metalake.kinds import Kind

        self.random = random.Random(7)
        # Metalake, catalog and eight schemas.
        self.home = schema(first_catalog(), ":".join(f"level{n}" for n in range(SCHEMAS)))
        names = (f"t{n}" for n in range(TABLES))
        self.tables = children(self.home, names, Kind.TABLE, User.objects.get(username="admin"))
        self.effects: dict[int, dict[int, set[str]]] = {}
        self.roles_of: dict[int, list[Role]] = {}

    def add_roles(self, count: int) -> list[Role]:
        """Roles that may use the schema, may load some of its tables, and are denied others."""
        from benchmarks.population import grant_all, roles
        from metalake.privileges import Privilege

        made = roles(f"role{len(self.effects) + n}" for n in range(count))
        rules = []
        for role in made:
            rules.append((role, Privilege.USE_CATALOG, self.home.lineage_ids[1], "allow"))
            rules.append((role, Privilege.USE_SCHEMA, self.home.lineage_ids[2], "allow"))
            effects = self.effects[role.pk] = {}
            for n, table in enumerate(self.random.sample(self.tables, GRANTS - 2)):
                effect = "deny" if n < DENIES else "allow"
                effects[table] = {effect}
                rules.append((role, Privilege.SELECT_TABLE, table, effect))
        grant_all(rules)
        return made

    def asks(self, roles: list[Role], name: str, number: int, *, through_groups: bool = False) -> list[Ask]:
        """Users who hold so many of the roles, each with a table; every second table is one that their roles name."""
        from benchmarks.population import group, hold, members
        from catalogs.lookup import by_id

        asks = []
        users = members(f"{name}-{n}" for n in range(USERS))
        for n, user in enumerate(users):
            mine = self.roles_of[user.pk] = self.random.sample(roles, number)
            if through_groups:
                group(f"{user.username}-one", [user], mine[::2])
                group(f"{user.username}-two", [user], mine[1::2])
            else:
                hold((user, role) for role in mine)
            known = [table for role in mine for table in self.effects[role.pk]]
            asks.append((user, by_id(self.random.choice(self.tables if n % 2 else known))))
        return [(user, table) for user, table in asks if table]

    def verify(self, policy: Snapshot, asks: list[Ask]) -> None:
        """Check that the answers follow from the rules, and that there are both yes and no."""
        check = checker(policy)
        answers = [check(user, table) for user, table in asks]
        for (user, table), answer in zip(asks, answers, strict=True):
            effects = set().union(*(self.effects[role.pk].get(table.id, set()) for role in self.roles_of[user.pk]))
            assert answer == ("allow" in effects and "deny" not in effects), f"{user} on {table.full_name}: {answer}"
        assert 0 < sum(answers) < len(answers)


def checker(policy: Snapshot) -> Callable[[User, Located], bool]:
    """A function that checks as a request does: with a new actor, once."""
    from authz import operations
    from authz.actor import Actor
    from authz.policy import permits

    return lambda user, table: permits(Actor(user.pk, user.username, policy), operations.LOAD_TABLE, table)


def microseconds(policy: Snapshot, asks: list[Ask], checks: int = CHECKS) -> list[float]:
    check, clock = checker(policy), time.perf_counter_ns
    times = []
    for n in range(checks):
        user, table = asks[n % len(asks)]
        started = clock()
        check(user, table)
        times.append((clock() - started) / 1000)
    return times


def latencies(
    number: int, limit: float, few: tuple[Snapshot, list[Ask]], lots: tuple[Snapshot, list[Ask]], rules: int
) -> None:
    """Measure both sizes in turn; figures are medians over the rounds, so that one disturbed round does not count."""
    p50: dict[int, list[float]] = {0: [], 1: []}
    p99: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(ROUNDS):
        for side, measured in enumerate((few, lots)):
            times = microseconds(*measured)
            p50[side].append(percentile(times, 0.5))
            p99[side].append(percentile(times, 0.99))
    for side, count in ((0, FEW_ROLES * GRANTS), (1, rules)):
        print(f"  {number} roles, {count:,} rules: p50 {median(p50[side]):.1f} us, p99 {median(p99[side]):.1f} us")
    claim(f"p99 of a user with {number} roles", median(p99[1]), limit, unit=" us")
    claim(f"p50 at {rules:,} : {FEW_ROLES * GRANTS:,} rules", median(p50[1]) / median(p50[0]), 2, unit="x")
    claim(f"p99 at {rules:,} : {FEW_ROLES * GRANTS:,} rules", median(p99[1]) / median(p99[0]), 2, unit="x")


def shares(policy: Snapshot, in_groups: list[Ask], direct: list[Ask]) -> None:
    """Checks per second of users whose roles come through groups, against users who hold theirs themselves."""
    check = checker(policy)

    def rate(asks: list[Ask]) -> float:
        started = time.perf_counter()
        for user, table in asks:
            check(user, table)
        return len(asks) / (time.perf_counter() - started)

    rates: dict[str, list[float]] = {"groups": [], "users": []}
    # Many short turns, so that a disturbance of one does not change the median.
    for n in range(30 * ROUNDS):
        for name, asks in (("groups", in_groups), ("users", direct))[:: 1 if n % 2 else -1]:
            rates[name].append(rate(asks))
    print(f"  checks per second: {median(rates['groups']):,.0f} by groups, {median(rates['users']):,.0f} by users")
    share = ratio(rates["groups"], rates["users"])
    claim("roles of groups : roles of users, checks per second", share, 0.95, at_least=True, unit="x")


def loads(rules: int) -> None:
    """The time and memory that a new process takes to load the policy."""
    reports = []
    for _ in range(3):
        command = [sys.executable, "-m", "benchmarks.checks", "load"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        reports.append(json.loads(done.stdout))
        assert reports[-1]["rules"] == rules, "the process holds another policy"
    seconds, grown = (median([one[key] for one in reports]) for key in ("seconds", "grown"))
    claim("loading the policy", seconds, 3, unit=" s")
    claim("memory that it adds to a process", grown / MIB, 150, unit=" MiB")


def report_load() -> None:
    from django.db import connection

    from authz import snapshot

    connection.ensure_connection()
    before, started = resident(os.getpid()), time.perf_counter()
    policy = snapshot.load()
    seconds = time.perf_counter() - started
    grown, rules = resident(os.getpid()) - before, sum(map(len, policy.grants.values()))
    print(json.dumps({"seconds": seconds, "grown": grown, "rules": rules}))


def follow(role: Role, table: Located) -> None:
    """The time and statements until this process knows of one grant or revoke."""
    from authz import snapshot
    from authz.callers.identity import actor_of
    from authz.models import User
    from authz.services.grants import grant_privileges, revoke_privileges
    from benchmarks.population import METALAKE
    from metalake.full_names import dotted
    from metalake.kinds import Kind
    from metalake.privileges import Privilege

    admin = actor_of(User.objects.get(username="admin"))
    times, asked = [], []
    with patch.object(snapshot, "load", side_effect=AssertionError("the whole policy was loaded again")):
        for n in range(2 * 25):
            change = revoke_privileges if n % 2 else grant_privileges
            modify = [("modify_table", "allow")]
            change(admin, METALAKE, role.name, Kind.TABLE, dotted(table.full_name), modify)
            asked.append(statements(lambda: times.extend(timed(snapshot.latest, 1, 0))))
            mask = snapshot.latest().mask([role.pk], [table.id], time.time())
            assert bool(mask & Privilege.MODIFY_TABLE.bit) == (n % 2 == 0)
    claim("following one change", median(times), 10, unit=" ms")
    claim("SQL statements to follow one change", max(asked), 2)


if __name__ == "__main__":
    main(sys.argv[1:])
