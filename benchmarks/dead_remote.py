"""What a dead metastore costs: reads from its mirror, and requests to other catalogs.

It hangs (its process is stopped: connections are accepted and nothing answers), is refused (it is killed) or is up;
the server is on SQLite, with eight threads in each process for work that may wait.
`python -m benchmarks.dead_remote [rounds [seconds]]`
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.harness import claim, finish, median, own_store, percentile, ratio, serve
from benchmarks.http import LEAD, Crowd, Load
from benchmarks.outside import PROVIDERS

if TYPE_CHECKING:
    from tests.hms import HiveMetastore

TABLES = 50
TURNS, TURN = 30, 0.4  # many short ones, so that a disturbance of some does not change the medians
ROUNDS, SECONDS = 3, 40  # long enough for the breaker to open and to try again
OTHERS, HAMMERING = 30, 30  # requests a second: to each other catalog, and to the dead one
USERS = 20  # users who ask for the dead one, so that some ask while others wait


def main(arguments: list[str]) -> None:
    own_store(METALAKE_PROVIDERS=PROVIDERS)
    rounds = int(arguments[0]) if arguments else ROUNDS
    seconds = int(arguments[1]) if arguments[1:] else SECONDS
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.load_table import make_table
    from benchmarks.outside import fill_metastore, outside_catalog, table_name
    from benchmarks.population import CATALOG, METALAKE, first_catalog, schema
    from tests.hms import running_hms

    owner = first_catalog()
    schema(owner, "a:b:c")
    token = f"Bearer {issue_token(User.objects.get(username='admin'), 'bench')}"
    with ExitStack() as stack:
        hms = stack.enter_context(running_hms())
        database = fill_metastore(hms, TABLES)
        outside_catalog(owner, "kept", "hive", cache_ttl="3600", **{"metastore.uris": hms.uri})
        outside_catalog(owner, "dying", "hive", **{"metastore.uris": hms.uri})
        outside_catalog(owner, "healthy", "generated", tables="1000", pause="0.01")
        url = serve(stack, METALAKE_PROVIDERS=PROVIDERS, METALAKE_THREADS="8").url
        make_table(url, METALAKE, CATALOG, token)

        def tables(catalog: str, schema: str) -> str:
            return f"{url}/api/metalakes/{METALAKE}/catalogs/{catalog}/schemas/{schema}/tables"

        one = f"/{table_name(0)}"
        for listing in (tables("kept", database), tables("dying", database)):
            for address in (listing, listing + one):
                assert status_of(address, token) == 200
        mirror_reads(hms, {"list": tables("kept", database), "load": tables("kept", database) + one}, token)
        others = {
            "managed": f"{url}/iceberg/{METALAKE}/v1/{CATALOG}/namespaces/a%1Fb%1Fc/tables/t",
            "outside": tables("healthy", "airline_0") + "/flights_000001",
        }
        neighbours(hms, others, tables("dying", database) + one, token, rounds, seconds)
    finish()


def status_of(url: str, authorization: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": authorization})) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def mirror_reads(hms: HiveMetastore, urls: dict[str, str], token: str) -> None:
    """Requests per second for objects whose mirror is fresh enough to answer from."""
    loads = {name: Load(url, token) for name, url in urls.items()}
    rates: dict[tuple[str, str], list[float]] = {(name, state): [] for name in loads for state in ("up", "hanging")}
    for load in loads.values():
        load.run(1.0)
    for turn in range(TURNS):
        for state in ("up", "hanging")[:: 1 if turn % 2 else -1]:
            set_state(hms, state)
            for name, load in loads.items():
                rates[name, state].append(load.run(TURN))
    set_state(hms, "up")
    for name in loads:
        up, down = rates[name, "up"], rates[name, "hanging"]
        print(f"  {name} what is kept: {median(up):.0f} requests/s up, {median(down):.0f} hanging")
        claim(f"{name} what is kept, down : up", ratio(down, up), 0.95, at_least=True, unit="x")


def neighbours(hms: HiveMetastore, urls: dict[str, str], dying: str, token: str, rounds: int, seconds: int) -> None:
    """The time of requests to other catalogs while clients keep asking for the dying one, in each of its states."""
    p99: dict[tuple[str, str], list[float]] = {}
    one_phase(urls, dying, token, rounds, 8)  # a metastore is slow at first
    for number in range(rounds):
        for state in ("up", "hanging", "up again", "refused"):
            if state.startswith("up"):
                set_state(hms, state)
                recover(dying, token)
            begins = threading.Timer(LEAD, set_state, (hms, state))
            begins.start()
            times, statuses = one_phase(urls, dying, token, number, seconds)
            begins.join()
            answers = ", ".join(f"{count} times {status}" for status, count in sorted(statuses.items()))
            print(f"  {state}: the dying one answered {answers}", flush=True)
            for name, values in times.items():
                p99.setdefault((name, state), []).append(percentile(values, 0.99))
                print(
                    f"    {name}: p50 {median(values):.1f} ms, p99 {percentile(values, 0.99):.1f} ms, "
                    f"longest {max(values):.0f} ms"
                )
    for name in urls:
        for state, before in (("hanging", "up"), ("refused", "up again")):
            share = ratio(p99[name, state], p99[name, before])
            claim(f"p99 of {name} requests while another remote is {state} : up", share, 1.1, unit="x")


def one_phase(
    urls: dict[str, str], dying: str, token: str, number: int, seconds: int
) -> tuple[dict[str, list[float]], Counter[int]]:
    """Milliseconds of requests to the other catalogs, by catalog, and the dying catalog's answers by status."""
    hammer = Crowd(dying, [token] * USERS, expected=range(200, 505))
    crowds = {name: Crowd(url, [token] * 8, expected=(200, 503)) for name, url in urls.items()}
    times: dict[str, list[float]] = {}
    threads = [threading.Thread(target=hammer.run, args=(arrivals(number, HAMMERING, seconds),))]
    for name, crowd in crowds.items():

        def ask(name: str = name, crowd: Crowd = crowd) -> None:
            times[name] = crowd.run(arrivals(number, OTHERS, seconds))
            refused = crowd.answered[503]
            assert refused <= len(times[name]) / 100, f"{refused} of {len(times[name])} {name} requests were refused"

        threads.append(threading.Thread(target=ask))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, hammer.answered


def arrivals(seed: int, per_second: int, seconds: float) -> list[float]:
    """When requests are due, in seconds."""
    chance, due, moment = random.Random(f"{seed} {per_second}"), [], 0.0
    while (moment := moment + chance.expovariate(per_second)) < seconds:
        due.append(moment)
    return due


def set_state(hms: HiveMetastore, state: str) -> None:
    if state == "refused":
        hms.kill()
        return
    if hms.process is None:
        hms.start()
    assert hms.process
    os.killpg(hms.process.pid, signal.SIGSTOP if state == "hanging" else signal.SIGCONT)


def recover(dying: str, token: str) -> None:
    """Wait until the catalog answers again."""
    deadline = time.monotonic() + 60
    while any(status_of(dying, token) != 200 for _ in range(50)):  # many requests also warm up a new metastore
        assert time.monotonic() < deadline, "the catalog does not answer though its metastore does"
        time.sleep(0.5)


if __name__ == "__main__":
    main(sys.argv[1:])
