"""What `gcli catalog` has for catalogs of other systems: their connection, and refreshes with their progress."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import FILE_OF_PROPERTIES, LIMIT, add, name_option, option
from metalake_client.cli.objects import FIELDS, updates_of
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.properties import properties_of
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

CATALOG = name_option("catalog", "--name")
RUN = option("id", str, help="The refresh's id.")
EVERY = 1.0  # seconds between two looks at a refresh


def add_to_catalog(group: typer.Typer) -> None:
    removed = option("remove", list[str], "--remove", default=(), help="A property that one which exists is to lack.")
    connection = [CATALOG, FIELDS["provider"], FIELDS["type"], *FILE_OF_PROPERTIES, removed]
    help = "Try a connection: of a catalog that exists, also with other properties, or with --provider of a new one."
    add(group, "test", test_connection, connection, help=help)
    wait = option("wait", bool, "--wait", default=False, help="Show its progress until it ends.")
    accepts = option("accept_drops", bool, "--accept-drops", default=False, help="Believe that much is gone.")
    walk = [CATALOG, accepts, wait]
    add(group, "refresh", refresh, walk, help="Look at all that an outside catalog holds.")
    add(group, "refreshes", refreshes, [CATALOG, LIMIT], help="List the latest refreshes.")
    add(group, "refresh-details", show_refresh, [CATALOG, RUN, wait], help="How far a refresh is.")
    add(group, "stop-refresh", stop, [CATALOG, RUN], help="Stop a refresh where it is.")


def test_connection(
    session: Session,
    catalog: str,
    provider: str | None,
    type: str,
    properties: list[str],
    properties_file: Path | None,
    remove: list[str],
) -> None:
    path = ["metalakes", session.metalake, "catalogs"]
    if provider is None:
        updates = updates_of(properties, properties_file, remove)
        session.client.call("POST", *path, catalog, "testConnection", body={"updates": updates})
    else:
        body: dict[str, Any] = {"name": catalog, "type": type, "provider": provider}
        body["properties"] = properties_of(properties, properties_file)
        session.client.call("POST", *path, "testConnection", body=body)
    print_done(f"The connection of {catalog} works.")


def _path(session: Session, catalog: str) -> list[str]:
    return ["metalakes", session.metalake, "catalogs", catalog, "refreshes"]


def refresh(session: Session, catalog: str, accept_drops: bool, wait: bool) -> None:
    run = session.client.call("POST", *_path(session, catalog), body={"acceptDrops": accept_drops})["refresh"]
    if wait:
        run = _watched(session, catalog, run)
    print_object(run, session.output)
    if run.get("error"):
        raise Failure(f"The refresh of {catalog} ended so: {run['error']}", Exit.UNREACHABLE)


def _watched(session: Session, catalog: str, run: dict[str, Any]) -> dict[str, Any]:
    """The refresh once it has ended, with its progress on the error stream."""
    try:
        while run["state"] == "running":
            _show_progress(run)
            time.sleep(EVERY)
            run = session.client.get(*_path(session, catalog), run["id"])["refresh"]
    finally:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    return run


def show_refresh(session: Session, catalog: str, id: str, wait: bool) -> None:
    run = session.client.get(*_path(session, catalog), id)["refresh"]
    print_object(_watched(session, catalog, run) if wait else run, session.output)


def _show_progress(run: dict[str, Any]) -> None:
    eta = f", about {run['eta']} s left" if run.get("eta") is not None else ""
    line = f"{run['state']}: {run['seen']} of about {run['expected']}, {run['rate']}/s{eta}"
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    else:
        print_done(line)


def refreshes(session: Session, catalog: str, limit: int | None) -> None:
    rows = session.client.get(*_path(session, catalog))["refreshes"]
    print_rows(
        rows[:limit], ("id", "state", "startedAt", "endedAt", "seen", "created", "changed", "dropped"), session.output
    )


def stop(session: Session, catalog: str, id: str) -> None:
    run = session.client.call("DELETE", *_path(session, catalog), id)["refresh"]
    print_object(run, session.output)
