"""What `gcli view` has beside the commands of every kind: dialects, and versions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import YES, add, name_option, option
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

PATH = [name_option("catalog"), name_option("schema"), name_option("view", "--name")]
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


def add_to(group: typer.Typer) -> None:
    spelled = [*PATH, DIALECT, *SQL, *DEFAULTS]
    add(group, "add-dialect", add_dialect, spelled, help="Add the SQL of one more dialect, as a new version.")
    add(group, "set-dialect", set_dialect, spelled, help="Replace the SQL of a dialect, as a new version.")
    add(group, "remove-dialect", remove_dialect, [*PATH, DIALECT, YES], help="Remove a dialect, as a new version.")
    add(group, "versions", versions, PATH, help="List the versions.")
    add(group, "version", version, [*PATH, VERSION], help="Show a version.")
    add(group, "compare", compare, [*PATH, VERSION, option("other", int, min=1)], help="Compare two versions.")
    add(group, "rollback", rollback, [*PATH, VERSION, YES], help="Make an old version the current one again.")


def _path(session: Session, catalog: str, schema: str, view: str) -> list[str]:
    return ["metalakes", session.metalake, "catalogs", catalog, "schemas", schema, "views", view]


def add_dialect(session: Session, **given: Any) -> None:
    _represent(session, "addRepresentation", **given)


def set_dialect(session: Session, **given: Any) -> None:
    _represent(session, "updateRepresentation", **given)


def _represent(
    session: Session,
    action: str,
    *,
    dialect: str,
    sql: str | None,
    sql_file: Path | None,
    default_catalog: str | None,
    default_schema: str | None,
    **path: str,
) -> None:
    defaults = {"defaultCatalog": default_catalog, "defaultSchema": default_schema}
    body = {"type": "sql", "dialect": dialect, "sql": _query(sql, sql_file)}
    body |= {name: value for name, value in defaults.items() if value}
    update = {"@type": action, "representation": body}
    reply = session.client.call("PUT", *_path(session, **path), body={"updates": [update]})
    print_object(reply["view"], session.output)
    print_done(f"View {path['view']} has SQL for {dialect}.")


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


def versions(session: Session, **path: str) -> None:
    rows, before = list[dict[str, Any]](), None
    while True:
        page = session.client.get(*_path(session, **path), "versions", before=before)
        rows += page["versions"]
        if page.get("next") is None:
            break
        before = str(page["next"])
    print_rows(rows, ("version", "comment", "audit"), session.output)


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
