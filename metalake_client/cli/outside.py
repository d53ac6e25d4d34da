"""What `gcli catalog` has for catalogs of other systems: their connection, and refreshes with their progress."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import FILE_OF_PROPERTIES, add, name_option, option
from metalake_client.cli.objects import FIELDS
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.properties import properties_of
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

CATALOG = name_option("catalog", "--name")
RUN = option("id", str, help="The refresh's id.")
EVERY = 1.0  # seconds between two looks at a refresh


def add_to(group: typer.Typer) -> None:
    connection = [CATALOG, FIELDS["provider"], FIELDS["type"], *FILE_OF_PROPERTIES]
    add(group, "test", test_connection, connection, help="Try the connection of a catalog that is to be created.")
    walk = [
        CATALOG,
        option("accept_drops", bool, "--accept-drops", default=False, help="Believe that much is gone."),
        option("wait", bool, "--wait", default=False, help="Show its progress until it ends."),
    ]
    add(group, "refresh", refresh, walk, help="Look at all that an outside catalog holds.")
    add(group, "refreshes", refreshes, [CATALOG], help="List the latest refreshes.")
    add(group, "stop-refresh", stop, [CATALOG, RUN], help="Stop a refresh where it is.")


def test_connection(
    session: Session, catalog: str, provider: str | None, type: str, properties: list[str], properties_file: Path | None
) -> None:
    body = {"name": catalog, "type": type, "provider": provider}
    body |= {"properties": properties_of(properties, properties_file)}  # type: ignore[dict-item]
    session.client.call("POST", "metalakes", session.metalake, "catalogs", "testConnection", body=body)
    print_done(f"The connection of {catalog} works.")


def _path(session: Session, catalog: str) -> list[str]:
    return ["metalakes", session.metalake, "catalogs", catalog, "refreshes"]


def refresh(session: Session, catalog: str, accept_drops: bool, wait: bool) -> None:
    run = session.client.call("POST", *_path(session, catalog), body={"acceptDrops": accept_drops})["refresh"]
    while wait and run["state"] == "running":
        _show_progress(run)
        time.sleep(EVERY)
        run = session.client.get(*_path(session, catalog), run["id"])["refresh"]
    print_object(run, session.output)
    if run.get("error"):
        raise Failure(f"The refresh of {catalog} ended so: {run['error']}", Exit.UNREACHABLE)


def _show_progress(run: dict[str, Any]) -> None:
    eta = f", about {run['eta']} s left" if run.get("eta") is not None else ""
    line = f"{run['state']}: {run['seen']} of about {run['expected']}, {run['rate']}/s{eta}"
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    else:
        print_done(line)


def refreshes(session: Session, catalog: str) -> None:
    rows = session.client.get(*_path(session, catalog))["refreshes"]
    print_rows(rows, ("id", "state", "startedAt", "endedAt", "seen", "created", "changed", "dropped"), session.output)


def stop(session: Session, catalog: str, id: str) -> None:
    run = session.client.call("DELETE", *_path(session, catalog), id)["refresh"]
    print_object(run, session.output)
