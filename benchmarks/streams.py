"""The state of a metalake of a million objects as one stream: how long it takes, and what the server's memory grows by.

    python -m benchmarks.streams [objects]

The objects are facts, which is all that the stream reads; each has a name of twenty characters and an owner.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import requests

from benchmarks import usage
from benchmarks.harness import claim, finish, on_both_databases, serve
from tests.servers import MetalakeServer

OBJECTS = 1_000_000
SECONDS, MEMORY = 60.0, 200.0
AT_ONCE = 5000


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.streams", arguments)
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import METALAKE, first_catalog

    count = int(arguments[0]) if arguments else OBJECTS
    first_catalog()
    began = time.perf_counter()
    _remember(count)
    print(f"  {count:,} facts written in {time.perf_counter() - began:.0f} s")
    token = issue_token(User.objects.get(username="admin"), "bench")
    with ExitStack() as stack:
        server = serve(stack)
        url, headers = f"{server.url}/api/metalakes/{METALAKE}", {"Authorization": f"Bearer {token}"}
        requests.get(url, headers=headers, timeout=60).raise_for_status()
        before, began, peak, lines = _megabytes(server), time.perf_counter(), 0.0, 0
        stream = f"{server.url}/api/bulk/metalakes/{METALAKE}/access/state"
        with requests.get(stream, headers=headers, stream=True, timeout=600) as answer:
            for number, chunk in enumerate(answer.iter_content(1 << 20)):
                lines += chunk.count(b"\n")
                if number % 20 == 0:
                    peak = max(peak, _megabytes(server))
        took = time.perf_counter() - began
    assert lines > count, lines
    print(f"  {lines:,} lines, the server had {before:.0f} MB before and {peak:.0f} MB at most")
    claim(f"the state of {count:,} objects", took, SECONDS, unit=" s")
    claim("what the server's memory grew by", peak - before, MEMORY, unit=" MB")
    finish()


def _megabytes(server: MetalakeServer) -> float:
    return usage.memory(server) / 1e6


def _remember(count: int) -> None:
    from authz import facts
    from authz.models import Fact

    facts.seal()
    last, batch = facts.head().position, []
    for fact in _facts(count, last):
        batch.append(fact)
        if len(batch) == AT_ONCE:
            Fact.objects.bulk_create(batch)
            batch.clear()
    Fact.objects.bulk_create(batch)


def _facts(count: int, last: int) -> Iterator:
    from django.utils import timezone

    from authz.models import Fact, User
    from metalake.models import Metalake

    top, owner, now = Metalake.objects.get(), User.objects.get(username="admin").pk, timezone.now()
    for number in range(count):
        about = 10**15 + number
        state = {"kind": "table", "lineage": f"/{top.pk}/{about}", "owner_user": owner, "owner_group": None}
        given = {"topic": "object", "holder": top.pk, "about": about, "name": f"table-{number:014}", "state": state}
        yield Fact(at=now, metalake_id=top.pk, actor="admin", event="bench", position=last + 1 + number, **given)


if __name__ == "__main__":
    main(sys.argv[1:])
