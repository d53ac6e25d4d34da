"""Additional commands of `gcli table`: lineage, registering, and former places."""

from __future__ import annotations

from urllib.parse import unquote

import typer

from metalake_client.cli.commands import YES, add, name_option, option
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.session import Session

SCHEMA = [name_option("catalog"), name_option("schema")]
PATH = [*SCHEMA, name_option("table", "--name")]
METADATA = option(
    "metadata_location", str, help="The metadata file that it consists of, as in s3://lake/t/v3.metadata.json."
)
ID = option("id", str, help="The place's id.")
LINKS = ("view", "names", "level", "dialects")


def add_to_table(group: typer.Typer) -> None:
    over = option("overwrite", bool, "--overwrite", default=False, help="Also if the table exists.")
    new = option("name", str, "--name", "--table", help="Its name here.")
    add(group, "register", register, [*SCHEMA, new, METADATA, over], help="Make a table of an Iceberg metadata file.")
    add(group, "lineage", lineage, PATH, help="List the views that read a table.")
    add(group, "places", places, PATH, help="List the places of a table, former ones too.")
    add(group, "release-place", release, [*PATH, ID, YES], help="Release a former place of a table.")


def table_path(session: Session, catalog: str, schema: str, table: str) -> list[str]:
    return ["metalakes", session.metalake, "catalogs", catalog, "schemas", schema, "tables", table]


def register(session: Session, catalog: str, schema: str, name: str, metadata_location: str, overwrite: bool) -> None:
    body = {"name": name, "metadata-location": metadata_location, "overwrite": overwrite}
    register_by(session, "register", catalog, schema, body)
    reply = session.client.get(*table_path(session, catalog, schema, name))
    print_object(reply["table"], session.output)
    print_done(f"Registered table {name}.")


def register_by(session: Session, verb: str, catalog: str, schema: str, body: dict[str, object]) -> None:
    """Register by the Iceberg wire: only that one can. Its settings say how it spells the catalog and the levels."""
    client = session.client
    settings = client.call_iceberg("GET", session.metalake, "config", warehouse=catalog)
    given = settings["defaults"] | settings["overrides"]
    namespace = schema.replace(session.separator, unquote(given.get("namespace-separator", "%1F")))
    client.call_iceberg("POST", session.metalake, given["prefix"], "namespaces", namespace, verb, body=body)


def lineage(session: Session, **path: str) -> None:
    print_rows(session.client.get(*table_path(session, **path), "lineage")["readBy"], LINKS, session.output)


def places(session: Session, **path: str) -> None:
    rows = session.client.get(*table_path(session, **path), "places")["places"]
    print_rows(rows, ("id", "location", "formerSince"), session.output)


def release(session: Session, id: str, yes: bool, **path: str) -> None:
    session.confirm(f"Release place {id} of table {path['table']}, so that others may lie there?", yes)
    session.client.call("DELETE", *table_path(session, **path), "places", id)
    print_done(f"Released place {id}.")
