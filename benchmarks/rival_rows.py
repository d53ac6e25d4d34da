"""The rows of benchmarks/rivals.py: what is asked, by how many clients, and the goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from string import Template

import orjson

from benchmarks.peers import Side
from benchmarks.rival_stores import COLUMNS

GET = ""
HEAD = 'wrk.method = "HEAD"'
# Names that no other turn makes: each turn gives its own prefix.
POSTS = Template("""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
  n = n + 1
  local name = "$turn" .. n
  return wrk.format("POST", $path, nil, string.gsub([==[$body]==], "NAME", name))
end
""")
MIXED = Template("""
wrk.headers["Content-Type"] = "application/json"
math.randomseed(15)
request = function()
  local path = "$tables/table_" .. string.format("%03d", math.random(0, 49))
  local dice = math.random()
  if dice < 0.7 then return wrk.format("GET", path) end
  local body = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"' .. math.random() .. '"}}]}'
  if dice > 0.9 then
    body = '{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}],"updates":[]}'
  end
  return wrk.format("POST", path, nil, body)
end
""")


@dataclass
class Work:
    """What wrk asks one side; `$turn` in the script stands for the turn."""

    url: str
    path: str
    headers: dict[str, str]
    script: str = GET

    def script_of(self, turn: int) -> str:
        return self.script.replace("$turn", f"turn{turn + 1}_")


@dataclass
class Row:
    """One line of the table: `goal` is ours to the fixture's requests/s, `bare` ours to the bare application's.

    `native` is the path of the same read on the native wire, below the catalog; its goal is 0.6 of the Iceberg wire's.
    `refusals` says that some requests are meant to be refused.
    """

    name: str
    work: Callable[[Side], Work]
    clients: int = 8
    goal: float | None = None
    bare: float | None = None
    sides: tuple[str, ...] = ("ours", "fixture", "nessie")
    native: str = ""
    refusals: bool = False
    notes: str = field(default="")


def get(path: str, script: str = GET) -> Callable[[Side], Work]:
    return lambda side: Work(side.url, side.namespaces + path, side.headers, script)


def on_native_wire(work: Work, below: str) -> Work:
    """The same read on the native wire: `below` the catalog that the path leads to."""
    _, _, metalake, _, catalog, *_ = work.path.split("/")
    return Work(work.url, f"/api/metalakes/{metalake}/catalogs/{catalog}/{below}", work.headers)


def unchanged(side: Side) -> Work:
    """A load whose ETag the client has."""
    path = f"{side.namespaces}/hot/tables/table_000"
    etag = side.ask("GET", path)[1].get("etag", '"none"')
    return Work(side.url, path, {**side.headers, "If-None-Match": etag})


def post(where: str, body: object) -> Callable[[Side], Work]:
    """POSTs of a body; NAME in it becomes a name that is new with each."""

    def work(side: Side) -> Work:
        script = POSTS.safe_substitute(body=orjson.dumps(body).decode(), path=f'"{side.namespaces}{where}"')
        return Work(side.url, side.namespaces + where, side.headers, script)

    return work


def mixed(side: Side) -> Work:
    tables = f"{side.namespaces}/made/tables"
    return Work(side.url, tables, side.headers, MIXED.substitute(tables=tables))


def commit_to_many(side: Side) -> Work:
    """Commits alone, to 50 tables."""
    work = mixed(side)
    return Work(
        work.url,
        work.path,
        work.headers,
        work.script.replace("dice < 0.7", "dice < 0").replace("dice > 0.9", "dice > 1"),
    )


def commit(table: str) -> Callable[[Side], Work]:
    update = {"action": "set-properties", "updates": {"k": "NAME"}}
    return post(f"/made/tables/{table}", {"requirements": [], "updates": [update]})


LOAD, MADE = get("/hot/tables/table_000"), "/made/tables"
ONE_PERCENT = ("1 %", "fixture", "nessie")
ONLY_FIXTURE, ONE_PERCENT_OF_MANY = ("ours", "fixture"), ("1 %", "fixture")
ROWS = [
    Row("load table", LOAD, 1, 1.2, 0.3),
    Row("load table", LOAD, 8, 1.5, 0.3, native="schemas/hot/tables/table_000"),
    Row("load table", LOAD, 32, 1.5, 0.3),
    Row("load table of 300 snapshots", get(f"{MADE}/snapshots_300"), 8, 2, 0.5, sides=ONLY_FIXTURE),
    Row("load table of 5,000 snapshots", get(f"{MADE}/snapshots_5000"), 8, 2, 0.5, sides=ONLY_FIXTURE),
    Row("304", unchanged, 8, 1.5, 0.4),
    Row("exists", get("/hot/tables/table_000", HEAD), 8, 1.5, 0.4),
    Row("load of a missing table", get("/hot/tables/nowhere"), 8, 1.5, 0.4, refusals=True),
    Row("list 180 tables", get("/hot/tables"), 8, 1, native="schemas/hot/tables"),
    Row("list 180 tables, 1 % visible", get("/hot/tables"), 8, 1, sides=ONE_PERCENT),
    Row("list 10,000 tables", get("/many/tables"), 8, 1, sides=ONLY_FIXTURE),
    Row("list 10,000 tables, 1 % visible", get("/many/tables"), 8, 1, sides=ONE_PERCENT_OF_MANY),
    Row("list 180 namespaces", get(""), 8, 1),
    Row("list 180 namespaces, 1 % visible", get(""), 8, 1, sides=ONE_PERCENT),
    Row("commit of a property", commit("table_049"), 1, 1.3, sides=ONLY_FIXTURE),
    Row("commit on 300 snapshots", commit("snapshots_300"), 1, 1.3, sides=ONLY_FIXTURE),
    Row("commit on 5,000 snapshots", commit("snapshots_5000"), 1, 1.3, sides=ONLY_FIXTURE),
    Row("70 % loads, 20 % commits, 10 % conflicts", mixed, 32, 1.5, refusals=True, sides=ONLY_FIXTURE),
    Row("create table", post(MADE, {"name": "NAME", "schema": COLUMNS}), 1, 1, sides=ONLY_FIXTURE),
    Row("create namespace", post("", {"namespace": ["NAME"]}), 1, 1, sides=ONLY_FIXTURE),
]
