"""The objects that a user reaches among 1,000,000, the members of 10,000 who reach one object, and 1,000 checks.

`python -m benchmarks.reach [schemas]` takes that many schemas of 1,000 tables each instead of 1,000. All of it goes
through the native wire, called in this process.
"""

from __future__ import annotations

import os
import random
import sys
import time
from typing import Any

from benchmarks.harness import claim, finish, median, on_both_databases, timed

SCHEMAS, TABLES, SHARE = 1000, 1000, 100
MEMBERS, GROUPS, QUESTIONS = 10_000, 50, 1000
ROUNDS = 3
MIB = 1024 * 1024


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.reach", arguments)
    schemas = int(arguments[0]) if arguments else SCHEMAS
    started = time.perf_counter()
    world = World(schemas)
    print(f"  {schemas * (TABLES + 1) + 2:,} objects written in {time.perf_counter() - started:.0f} s")
    # "most" is denied one schema and one table; "few" is granted one schema in a hundred.
    reach(world, "most", 2 + (schemas - 1) * (TABLES + 1) - 1)
    reach(world, "few", 2 + len(world.some) * (TABLES + 1))
    pages(world)
    who(world)
    checks(world)
    finish()


class World:
    """A catalog of schemas with tables, a user who reaches nearly all, and one who reaches one in a hundred."""

    def __init__(self, schemas: int) -> None:
        from django.test import Client

        from authz.callers.identity import issue_token
        from authz.models import User
        from benchmarks import population
        from metalake.kinds import Kind
        from metalake.models import Securable
        from metalake.privileges import Privilege

        population.first_catalog()
        admin = User.objects.get(username="admin")
        self.catalog = Securable.objects.get(name=population.CATALOG, kind=Kind.CATALOG)
        ids = population.children(self.catalog, (f"schema{n:04}" for n in range(schemas)), Kind.SCHEMA, admin)
        self.schemas = list(Securable.objects.filter(pk__in=ids).order_by("name"))
        population.fill(self.catalog, TABLES)
        denied = Securable.objects.filter(parent=self.schemas[-1]).order_by("name")[0]
        self.some = self.schemas[:: min(SHARE, schemas // 2)]
        most, few = (population.role(name, population.member(name)) for name in ("most", "few"))
        for privilege in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE):
            population.grant(most, privilege, [self.catalog.pk])
        population.grant(most, Privilege.USE_SCHEMA, [self.schemas[0].pk], "deny")
        population.grant(most, Privilege.SELECT_TABLE, [denied.pk], "deny")
        population.grant(few, Privilege.USE_CATALOG, [self.catalog.pk])
        for privilege in (Privilege.USE_SCHEMA, Privilege.SELECT_TABLE):
            population.grant(few, privilege, [schema.pk for schema in self.some])
        crowd = population.members(f"user{n:05}" for n in range(MEMBERS))
        for n in range(GROUPS):
            population.group(f"group{n}", crowd[n::GROUPS], [most if n % 2 else few])
        population.analyze()
        self.client = Client()
        self.tokens = {name: issue_token(User.objects.get(username=name), "bench") for name in ("admin", "most", "few")}

    def call(self, user: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
        answer = self.client.generic(
            "POST" if body else "GET",
            f"/api/metalakes/bench/access/{path}",
            body or "",
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.tokens[user]}", "Accept": accept},
        )
        assert answer.status_code == 200, answer.content
        return answer


def reach(world: World, user: str, wanted: int) -> None:
    def stream() -> tuple[int, int]:
        lines, peak = 0, 0
        for block in world.call(user, f"users/{user}", accept="application/x-ndjson"):
            lines += block.count(b"\n")
            peak = max(peak, anonymous())
        return lines, peak

    world.call(user, f"users/{user}?limit=1")
    before = anonymous()
    seconds, grown, used = [], 0, time.process_time()
    for _ in range(ROUNDS):
        started = time.perf_counter()
        lines, peak = stream()
        seconds.append(time.perf_counter() - started)
        grown = max(grown, peak - before)
        assert lines == wanted, (lines, wanted)
    used = (time.process_time() - used) / ROUNDS
    each = ", ".join(f"{one:.2f}" for one in seconds)
    print(f"  load {os.getloadavg()[0]:.1f}, {wanted:,} lines: {each} s, of which {used:.2f} s on a core of our own")
    claim(f"all that {user} reaches, streamed", median(seconds), 5, unit=" s")
    claim(f"memory that it takes for {user}", grown / MIB, 100, unit=" MiB")


def anonymous() -> int:
    """Anonymous memory in bytes, without the pages of the database's file that SQLite maps."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))


def pages(world: World) -> None:
    token = world.call("most", "users/most?limit=1000").json()["nextPageToken"]
    times = timed(lambda: world.call("most", f"users/most?limit=1000&pageToken={token}"), 10)
    print(f"  a page of 1,000: {median(times):.1f} ms")


def who(world: World) -> None:
    path = f"objects/table/lake.{world.some[-1].name}.table1007?limit=1000"
    times = timed(lambda: world.call("admin", path), 5, 1)
    print(f"  1,000 of {MEMBERS:,} who reach a table: {median(times):.1f} ms")

    def every() -> int:
        count, query = 0, path
        while True:
            page = world.call("admin", query).json()
            count += len(page["access"])
            if "nextPageToken" not in page:
                return count
            query = f"{path}&pageToken={page['nextPageToken']}"

    assert every() == MEMBERS + 3
    claim(f"all of {MEMBERS:,} who reach a table, in pages", median(timed(every, 3, 0)), 5000, unit=" ms")


def checks(world: World) -> None:
    import orjson

    chance = random.Random(7)
    names = [
        f"lake.{chance.choice(world.schemas).name}.table{1000 + chance.randrange(TABLES)}" for _ in range(QUESTIONS)
    ]
    for about in ({}, {"user": "user00001"}):
        questions = [{"type": "table", "fullName": name, "privilege": "select_table", **about} for name in names]
        body = orjson.dumps({"questions": questions})
        user = "admin" if about else "few"
        answers = world.call(user, "check", body).json()["answers"]
        assert len(answers) == QUESTIONS and {"allowed": True} in answers
        times = timed(lambda user=user, body=body: world.call(user, "check", body), 10, 2)  # type: ignore[misc]
        whom = "others" if about else "oneself"
        claim(f"{QUESTIONS:,} questions about {whom} in one request", median(times), 250, unit=" ms")


if __name__ == "__main__":
    main(sys.argv[1:])
