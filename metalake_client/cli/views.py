"""Additional commands of `gcli view`: dialects with their checks, versions, lineage."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import LIMIT, YES, add, name_option, option
from metalake_client.cli.output import Row, print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.cli.tables import LINKS, METADATA, SCHEMA, register_by
from metalake_client.failures import Exit, Failure

PATH = [*SCHEMA, name_option("view", "--name")]
DIALECT = option("dialect", str, help="spark, trino, flink, duckdb, hive, ...")
SQL = [
    option("sql", str | None, default=None, help="The query; or --sql-file."),
    option("sql_file", Path | None, default=None, help="A file with the query; - is the standard input."),
]
DEFAULTS = [
    option("default_catalog", str | None, default=None, help="The catalog of names without one."),
    option("default_schema", str | None, default=None, help="The schema of names without one."),
]
VERSION = option("version", int, min=1, help="The number of a version.")


DRAFT = [option("dialect", str | None, default=None, help="Check it as it would be with this SQL."), *SQL, *DEFAULTS]


def add_to_view(group: typer.Typer) -> None:
    spelled = [*PATH, DIALECT, *SQL, *DEFAULTS]
    add(group, "add-dialect", add_dialect, spelled, help="Add the SQL of one more dialect, as a new version.")
    add(group, "set-dialect", set_dialect, spelled, help="Replace the SQL of a dialect, as a new version.")
    add(group, "remove-dialect", remove_dialect, [*PATH, DIALECT, YES], help="Remove a dialect, as a new version.")
    add(group, "check", check, [*PATH, *DRAFT], help="What each dialect reads and yields, and what is wrong with it.")
    source = option("source", str | None, "--from", default=None, help="The dialect to translate; the first if none.")
    add(group, "suggest", suggest, [*PATH, DIALECT, source], help="Translate to another dialect; stores nothing.")
    add(group, "lineage", lineage, PATH, help="What a view reads, and which views read it.")
    new = option("name", str, "--name", "--view", help="Its name here.")
    add(group, "register", register, [*SCHEMA, new, METADATA], help="Make a view of an Iceberg metadata file.")
    add(group, "versions", versions, [*PATH, LIMIT], help="List the versions.")
    add(group, "version", version, [*PATH, VERSION], help="Show a version.")
    add(group, "compare", compare, [*PATH, VERSION, option("other", int, min=1)], help="Compare two versions.")
    add(group, "rollback", rollback, [*PATH, VERSION, YES], help="Make an old version the current one again.")


def _path(session: Session, catalog: str, schema: str, view: str) -> list[str]:
    return ["metalakes", session.metalake, "catalogs", catalog, "schemas", schema, "views", view]


def _split(given: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The names that lead to the view, and the rest."""
    path = {name: given.pop(name) for name in ("catalog", "schema", "view")}
    return path, given


def add_dialect(session: Session, **given: Any) -> None:
    path, representation = _split(given)
    _represent(session, "addRepresentation", path, **representation)


def set_dialect(session: Session, **given: Any) -> None:
    path, representation = _split(given)
    _represent(session, "updateRepresentation", path, **representation)


def check(session: Session, **given: Any) -> None:
    path, draft = _split(given)
    body = None
    if any(value is not None for value in draft.values()):
        if draft["dialect"] is None:
            raise Failure("Say by --dialect what the SQL is written for.", Exit.USAGE)
        body = {"representation": _representation(**draft)}
    dialects = session.client.call("POST", *_path(session, **path), "check", body=body)["dialects"]
    print_rows(dialects, ("dialect", "problems", "reads", "columns", "differences"), session.output)
    if broken := [each["dialect"] for each in dialects if each["problems"] or each["differences"]]:
        raise Failure(f"There is something wrong with the SQL for {', '.join(broken)}, as shown.", Exit.CONFLICT)


def suggest(session: Session, dialect: str, source: str | None, **path: str) -> None:
    body = {"dialect": dialect} | ({"source": source} if source else {})
    reply = session.client.call("POST", *_path(session, **path), "suggest", body=body)
    print_object(reply["suggestion"], session.output)


def lineage(session: Session, **path: str) -> None:
    reply = session.client.get(*_path(session, **path), "lineage")
    rows = [{"link": sort, **each} for sort in ("reads", "readBy") for each in reply[sort]]
    print_rows(rows, ("link", "fullName", *LINKS), session.output)


def register(session: Session, catalog: str, schema: str, name: str, metadata_location: str) -> None:
    body: dict[str, object] = {"name": name, "metadata-location": metadata_location}
    register_by(session, "register-view", catalog, schema, body)
    print_object(session.client.get(*_path(session, catalog, schema, name))["view"], session.output)
    print_done(f"Registered view {name}.")


def _represent(session: Session, action: str, path: dict[str, str], **given: Any) -> None:
    update = {"@type": action, "representation": _representation(**given)}
    reply = session.client.call("PUT", *_path(session, **path), body={"updates": [update]})
    print_object(reply["view"], session.output)
    print_done(f"View {path['view']} has SQL for {given['dialect']}.")


def _representation(
    *,
    dialect: str,
    sql: str | None,
    sql_file: Path | None,
    default_catalog: str | None,
    default_schema: str | None,
) -> dict[str, str]:
    """What the wire calls a representation: a query in one dialect, and its defaults."""
    defaults = {"defaultCatalog": default_catalog, "defaultSchema": default_schema}
    body = {"type": "sql", "dialect": dialect, "sql": _query(sql, sql_file)}
    return body | {name: value for name, value in defaults.items() if value}


def _query(sql: str | None, file: Path | None) -> str:
    if (sql is None) == (file is None):
        raise Failure("Give the query by one of --sql and --sql-file.", Exit.USAGE)
    if sql is not None:
        return sql
    try:
        return sys.stdin.read() if str(file) == "-" else Path(str(file)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise Failure(f"--sql-file: {file} cannot be read: {wrong}", Exit.USAGE) from None


def remove_dialect(session: Session, dialect: str, yes: bool, **path: str) -> None:
    session.confirm(f"Remove the SQL for {dialect} from view {path['view']}?", yes)
    update = {"@type": "removeRepresentation", "dialect": dialect}
    reply = session.client.call("PUT", *_path(session, **path), body={"updates": [update]})
    print_object(reply["view"], session.output)
    print_done(f"View {path['view']} has no SQL for {dialect} any more.")


def versions(session: Session, limit: int | None, **path: str) -> None:
    rows, before = list[Row](), None
    while True:
        page = session.client.get(*_path(session, **path), "versions", before=before)
        rows += page["versions"]
        if page.get("next") is None or (limit and len(rows) >= limit):
            break
        before = str(page["next"])
    print_rows(rows[:limit], ("version", "comment", "audit"), session.output)


def version(session: Session, version: int, **path: str) -> None:
    reply = session.client.get(*_path(session, **path), "versions", str(version))
    print_object(reply["version"], session.output)


def compare(session: Session, version: int, other: int, **path: str) -> None:
    reply = session.client.get(*_path(session, **path), "versions", str(version), "compare", str(other))
    print_object({name: value for name, value in reply.items() if name != "code"}, session.output)


def rollback(session: Session, version: int, yes: bool, **path: str) -> None:
    session.confirm(f"Make version {version} of view {path['view']} the current one again?", yes)
    reply = session.client.call("POST", *_path(session, **path), "versions", str(version), "rollback")
    print_object(reply["view"], session.output)
    print_done(f"View {path['view']} is as in version {version}, as a new version.")
