"""`gcli system`: the catalog that jobs write their results to."""

from __future__ import annotations

import typer

from metalake_client.cli.commands import add, family
from metalake_client.cli.output import print_object
from metalake_client.cli.session import Session


def add_to(app: typer.Typer) -> None:
    system = family(app, "system", "The catalog of what jobs find out.")
    add(system, "create", create, help="Make it, or what is missing of it, and say who may read its tables.")


def create(session: Session) -> None:
    print_object(session.client.call("POST", "metalakes", session.metalake, "system")["system"], session.output)
