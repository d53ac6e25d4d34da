"""How long a check of hostile SQL takes, and what it costs others while four clients keep asking for one.

Two clients load a schema, alone and beside the checks, turn by turn, on the same connections: which process gets a new
one would matter more than the checks. `python -m benchmarks.hostile_sql [rounds]`
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.harness import claim, finish, median, own_store, percentile, ratio, serve
from benchmarks.http import Load

ROUNDS, SECONDS, CLIENTS, HOSTILE = 5, 8.0, 2, 4
SCHEMAS = "/api/metalakes/bench/catalogs/lake/schemas"
CHECK = f"{SCHEMAS}/s/views/v/check"
UNIONS = "SELECT a FROM t UNION ALL " * 8000 + "SELECT 1"
HOSTILE_SQL = {
    "8,000 times UNION ALL": UNIONS,
    "3,000 parentheses": f"SELECT {'(' * 3000}1{')' * 3000}",
    "1 MiB of names": "SELECT " + "a," * 500_000 + "a",
    "12,000 times OR": "SELECT 1 FROM t WHERE " + "a = 1 OR " * 12_000 + "b",
    "20,000 times +": "SELECT a" + " + a" * 20_000 + " FROM t",
    "a text without an end": "SELECT '" + "x" * 1_000_000,
}


def main(arguments: list[str]) -> None:
    own_store()
    rounds = int(arguments[0]) if arguments else ROUNDS
    token = fill()
    with ExitStack() as stack:
        url = serve(stack, METALAKE_SQL_TIMEOUT="4").url  # the default, which tests change
        answer(url, token, "POST", f"{SCHEMAS}/s/views", view("v", UNIONS))
        for what, sql in HOSTILE_SQL.items():
            claim(f"a check of {what}", seconds(url, token, sql), 5, unit=" s")
        load = Load(f"{url}{SCHEMAS}/s", f"Bearer {token}", CLIENTS, stays=True)
        alone, beside = [], []
        for _ in range(rounds):
            alone.append((load.run(SECONDS), percentile(load.latencies, 0.5)))
            with insistent(url, token):
                beside.append((load.run(SECONDS), percentile(load.latencies, 0.5)))
        rates = ratio([rate for rate, _ in alone], [rate for rate, _ in beside])
        halves = ratio([p50 for _, p50 in beside], [p50 for _, p50 in alone])
        print(
            f"  alone {median([rate for rate, _ in alone]):.0f} requests/s, p50 {median([p for _, p in alone]):.2f} ms"
        )
        claim("requests/s alone : beside checks", rates, 1.1, unit="x")
        claim("p50 beside checks : alone", halves, 1.1, unit="x")
    finish()


def fill() -> str:
    """A schema, and a token of its owner."""
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks import population

    population.schema(population.first_catalog(), "s")
    return str(issue_token(User.objects.get(username="admin"), "bench"))


def view(name: str, sql: str) -> dict[str, Any]:
    return {"name": name, "columns": [], "representations": [{"type": "sql", "dialect": "spark", "sql": sql}]}


def answer(url: str, token: str, method: str, path: str, body: Any) -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        assert refused.code in (429, 503), refused.read()
        return refused.code


def seconds(url: str, token: str, sql: str) -> float:
    """How long the check of a view takes with this SQL in one more dialect."""
    body = {"representation": {"type": "sql", "dialect": "trino", "sql": sql}}
    started = time.perf_counter()
    assert answer(url, token, "POST", CHECK, body) == 200
    return time.perf_counter() - started


@contextmanager
def insistent(url: str, token: str) -> Iterator[None]:
    """Clients that ask for checks without a pause."""
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            if answer(url, token, "POST", CHECK, {"representation": view("v", UNIONS)["representations"][0]}) != 200:
                stop.wait(1)

    clients = [threading.Thread(target=ask) for _ in range(HOSTILE)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()


if __name__ == "__main__":
    main(sys.argv[1:])
