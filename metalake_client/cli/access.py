"""`gcli access`: who may what, why and since when, now or at a moment; plans.py has grants as code."""

from __future__ import annotations

from typing import Any

import typer

from metalake_client.cli import plans
from metalake_client.cli.commands import (
    FOR,
    LIMIT,
    PLACE,
    PLACE_OR_NONE,
    add,
    family,
    name_option,
    option,
    subject_of,
)
from metalake_client.cli.output import Format, Row, print_line, print_object, print_rows
from metalake_client.cli.session import PAGE, Session
from metalake_client.failures import Exit, Failure

AS_OF = option("as_of", str | None, "--as-of", default=None, help="A moment, as in 2026-12-01T00:00:00Z; now if none.")
ABOUT = name_option(
    "user", "--for-user", in_place=True, name="about", default=None, help="Whom it is about; yourself if nobody is."
)
PRIVILEGE = option("privilege", str | None, default=None, help="A privilege, as in SELECT_TABLE.")
OPERATION = option("operation", str | None, default=None, help="An operation, as in LOAD_TABLE.")
HOLDER = [*FOR.values()]
BETWEEN = [
    option("start", str | None, "--from", default=None, help="The first moment, as in 2026-12-01T00:00:00Z."),
    option("end", str | None, "--until", default=None, help="The last moment; now if none."),
]
SHOWN = [
    option("by", str | None, default=None, help="List the ways of each user (if none is said), group or role."),
    option("show", str | None, default=None, help="effective, direct or inherited; all if none is said."),
]


def add_to(app: typer.Typer) -> None:
    access = family(app, "access", "Who may what, why and since when; and grants as code.")
    asked = [ABOUT, PRIVILEGE, OPERATION, *PLACE, AS_OF]
    add(access, "explain", explain, asked, help="Why somebody may or may not do something.")
    add(access, "check", check, asked, help="Whether somebody may; exit code 3 if not.")
    add(access, "list", effective, [*PLACE, PRIVILEGE, AS_OF, LIMIT], help="Who may do what on an object.")
    below = [*HOLDER, *PLACE_OR_NONE, PRIVILEGE, AS_OF, LIMIT]
    add(access, "effective", effective_of, below, help="What a user, group or role may do.")
    add(access, "seen", seen, [ABOUT, *PLACE_OR_NONE, LIMIT], help="What somebody sees directly below an object.")
    narrowed = [*HOLDER, PRIVILEGE, *SHOWN, AS_OF, LIMIT]
    add(access, "ways", ways, [*PLACE, *narrowed], help="By which grants people have privileges on an object.")
    add(access, "moments", moments, [*PLACE, *BETWEEN, LIMIT], help="When access to an object changed, and by whom.")
    add(access, "compare", compare, [*PLACE, *BETWEEN, LIMIT], help="Who gained and lost what between two moments.")
    add(access, "changes", changes, [*PLACE, LIMIT], help="What was done to an object, and by whom.")
    add(access, "grantable", grantable, PLACE, help="What you may grant on an object.")
    add(access, "former-members", former, help="Who left, and carries a DENY still.")
    plans.add_to(access)


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


def _print_reason(reason: Row, depth: int) -> None:
    print_line(f"{'  ' * depth}{reason['says']}")
    for inner in reason.get("because") or ():
        _print_reason(inner, depth + 1)


def check(session: Session, as_of: str | None, **given: Any) -> None:
    question, path = _question(**given), ["metalakes", session.metalake, "access"]
    body: dict[str, Any] = {"questions": [question]} | ({"asOf": as_of} if as_of else {})
    (answer,) = session.client.call("POST", *path, "check", body=body)["answers"]
    if not answer["allowed"]:
        session.client.get(*path, "explain", **question, asOf=as_of)  # this one refuses what does not exist
    print_object(answer, session.output)
    if not answer["allowed"]:
        raise Failure("No.", Exit.REFUSED)


def effective(
    session: Session, type_: str, object_: str, privilege: str | None, as_of: str | None, limit: int | None
) -> None:
    path = ["access", "objects", type_, object_]
    rows = session.rows("access", *path, limit=limit, asOf=as_of, privilege=privilege)
    print_rows(rows, ("user", "owner", "privileges"), session.output)


def effective_of(
    session: Session, type_: str | None, object_: str | None, as_of: str | None, limit: int | None, **given: Any
) -> None:
    sort, name = subject_of(given)
    narrowed = {"type": type_, "fullName": object_, "asOf": as_of, "privilege": given["privilege"]}
    rows = session.rows("objects", "access", f"{sort}s", name, limit=limit, **narrowed)
    print_rows(rows, ("type", "fullName", "owner", "privileges"), session.output)


def seen(session: Session, about: str | None, type_: str | None, object_: str | None, limit: int | None) -> None:
    who = about or session.client.get("authn", "me")["principal"]
    path = ["access", "users", who, "children"]
    rows = session.rows("objects", *path, limit=limit, type=type_, fullName=object_)
    print_rows(rows, ("type", "fullName"), session.output)


def ways(session: Session, type_: str, object_: str, as_of: str | None, limit: int | None, **given: Any) -> None:
    narrowed = {name: given[name] for name in ("privilege", "by", "show")} | {"asOf": as_of}
    narrowed |= {kind: given[f"for_{kind}"] or None for kind in FOR}
    rows = session.rows("ways", "access", "objects", type_, object_, "ways", limit=limit, **narrowed)
    columns = ("user", "group", "role", "owner", "privilege", "condition", "verdict", "on", "grantor", "endTime")
    print_rows(rows, columns, session.output)


def moments(session: Session, type_: str, object_: str, start: str | None, end: str | None, limit: int | None) -> None:
    path = ["metalakes", session.metalake, "access", "objects", type_, object_, "moments"]
    rows = list[Row]()
    while True:
        wanted = PAGE if limit is None else min(PAGE, limit - len(rows))
        page = session.client.get(*path, since=start, until=end, limit=str(wanted))
        rows += page["moments"]
        if page["since"] == end or len(rows) == limit:
            break
        end = page["since"]  # before this moment there may be more
    print_rows(rows, ("time", "event", "actor", "says", "memberCount"), session.output)


def compare(session: Session, type_: str, object_: str, start: str | None, end: str | None, limit: int | None) -> None:
    if start is None:
        raise Failure("Name the moment to compare with, by --from.", Exit.USAGE)
    path = ["access", "objects", type_, object_, "compared"]
    rows = session.rows("moved", *path, limit=limit, **{"from": start, "to": end})
    print_rows(rows, ("user", "gained", "lost", "by"), session.output)


def changes(session: Session, type_: str, object_: str, limit: int | None) -> None:
    rows = session.rows("changes", "access", "objects", type_, object_, "changes", limit=limit)
    print_rows(rows, ("at", "event", "actor", "says"), session.output)


def grantable(session: Session, type_: str, object_: str) -> None:
    path = ["metalakes", session.metalake, "access", "objects", type_, object_, "grantable"]
    print_object(session.client.get(*path)["grantable"], session.output)


def former(session: Session) -> None:
    rows = session.client.get("metalakes", session.metalake, "access", "former-members")["formerMembers"]
    print_rows(rows, ("name", "roles", "groups"), session.output)
