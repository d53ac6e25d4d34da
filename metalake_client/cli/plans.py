"""Grants as code: what `gcli access` has for files, and the dry run of every command that changes rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import PLACE, PLACE_OR_NONE, YES, add, name_option, option
from metalake_client.cli.output import Format, print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

FILE = option("file", Path | None, "--file", "-f", default=None, help="A file of grants, YAML or JSON (access export).")
CHANGES = option("changes", Path | None, default=None, help="A file with a list of changes, and no others.")
DRY_RUN = option("dry_run", bool, "--dry-run", default=False, help="Only say what would change, and for whom.")
COLUMNS = ("change", "role", "privilege", "condition", "on", "user", "group")


def add_to(access: typer.Typer) -> None:
    add(access, "export", export, PLACE_OR_NONE, help="Write all grants down, as plan takes them.")
    add(access, "plan", plan, [FILE, CHANGES], help="Show what a file would change, and who gains and loses by it.")
    add(access, "apply", apply, [FILE, CHANGES, YES], help="Make the changes of a file, after showing them.")
    add(access, "drift", drift, [FILE], help="Exit code 5 if the grants are not those of a file.")
    applied = option("plan", str, help="What apply said when it ended, within the last hour.")
    add(access, "undo", undo, [applied, YES], help="Take back what was applied, after showing it.")
    people = [
        option("users", list[str], "--for-user", default=(), help="A user who is to have it; repeatable."),
        option("groups", list[str], "--for-group", default=(), help="A group that is to have it; repeatable."),
        option("privilege", list[str], "--privilege", help="A privilege, as in SELECT_TABLE; repeatable."),
        name_option("role", default=None, help="The role that is to give it; a fitting one if none is named."),
    ]
    add(access, "propose", propose, [*people, *PLACE, YES], help="Find the role that gives people privileges; asks.")


def export(session: Session, type_: str | None, object_: str | None) -> None:
    reply = session.client.get("metalakes", session.metalake, "access", "export", type=type_, fullName=object_)
    print_object(reply["access"], Format.YAML if session.output is Format.TABLE else session.output)


def plan(session: Session, file: Path | None, changes: Path | None) -> None:
    print_object(_planned(session, file, changes), session.output)


def apply(session: Session, file: Path | None, changes: Path | None, yes: bool) -> None:
    make(session, _planned(session, file, changes), yes)


def drift(session: Session, file: Path | None) -> None:
    planned = _planned(session, file, None)
    if not planned["changes"] and session.output is Format.TABLE:
        print_done(f"The grants are those of {file}.")
        return
    print_rows(planned["changes"], COLUMNS, session.output)
    if planned["changes"]:
        raise Failure(f"{len(planned['changes'])} grants are not as {file} has them.", Exit.CONFLICT)


def undo(session: Session, plan: str, yes: bool) -> None:
    reply = session.client.call("POST", "metalakes", session.metalake, "access", "undo", body={"token": plan})
    make(session, reply["plan"], yes, "Take back")


def propose(session: Session, type_: str, object_: str, privilege: list[str], yes: bool, **given: Any) -> None:
    asked = [{"name": each, "condition": "allow"} for each in privilege]
    body = {"type": type_, "fullName": object_, "privileges": asked, "role": given["role"]}
    body |= {"users": list(given["users"]), "groups": list(given["groups"])}
    path = ["metalakes", session.metalake, "access", "proposals"]
    proposal = session.client.call("POST", *path, body=body)["proposal"]
    planned = proposal.pop("plan", None)
    print_object(proposal, session.output)
    if planned is None:
        raise Failure(
            f"There is nothing to apply: {proposal['reason']}", Exit.REFUSED if proposal["asks"] else Exit.DONE
        )
    print_done(f"{proposal['reason']} {planned['summary']}.")
    session.confirm("Apply it?", yes)
    _apply(session, planned)


def make(session: Session, planned: dict[str, Any], yes: bool, verb: str = "Apply") -> None:
    """Show a plan, ask, and apply it."""
    if not planned["changes"]:
        print_done("Nothing to change.")
        return
    print_object(planned, session.output)
    session.confirm(f"{verb} {len(planned['changes'])} changes?", yes)
    _apply(session, planned)


def _apply(session: Session, planned: dict[str, Any]) -> None:
    body = {"token": planned["token"]}
    reply = session.client.call("POST", "metalakes", session.metalake, "access", "apply", body=body)
    applied = reply["applied"]
    print_done(f"Applied {len(applied['changes'])} changes.")
    if token := applied.get("token"):
        print_done(f"Within the hour this takes them back: gcli access undo --plan {token}")


def show_plan(session: Session, *changes: dict[str, Any]) -> None:
    """A dry run: what these changes would do, and who would gain and lose by them."""
    path = ["metalakes", session.metalake, "access", "changes"]
    print_object(session.client.call("POST", *path, body={"changes": list(changes)})["plan"], session.output)
    print_done("Nothing was changed.")


def _planned(session: Session, file: Path | None, changes: Path | None) -> dict[str, Any]:
    """The plan of a file, which the server reads as it is, so that its errors name lines and columns."""
    chosen, action = (file, "plan") if file else (changes, "changes")
    if chosen is None or (file and changes):
        raise Failure("Give one file, by --file or by --changes.", Exit.USAGE)
    try:
        content = chosen.read_bytes()
    except OSError as wrong:
        raise Failure(f"{chosen} cannot be read: {wrong.strerror}.", Exit.USAGE) from None
    sort = "application/json" if chosen.suffix == ".json" else "application/yaml"
    reply = session.client.call("POST", "metalakes", session.metalake, "access", action, file=(sort, content))
    return dict(reply["plan"])
