"""What `gcli catalog` has for the places of what was dropped without its files."""

from __future__ import annotations

import typer

from metalake_client.cli.commands import YES, add, name_option, option
from metalake_client.cli.output import print_done, print_rows
from metalake_client.cli.session import Session

CATALOG = name_option("catalog", "--name")
ID = option("id", str, help="The place's id.")


def add_to_catalog(group: typer.Typer) -> None:
    add(group, "reserved-places", reserved, [CATALOG], help="List the places of what was dropped without purge.")
    add(group, "release-place", release, [CATALOG, ID, YES], help="Release such a place, for others to lie there.")


def _path(session: Session, catalog: str) -> list[str]:
    return ["metalakes", session.metalake, "catalogs", catalog, "reserved-places"]


def reserved(session: Session, catalog: str) -> None:
    rows = session.client.get(*_path(session, catalog))["places"]
    print_rows(rows, ("id", "type", "fullName", "location", "droppedAt"), session.output)


def release(session: Session, catalog: str, id: str, yes: bool) -> None:
    session.confirm(f"Release place {id}, so that others may lie there?", yes)
    session.client.call("DELETE", *_path(session, catalog), id)
    print_done(f"Released place {id}.")
