"""How long 32 clients wait that load (70 %), commit (20 %) and conflict (10 %) on 50 tables: latencies by kind.

    python -m benchmarks.commit_crowd [seconds]

wrk tells neither the kinds apart nor how long a request took that others were waiting behind.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from urllib.parse import urlsplit

import orjson

from benchmarks.harness import claim, finish, own_store, percentile, serve
from benchmarks.peers import Side
from benchmarks.rival_stores import make_table

CLIENTS, TABLES, SECONDS, WARM_UP = 32, 50, 6.0, 1.5
KINDS, WEIGHTS = ("load", "commit", "conflict"), (70, 20, 10)
CONFLICT = {"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}], "updates": []}


class Crowd:
    """The clients of one server; latencies in milliseconds by kind, and answers by kind and status."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.waits: defaultdict[str, list[float]] = defaultdict(list)
        self.answers: Counter[tuple[str, int]] = Counter()

    async def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        await asyncio.gather(*(self._client(random.Random(number), ends) for number in range(CLIENTS)))

    async def _client(self, chance: random.Random, ends: float) -> None:
        where = urlsplit(self.side.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        while time.monotonic() < ends:
            (kind,) = chance.choices(KINDS, WEIGHTS)
            began = time.perf_counter()
            writer.write(self._request(kind, chance))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
            await reader.readexactly(int(fields[b"content-length"]))
            self.waits[kind].append((time.perf_counter() - began) * 1000)
            self.answers[kind, int(head.split(b" ", 2)[1])] += 1
            if fields.get(b"connection") == b"close":
                writer.close()
                reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.close()

    def _request(self, kind: str, chance: random.Random) -> bytes:
        update = {"action": "set-properties", "updates": {"k": str(chance.random())}}
        change = CONFLICT if kind == "conflict" else {"requirements": [], "updates": [update]}
        body = b"" if kind == "load" else orjson.dumps(change)
        method = "GET" if kind == "load" else "POST"
        lines = [
            f"{method} {self.side.namespaces}/made/tables/table_{chance.randrange(TABLES):03} HTTP/1.1",
            "Host: localhost",
            f"Authorization: {self.side.authorization}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


def main(arguments: list[str]) -> None:
    seconds = float(arguments[0]) if arguments else SECONDS
    own_store(METALAKE_ALLOWED_HOSTS="localhost")
    with ExitStack() as stack:
        side = filled(stack)
        asyncio.run(Crowd(side).run(WARM_UP))
        crowd = Crowd(side)
        asyncio.run(crowd.run(seconds))
    print(f"  {sum(map(len, crowd.waits.values())) / seconds:.0f} requests/s")
    for kind, waits in sorted(crowd.waits.items()):
        shares = ", ".join(f"p{share * 100:g} {percentile(waits, share):.1f} ms" for share in (0.5, 0.9, 0.99))
        print(f"  {kind:8} {len(waits):5}: {shares}, longest {max(waits):.1f} ms")
    loads = crowd.waits["load"]
    claim("p99 of loads beside commits, to their p50", percentile(loads, 0.99) / percentile(loads, 0.5), 5, unit="x")
    refused = sum(count for (_, status), count in crowd.answers.items() if status not in (200, 409))
    claim("requests that were refused for want of time", refused, 0)
    lost = crowd.answers["commit", 409] / sum(crowd.answers["commit", status] for status in (200, 409))
    claim("commits that lost all their races", 100 * lost, 1, unit=" %")
    finish()


def filled(stack: ExitStack) -> Side:
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, first_catalog

    first_catalog()
    base = f"/iceberg/{METALAKE}/v1/{CATALOG}"
    side = Side("ours", serve(stack).url, base, f"Bearer {issue_token(User.objects.get(username='admin'), 'bench')}")
    side.must("POST", side.namespaces, {"namespace": ["made"]})
    for number in range(TABLES):
        make_table(side, "made", f"table_{number:03}", 0)
    return side


if __name__ == "__main__":
    main(sys.argv[1:])
