"""Metalake, with rights on, beside Iceberg's own REST server, Nessie and the bare application behind Metalake's door.

All run side by side on this machine and are asked in turn by wrk, round by round; ratios are medians over the rounds.
`python -m benchmarks.rivals [--short] [--json FILE] [names of rows]`
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from benchmarks import peers
from benchmarks.harness import claim, finish, median, own_store, ratio, serve
from benchmarks.peers import Missing, Side
from benchmarks.rival_postgres import on_postgres
from benchmarks.rival_rows import ROWS, Row, Work, commit_to_many, mixed, on_native_wire
from benchmarks.rival_stores import fill_fixture, fill_lists, fill_ours
from benchmarks.wrk import Turn, drive, require_wrk

ROUNDS, SECONDS = 5, 2.0
SHORT_ROUNDS, SHORT_SECONDS = 3, 1.0

Rates = dict[str, list[float]]


def main(arguments: list[str]) -> None:
    asked = _arguments(arguments)
    require_wrk()
    own_store(METALAKE_ALLOWED_HOSTS="localhost")
    with ExitStack() as stack:
        sides = start(stack)
        rows = [row for row in ROWS if not asked.rows or row.name in asked.rows]
        rounds, seconds = (SHORT_ROUNDS, SHORT_SECONDS) if asked.short else (ROUNDS, SECONDS)
        results = [measure(row, sides, rounds, seconds) for row in rows]
        if not asked.rows:
            measure_patience(sides["ours"], seconds * rounds)
    print(f"\n{machine()}, {commit()}\n\n{table(results)}\n")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "commit": commit(), "rows": results}, file, indent=2)
    finish()


def _arguments(arguments: list[str]) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals")
    parser.add_argument("--short", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("rows", nargs="*", help="names of rows; all if there are none")
    return parser.parse_args(arguments)


def start(stack: ExitStack) -> dict[str, Side]:
    """Every side that can be started here, with the same tables and namespaces."""
    ours = fill_ours(stack, serve)
    sides = {"ours": ours.owner, "1 %": ours.one_percent}
    for name, begin in (("fixture", peers.fixture), ("nessie", _nessie)):
        if side := peer(name, begin, stack):
            sides[name] = side
            fill_fixture(side) if name == "fixture" else fill_lists(side)
    sides["PostgreSQL"] = on_postgres(stack)
    pages = {}
    for row in ROWS:
        if row.bare:
            path = row.work(sides["ours"]).path
            pages[path] = sides["ours"].ask("GET", path)[2]
    sides["bare"] = peers.bare(stack, pages)
    return sides


def peer(name: str, begin: Callable[[ExitStack], Side], stack: ExitStack) -> Side | None:
    """A peer that `begin` starts; one that lacks a Java or a jar is named in a sentence, and nothing else stops."""
    try:
        return begin(stack)
    except Missing as missing:
        print(f"  {name} is left out: {missing}", flush=True)
        return None


def _nessie(stack: ExitStack) -> Side:
    """Nessie on an S3 of moto's, which takes any key."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would print a line for each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    stack.callback(server.stop)
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    given = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **given).create_bucket(Bucket="bench")
    return peers.nessie(stack, url, "bench")


def measure(row: Row, sides: dict[str, Side], rounds: int, seconds: float) -> dict[str, Any]:
    """Print the figures of a row, beside their goals."""
    names = [*row.sides, *(["PostgreSQL"] if "ours" in row.sides else [])]
    works = {name: row.work(sides[name]) for name in names if name in sides}
    if row.bare:
        ours = works["ours"]
        bare = sides["bare"]
        works["bare"] = Work(bare.url, ours.path, {**bare.headers, **ours.headers}, ours.script)
    if row.native:
        works["native"] = on_native_wire(works["ours"], row.native)
    rates: Rates = {name: [] for name in works}
    broken: dict[str, Turn] = {}
    order, chance = [*works], random.Random(0)
    for turn in range(-1, rounds):  # the first warms up
        chance.shuffle(order)
        for name in order:
            work = works[name]
            figures = drive(work.url + work.path, work.headers, work.script_of(turn), row.clients, seconds)
            if figures.broken or (figures.refused and not row.refusals):
                broken[name] = figures
            if turn >= 0:
                rates[name].append(figures.rate)
    return _shown(row, rates, broken)


def _shown(row: Row, rates: Rates, broken: dict[str, Turn]) -> dict[str, Any]:
    figures = {name: median(each) for name, each in rates.items()}
    line = ", ".join(f"{name} {figure:,.0f}/s" for name, figure in figures.items())
    print(f"{row.name}, {row.clients} clients: {line}", flush=True)
    ratios = {}
    mine = "1 %" if "ours" not in rates else "ours"
    if "PostgreSQL" in rates:
        goal = 0.5 if row.name.startswith("load table") else None
        ratios["on PostgreSQL"] = ratio(rates["PostgreSQL"], rates["ours"])
        _say(f"{row.name}, on PostgreSQL to on SQLite", ratios["on PostgreSQL"], goal)
    if "native" in rates:
        ratios["native"] = ratio(rates["native"], rates["ours"])
        _say(f"{row.name}, native wire to Iceberg's", ratios["native"], 0.6)
    for other, goal in (("fixture", row.goal), ("nessie", None), ("bare", row.bare)):
        if other in rates:
            ratios[other] = ratio(rates[mine], rates[other])
            _say(f"{row.name}, to {other}", ratios[other], goal)
    for name, turn in broken.items():
        claim(f"{row.name}: requests that {name} refused or broke", turn.refused + turn.broken, 0)
    return {"row": row.name, "clients": row.clients, "rates": figures, "ratios": ratios, "goal": row.goal}


def _say(what: str, figure: float, goal: float | None) -> None:
    if goal is None:
        print(f"       {what}: {figure:.3g}x", flush=True)
    else:
        claim(what, figure, goal, at_least=True, unit="x")


def measure_patience(side: Side, seconds: float) -> None:
    """How much longer than most the slowest loads take beside commits."""
    loads, commits = mixed(side), commit_to_many(side)
    with ThreadPoolExecutor(1) as beside:
        writing = beside.submit(drive, commits.url + commits.path, commits.headers, commits.script_of(0), 10, seconds)
        reading = drive(loads.url + f"{side.namespaces}/hot/tables/table_000", loads.headers, "", 22, seconds)
        writing.result()
    claim("p99 of loads beside commits, to their p50", reading.p99 / reading.p50, 5, unit="x")


def table(results: list[dict[str, Any]]) -> str:
    """The rows as a table of Markdown."""
    lines = [
        "| Work | clients | requests/s | to the fixture | to Nessie | to the bare application | PostgreSQL to SQLite |"
    ]
    lines.append("|---" * 7 + "|")
    for each in results:
        ratios = each["ratios"]
        shown = [
            f"{ratios[name]:.2f}x" if name in ratios else "" for name in ("fixture", "nessie", "bare", "on PostgreSQL")
        ]
        if each["goal"] and shown[0]:
            shown[0] += f" (goal {each['goal']:g}x)"
        mine = each["rates"].get("ours") or each["rates"].get("1 %")
        lines.append(f"| {each['row']} | {each['clients']} | {mine:,.0f} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def machine() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.partition(": ")[2].strip() for line in file if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} x {models[0] if models else 'unknown processor'}"


def commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
