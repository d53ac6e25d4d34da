"""Whether the time of an answer reveals that an object is hidden and not missing: 2,000 pairs are ranked.

`python -m benchmarks.hidden_or_missing [pairs]`. The rank statistic is the chance that a hidden thing took longer than
a missing one: 0.5 reveals nothing. By chance alone it stays within 0.03 of that.
"""

from __future__ import annotations

import random
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from http.client import HTTPConnection
from urllib.parse import urlsplit

from benchmarks.harness import claim, finish, median, on_both_databases, serve

PAIRS, WARM_UP, FAR = 2000, 100, 0.03
NATIVE, ICEBERG = "/api/metalakes/bench/catalogs/lake/schemas", "/iceberg/bench/v1/lake/namespaces"

# User, verb, a hidden path and a missing one. `clerk` reaches the catalog and the schema `seen`, `stranger` nothing.
CASES = {
    "a metalake": ("stranger", "GET", "/api/metalakes/bench", "/api/metalakes/honey"),
    "a schema": ("clerk", "GET", f"{NATIVE}/vault", f"{NATIVE}/vapor"),
    "a schema three levels deep": ("clerk", "GET", f"{NATIVE}/vault:a:b", f"{NATIVE}/vapor:a:b"),
    "the tables of a schema": ("clerk", "GET", f"{NATIVE}/vault/tables", f"{NATIVE}/vapor/tables"),
    "a drop of a schema": ("clerk", "DELETE", f"{NATIVE}/vault", f"{NATIVE}/vapor"),
    "a table of a hidden schema": ("clerk", "GET", f"{NATIVE}/vault/tables/t", f"{NATIVE}/vapor/tables/t"),
    "a table of a seen schema": ("clerk", "GET", f"{NATIVE}/seen/tables/t", f"{NATIVE}/seen/tables/u"),
    "a namespace": ("clerk", "GET", f"{ICEBERG}/vault", f"{ICEBERG}/vapor"),
    "whether a namespace exists": ("clerk", "HEAD", f"{ICEBERG}/vault", f"{ICEBERG}/vapor"),
    "an Iceberg table": ("clerk", "GET", f"{ICEBERG}/vault/tables/t", f"{ICEBERG}/vapor/tables/t"),
}


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.hidden_or_missing", arguments)
    from authz.callers.identity import issue_token
    from benchmarks.population import CATALOG, fill, first_catalog, grant, members, role, schema
    from metalake.kinds import Kind
    from metalake.models import Securable
    from metalake.privileges import Privilege

    owner = first_catalog()
    for name in ("vault:a:b", "seen"):
        home = schema(owner, name)
    fill(Securable.objects.get(name=CATALOG, kind=Kind.CATALOG), 1)
    Securable.objects.filter(kind=Kind.TABLE).update(name="t")
    (clerk,) = members(["clerk"])
    clerks = role("clerks", clerk)
    grant(clerks, Privilege.USE_CATALOG, [home.lineage_ids[1]])
    grant(clerks, Privilege.USE_SCHEMA, [home.pk])
    from authz.models import User

    stranger = User.objects.create_user("stranger")
    tokens = {user.username: issue_token(user, "bench") for user in (clerk, stranger)}
    pairs = int(arguments[0]) if arguments else PAIRS
    with ExitStack() as stack:
        server = serve(stack)
        for case, (user, verb, there, gone) in CASES.items():
            hidden, missing = asked_in_turn(server.url, tokens[user], verb, (there, gone), pairs)
            chance = longer(hidden, missing)
            print(f"  {case}: hidden {median(hidden):.3f} ms, missing {median(missing):.3f} ms, rank {chance:.3f}")
            claim(f"how far {case} is from telling nothing", abs(chance - 0.5), FAR)
    finish()


def asked_in_turn(
    url: str, token: str, verb: str, paths: tuple[str, str], pairs: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of each answer; the order in each pair is random."""
    order, times = random.Random(7), ([], [])  # type: tuple[random.Random, tuple[list[float], list[float]]]
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.connect()
    for pair in range(-WARM_UP, pairs):
        for which in order.sample((0, 1), 2):
            started = time.perf_counter()
            connection.request(verb, paths[which], headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            if pair >= 0:
                times[which].append((time.perf_counter() - started) * 1000)
            assert answer.status == 404 or verb == "DELETE", (verb, paths[which], answer.status)
    return times


def longer(some: Sequence[float], others: Sequence[float]) -> float:
    """The chance that one of `some` is longer than one of the others (Mann and Whitney's U, as a share)."""
    ranked = sorted(others)
    above = sum(bisect_left(ranked, one) + bisect_right(ranked, one) for one in some) / 2
    return above / (len(some) * len(ranked))


if __name__ == "__main__":
    main(sys.argv[1:])
