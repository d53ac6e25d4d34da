"""`gcli server`: the server itself and who the caller is to it. `gcli search`: what it finds."""

from __future__ import annotations

import typer

from metalake_client.cli.commands import LIMIT, add, family, option
from metalake_client.cli.compatibility import WIRE, distance, sentence
from metalake_client.cli.output import Format, Row, print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

SORTS = ("objects", "roles", "users", "groups")


def add_to(app: typer.Typer) -> None:
    server = family(app, "server", "The server: its version, its settings, and who you are to it.")
    add(server, "version", version, help="Whether it and this gcli go together.", in_metalake=False)
    add(server, "configs", configs, help="Show the settings that clients must know.", in_metalake=False)
    add(server, "health", health, help="Whether it can serve; exit code 6 if not.", in_metalake=False)
    add(server, "whoami", whoami, help="Who you are to it.", in_metalake=False)
    words = [
        option("text", str, "--text", "-q", help="A part of a name, or of a path."),
        option("exact", bool, "--exact", default=False, help="Also roles and people of exactly that name."),
    ]
    add(app, "search", search, [*words, LIMIT], help="Search objects, roles, users and groups.")


def version(session: Session) -> None:
    theirs = session.anonymous.get("version")["version"]
    print_object({"gcli": WIRE, **theirs}, session.output)
    apart = distance(str(theirs["version"]))
    if apart is None or abs(apart) > 1:
        raise Failure(f"{session.profile.url}: {sentence(theirs['version'])}")
    if apart:
        print_done(sentence(theirs["version"]))


def configs(session: Session) -> None:
    asked = session.client if session.has_credential else session.anonymous
    print_object(asked.settings(), session.output)


def health(session: Session) -> None:
    try:
        reply = session.anonymous.get("health", "ready")
    except Failure as down:
        if down.status != 503:
            raise
        raise Failure(f"{session.profile.url} cannot serve now; its /health/ready says why.", down.exit_code) from None
    print_object({name: reply[name] for name in ("status", "checks")}, session.output)


def whoami(session: Session) -> None:
    print_object({"principal": session.client.get("authn", "me")["principal"]}, session.output)


def search(session: Session, text: str, exact: bool, limit: int | None) -> None:
    query = {"q": text, "limit": str(min(limit, 100)) if limit else None, "exact": "true" if exact else None}
    results = session.client.get("metalakes", session.metalake, "search", **query)["results"]
    if session.output is not Format.TABLE:
        print_object(results, session.output)
        return
    rows: list[Row] = [
        {**each, "fullName": _full_name(each, session.separator)} for sort in SORTS for each in results[sort]
    ]
    if rows:
        print_rows(rows, ("type", "fullName"), session.output)
    if results["isCut"]:
        print_done("There may be more: give more of the name, or its path.")
    if not rows:
        raise Failure(f"Nothing that you may see is named like {text!r}.", Exit.MISSING)


def _full_name(result: Row, separator: str) -> str:
    """As other commands take it: levels of schemas are divided by the separator, everything else by dots."""
    catalog, levels, name = result["path"][1:2], result["path"][2:], [result["name"]]
    if result["type"] == "schema":
        levels, name = [*levels, *name], []
    return ".".join([*catalog, *([separator.join(levels)] if levels else []), *name])
