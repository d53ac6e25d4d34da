"""`gcli access`: who may what and why, now or at a moment, and grants as code. `gcli token`: personal tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import YES, add, option
from metalake_client.cli.objects import LIMIT
from metalake_client.cli.output import Format, print_done, print_line, print_object, print_rows
from metalake_client.cli.people import PLACE
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

AS_OF = option("as_of", str | None, "--as-of", default=None, help="A moment, as in 2026-12-01T00:00:00Z; now if none.")
ABOUT = option("about", str | None, "--about", default=None, help="Whom it is about; yourself if nobody is named.")
ASKED = [
    option("privilege", str | None, default=None, help="A privilege, as in SELECT_TABLE; or --operation."),
    option("operation", str | None, default=None, help="An operation, as in LOAD_TABLE."),
]
FILE = option("file", Path, "--file", "-f", help="A file of grants, YAML or JSON (gcli access export).")


def add_to(app: typer.Typer) -> None:
    access = typer.Typer(help="Who may what, and why; and grants as code.", no_args_is_help=True)
    app.add_typer(access, name="access")
    add(access, "explain", explain, [ABOUT, *ASKED, *PLACE, AS_OF], help="Why somebody may or may not do something.")
    add(access, "check", check, [ABOUT, *ASKED, *PLACE, AS_OF], help="Whether somebody may; exit code 3 if not.")
    add(access, "list", effective, [*PLACE, AS_OF, LIMIT], help="Who may do what on an object.")
    holder = [
        option(f"of_{each}", str, f"--of-{each}", default="", help=f"A {each}'s name.")
        for each in ("user", "group", "role")
    ]
    add(access, "effective", effective_of, [*holder, AS_OF, LIMIT], help="What a user, group or role may do.")
    place = [
        option("type_", str | None, "--type", default=None),
        option("object_", str | None, "--object", default=None),
    ]
    add(access, "export", export, place, help="Write all grants down, as plan takes them.")
    add(access, "plan", plan, [FILE], help="Show what would change if the grants were those of a file.")
    add(access, "apply", apply, [FILE, YES], help="Make the grants those of a file, after showing the changes.")
    add(access, "drift", drift, [FILE], help="Exit code 5 if the grants are not those of a file.")
    tokens = typer.Typer(help="Personal tokens, for programs.", no_args_is_help=True)
    app.add_typer(tokens, name="token")
    limits = [
        option("expires", str | None, default=None, help="When it ends, as in 2027-01-01T00:00:00Z."),
        option("for_user", str | None, "--for", default=None, help="Another user, whom you administer."),
    ]
    name = option("name", str, help="What it is for.")
    add(tokens, "list", list_tokens, help="List your tokens, without their secrets.", in_metalake=False)
    add(
        tokens,
        "create",
        create_token,
        [name, *limits],
        help="Make a token; its secret is shown once.",
        in_metalake=False,
    )
    add(tokens, "drop", drop_token, [option("id", str), YES], help="Revoke a token.", in_metalake=False)


def _question(about: str | None, type_: str, object_: str, **asked: str | None) -> dict[str, str]:
    if sum(each is not None for each in asked.values()) != 1:
        raise Failure("Name one of --privilege and --operation.", Exit.USAGE)
    given = {"user": about, "type": type_, "fullName": object_, **asked}
    return {name: value for name, value in given.items() if value is not None}


def explain(session: Session, as_of: str | None, **given: Any) -> None:
    question = _question(**given)
    reply = session.client.get("metalakes", session.metalake, "access", "explain", **question, asOf=as_of)
    explained = reply["explanation"]
    if session.output is not Format.TABLE:
        print_object(explained, session.output)
        return
    print_line("Yes:" if explained["allowed"] else "No:")
    for reason in explained["because"]:
        _print_reason(reason, depth=1)
    for number, way in enumerate(explained.get("changes") or (), 1):
        print_line(f"What would help, {number}:")
        for change in way:
            print_line(f"  {change['says']}")


def _print_reason(reason: dict[str, Any], depth: int) -> None:
    print_line(f"{'  ' * depth}{reason['says']}")
    for inner in reason.get("because") or ():
        _print_reason(inner, depth + 1)


def check(session: Session, as_of: str | None, **given: Any) -> None:
    body: dict[str, Any] = {"questions": [_question(**given)]} | ({"asOf": as_of} if as_of else {})
    reply = session.client.call("POST", "metalakes", session.metalake, "access", "check", body=body)
    (answer,) = reply["answers"]
    print_object(answer, session.output)
    if not answer["allowed"]:
        raise Failure("No.", Exit.REFUSED)


def effective(session: Session, type_: str, object_: str, as_of: str | None, limit: int | None) -> None:
    path = ["metalakes", session.metalake, "access", "objects", type_, object_]
    rows = [row for page in session.client.pages(*path, asOf=as_of) for row in page["access"]]
    print_rows(rows[:limit], ("user", "owner", "privileges"), session.output)


def effective_of(
    session: Session, of_user: str, of_group: str, of_role: str, as_of: str | None, limit: int | None
) -> None:
    given = [(plural, name) for plural, name in (("users", of_user), ("groups", of_group), ("roles", of_role)) if name]
    if len(given) != 1:
        raise Failure("Name one of --of-user, --of-group and --of-role.", Exit.USAGE)
    path = ["metalakes", session.metalake, "access", *given[0]]
    rows = [row for page in session.client.pages(*path, asOf=as_of) for row in page["objects"]]
    print_rows(rows[:limit], ("type", "fullName", "owner", "privileges"), session.output)


def export(session: Session, type_: str | None, object_: str | None) -> None:
    reply = session.client.get("metalakes", session.metalake, "access", "export", type=type_, fullName=object_)
    shown = Format.YAML if session.output is Format.TABLE else session.output
    print_object(reply["access"], shown)


def plan(session: Session, file: Path) -> None:
    print_object(_planned(session, file), session.output)


def apply(session: Session, file: Path, yes: bool) -> None:
    planned = _planned(session, file)
    if not planned["changes"]:
        print_done("Nothing to change.")
        return
    print_object(planned, session.output)
    session.confirm(f"Apply {len(planned['changes'])} changes?", yes)
    body = {"token": planned["token"]}
    session.client.call("POST", "metalakes", session.metalake, "access", "apply", body=body)
    print_done(f"Applied {len(planned['changes'])} changes.")


def drift(session: Session, file: Path) -> None:
    planned = _planned(session, file)
    print_rows(planned["changes"], ("change", "role", "privilege", "condition", "on", "user", "group"), session.output)
    if planned["changes"]:
        raise Failure(f"{len(planned['changes'])} grants are not as {file} has them.", Exit.CONFLICT)


def _planned(session: Session, file: Path) -> dict[str, Any]:
    import yaml

    try:
        wanted = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as wrong:
        raise Failure(f"--file: {file} cannot be read as YAML: {wrong}", Exit.USAGE) from None
    reply = session.client.call("POST", "metalakes", session.metalake, "access", "plan", body=wanted)
    return dict(reply["plan"])


def list_tokens(session: Session) -> None:
    rows = session.client.get("tokens")["tokens"]
    print_rows(rows, ("id", "name", "createdAt", "expiresAt", "lastUsedAt"), session.output)


def create_token(session: Session, name: str, expires: str | None, for_user: str | None) -> None:
    given = {"name": name, "expiresAt": expires, "user": for_user}
    body = {key: value for key, value in given.items() if value is not None}
    print_object(session.client.call("POST", "tokens", body=body)["token"], session.output)
    print_done("Keep the secret now: it is not shown again. METALAKE_TOKEN takes it.")


def drop_token(session: Session, id: str, yes: bool) -> None:
    session.confirm(f"Revoke token {id}?", yes)
    session.client.call("DELETE", "tokens", id)
    print_done(f"Revoked token {id}.")
