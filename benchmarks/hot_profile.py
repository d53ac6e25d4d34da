"""Where the time of each hot read goes: microseconds of a request on the fast path in one thread, then its profile.

Processor time, of the best of many short turns: work of others beside it makes some of them longer.
`python -m benchmarks.hot_profile [name of a read] [lines of its profile]`; without a name all are timed.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.harness import own_store
from benchmarks.server import fill

if TYPE_CHECKING:
    from server.http.hot_reads import FastReads

ROUNDS, REPEATS, PROFILED = 50, 200, 2000


def main(arguments: list[str]) -> None:
    own_store()
    paths, reader = fill()
    from server.http.hot_reads import FastReads

    fast = FastReads()
    asked = {name: asked for name, asked in paths_of(paths).items() if not arguments or name == arguments[0]}
    acts = {name: reading(*each, reader, fast) for name, each in asked.items()}
    fast.settle()  # as the thread of an event loop is from its beginning
    for name, act in acts.items():
        print(f"{name:12} {1e6 * min(time_of(act, ROUNDS) for _ in range(REPEATS)):6.0f} us", flush=True)
        if arguments:
            show(act, int(arguments[1]) if len(arguments) > 1 else 40)


def paths_of(paths: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Method and path of each hot read, from those of the load and the list."""
    from benchmarks.population import CATALOG, METALAKE

    above = f"/iceberg/{METALAKE}/v1"
    schema = f"/api/metalakes/{METALAKE}/catalogs/{CATALOG}/schemas/a%3Ab%3Ac"
    native = f"{schema}/tables"
    others = {
        "native_load": ("GET", f"{native}/t"),
        "native_list": ("GET", native),
        "view": ("GET", f"{above}/{CATALOG}/namespaces/a%1Fb%1Fc/views/v"),
        "native_view": ("GET", f"{schema}/views/v"),
        "exists": ("HEAD", paths["load"]),
        "miss": ("HEAD", f"{paths['load']}_not"),
        "config": ("GET", f"{above}/config?warehouse={CATALOG}"),
        "namespaces": ("GET", f"{above}/{CATALOG}/namespaces"),
    }
    return {name: ("GET", path) for name, path in paths.items()} | others


def reading(method: str, target: str, authorization: str, fast: FastReads) -> Callable[[], None]:
    """A request from its bytes to those of its answer, as the server's event loop handles it."""
    from server.http.request_parser import Memory, Reader

    reader = Reader(("127.0.0.1", 4711), ("127.0.0.1", 8090), Memory())
    sent = f"{method} {target} HTTP/1.1\r\nHost: testserver\r\nAuthorization: {authorization}\r\n\r\n".encode()

    def act() -> None:
        reader.feed(sent)
        question = fast.find(reader)
        assert question and fast.answer(question, closes=False), f"{method} {target} has no fast path"
        reader.next()

    from authz import snapshot

    snapshot.latest()
    if "/tables/t" in target or "/views/v" in target:
        load(target, authorization)
    act()
    return act


def load(target: str, authorization: str) -> None:
    """Read a table's or view's metadata into this process's memory, as the first request for it does."""
    from django.test import Client

    Client().get(target.removesuffix("_not"), headers={"Authorization": authorization}, RAW_URI=target)


def time_of(act: Callable[[], None], rounds: int) -> float:
    """Seconds of each round."""
    started = time.process_time()
    for _ in range(rounds):
        act()
    return (time.process_time() - started) / rounds


def show(act: Callable[[], None], lines: int) -> None:
    profile = cProfile.Profile()
    profile.enable()
    time_of(act, PROFILED)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
