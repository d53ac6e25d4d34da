"""What roles are given: `gcli grant`; and who owns what: `gcli owner`."""

from __future__ import annotations

import typer

from metalake_client.cli.commands import LIMIT, PLACE, add, family, option, subject_of
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.people import HOLDERS, ROLE
from metalake_client.cli.plans import DRY_RUN, show_plan
from metalake_client.cli.session import Session

PRIVILEGES = option("privilege", list[str], "--privilege", help="A privilege, as in SELECT_TABLE; repeatable.")
DENY = option("deny", bool, "--deny", default=False, help="Deny it, which wins over every allow.")
TIMES = [
    option("start", str | None, "--from", default=None, help="When it begins, as in 2026-12-01T00:00:00Z."),
    option("end", str | None, "--until", default=None, help="When it ends."),
]


def add_to(app: typer.Typer) -> None:
    grants = family(app, "grant", "What roles may do, on any level.")
    given = [ROLE, *PLACE, PRIVILEGES, DENY]
    add(grants, "add", grant, [*given, *TIMES, DRY_RUN], help="Grant privileges to a role on an object.")
    add(grants, "remove", revoke, [*given, DRY_RUN], help="Revoke privileges of a role.")
    add(grants, "list", list_grants, [ROLE, LIMIT], help="List what a role may do.")
    owners = family(app, "owner", "Owners, who may do everything with what is theirs.")
    add(owners, "details", show_owner, PLACE, help="Show who owns an object.")
    add(owners, "set", set_owner, [*PLACE, *HOLDERS], help="Hand an object to another user or group.")


def grant(session: Session, start: str | None, end: str | None, deny: bool, **given: object) -> None:
    times = {name: value for name, value in {"startTime": start, "endTime": end}.items() if value}
    _change(session, "grant", times, deny, **given)  # type: ignore[arg-type]


def revoke(session: Session, deny: bool, **given: object) -> None:
    _change(session, "revoke", {}, deny, **given)  # type: ignore[arg-type]


def _change(
    session: Session,
    verb: str,
    times: dict[str, str],
    deny: bool,
    *,
    role: str,
    type_: str,
    object_: str,
    privilege: list[str],
    dry_run: bool,
) -> None:
    condition = "deny" if deny else "allow"
    if dry_run:
        on = {"type": type_, "fullName": object_}
        change = {"change": verb, "role": role, "condition": condition, "on": on, **times}
        show_plan(session, *({**change, "privilege": each} for each in privilege))
        return
    asked = [{"name": each, "condition": condition, **times} for each in privilege]
    path = ["metalakes", session.metalake, "permissions", "roles", role, type_, object_, verb]
    reply = session.client.call("PUT", *path, body={"privileges": asked})
    print_object(reply["role"], session.output)
    done = {"grant": "Denied" if deny else "Granted", "revoke": "Revoked"}[verb]
    print_done(f"{done} {', '.join(privilege)} on {type_} {object_}: role {role}.")


def list_grants(session: Session, role: str, limit: int | None) -> None:
    reply = session.client.get("metalakes", session.metalake, "roles", role)["role"]
    rows = [
        {"type": each["type"], "object": each["fullName"]} | privilege
        for each in reply["securableObjects"]
        for privilege in each["privileges"]
    ]
    columns = ("type", "object", "name", "condition", "startTime", "endTime")
    print_rows(rows[:limit], columns, session.output)


def show_owner(session: Session, type_: str, object_: str) -> None:
    reply = session.client.get("metalakes", session.metalake, "owners", type_, object_)
    print_object(reply.get("owner") or {}, session.output)


def set_owner(session: Session, type_: str, object_: str, **given: str) -> None:
    sort, name = subject_of(given)
    body = {"name": name, "type": sort}
    session.client.call("PUT", "metalakes", session.metalake, "owners", type_, object_, body=body)
    print_done(f"{body['name']} owns {type_} {object_}.")
