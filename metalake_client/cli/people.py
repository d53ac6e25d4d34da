"""`gcli user`, `group` and `role`, and what roles are given: `gcli grant` and `gcli owner`."""

from __future__ import annotations

from typing import Any

import typer

from metalake_client.cli.commands import YES, add, option
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

NAME = option("name", str, "--name", help="Its name.")
ROLE = option("role", str, help="The role's name.")
HOLDERS = [
    option("to_user", str, "--to-user", default="", help="A user who holds it."),
    option("to_group", str, "--to-group", default="", help="A group that holds it."),
]
PLACE = [
    option("type_", str, "--type", help="metalake, catalog, schema, table, view, ..."),
    option("object_", str, "--object", help="Its full name below the metalake, as in lake.sales:emea.orders."),
]
PRIVILEGES = option("privilege", list[str], "--privilege", help="A privilege, as in SELECT_TABLE; repeatable.")
TIMES = [
    option("deny", bool, "--deny", default=False, help="Deny it, which wins over every allow."),
    option("start", str | None, "--from", default=None, help="When it begins, as in 2026-12-01T00:00:00Z."),
    option("end", str | None, "--until", default=None, help="When it ends."),
]


def add_to(app: typer.Typer) -> None:
    for plural, what in (("users", "user"), ("groups", "group"), ("roles", "role")):
        group = typer.Typer(help=f"{plural.capitalize()} of a metalake.", no_args_is_help=True)
        app.add_typer(group, name=what)
        _add_lists(group, plural, what)
        if what == "role":
            add(group, "assign", assign, [ROLE, *HOLDERS], help="Give a role to a user or a group.")
            add(group, "unassign", unassign, [ROLE, *HOLDERS], help="Take a role from a user or a group.")
        if what == "group":
            members = [option(each, list[str], f"--{each}", default=(), help=f"A user to {each}.") for each in CHANGES]
            add(group, "members", change_members, [NAME, *members], help="Add users to a group, or remove them.")
    _add_grants(app)


def _add_lists(group: typer.Typer, plural: str, what: str) -> None:
    def list_(session: Session) -> None:
        details = None if what == "role" else "true"
        reply = session.client.get("metalakes", session.metalake, plural, details=details)
        rows = reply[plural] if details else [{"name": each} for each in reply["names"]]
        print_rows(rows, ("name", "roles") if details else ("name",), session.output)

    def details(session: Session, name: str) -> None:
        print_object(session.client.get("metalakes", session.metalake, plural, name)[what], session.output)

    def create(session: Session, name: str) -> None:
        reply = session.client.call("POST", "metalakes", session.metalake, plural, body={"name": name})
        print_object(reply[what], session.output)
        print_done(f"Added {what} {name} to metalake {session.metalake}.")

    def remove(session: Session, name: str, yes: bool) -> None:
        session.confirm(f"Remove {what} {name} from metalake {session.metalake}?", yes)
        reply = session.client.call("DELETE", "metalakes", session.metalake, plural, name)
        if not any(value is True for value in reply.values()):
            raise Failure(f"There is no {what} {name} in metalake {session.metalake}.", Exit.MISSING)
        print_done(f"Removed {what} {name} from metalake {session.metalake}.")

    add(group, "list", list_, help=f"List the {plural}.")
    add(group, "details", details, [NAME], help=f"Show a {what}.")
    add(group, "create", create, [NAME], help=f"Add a {what}.")
    add(group, "drop", remove, [NAME, YES], help=f"Remove a {what}; asks before.")


def assign(session: Session, role: str, to_user: str, to_group: str) -> None:
    _assign(session, "grant", role, to_user, to_group)
    print_done(f"{to_user or to_group} has role {role}.")


def unassign(session: Session, role: str, to_user: str, to_group: str) -> None:
    _assign(session, "revoke", role, to_user, to_group)
    print_done(f"{to_user or to_group} has role {role} no more.")


def _assign(session: Session, verb: str, role: str, user: str, group: str) -> None:
    if bool(user) == bool(group):
        raise Failure("Name one of --to-user and --to-group.", Exit.USAGE)
    holder = ("users", user) if user else ("groups", group)
    path = ["metalakes", session.metalake, "permissions", *holder, verb]
    session.client.call("PUT", *path, body={"roleNames": [role]})


CHANGES = ("add", "remove")


def change_members(session: Session, name: str, add: list[str], remove: list[str]) -> None:
    body = {"usersToAdd": list(add), "usersToRemove": list(remove)}
    reply = session.client.call("PUT", "metalakes", session.metalake, "groups", name, body=body)
    print_object(reply["group"], session.output)


def _add_grants(app: typer.Typer) -> None:
    grants = typer.Typer(help="What roles may do, on any level.", no_args_is_help=True)
    app.add_typer(grants, name="grant")
    add(grants, "add", grant, [ROLE, *PLACE, PRIVILEGES, *TIMES], help="Grant privileges to a role on an object.")
    add(grants, "remove", revoke, [ROLE, *PLACE, PRIVILEGES, *TIMES[:1]], help="Revoke privileges of a role.")
    add(grants, "list", list_grants, [ROLE], help="List what a role may do.")
    owners = typer.Typer(help="Owners, who may do everything with what is theirs.", no_args_is_help=True)
    app.add_typer(owners, name="owner")
    add(owners, "details", show_owner, PLACE, help="Show who owns an object.")
    add(owners, "set", set_owner, [*PLACE, *HOLDERS], help="Hand an object to another user or group.")


def grant(session: Session, deny: bool, start: str | None, end: str | None, **given: Any) -> None:
    _change_grants(session, "grant", {"startTime": start, "endTime": end}, deny=deny, **given)


def revoke(session: Session, deny: bool, **given: Any) -> None:
    _change_grants(session, "revoke", {}, deny=deny, **given)


def _change_grants(
    session: Session,
    verb: str,
    times: dict[str, str | None],
    *,
    role: str,
    type_: str,
    object_: str,
    privilege: list[str],
    deny: bool,
) -> None:
    limits = {name: value for name, value in times.items() if value}
    asked = [{"name": each, "condition": "deny" if deny else "allow"} | limits for each in privilege]
    path = ["metalakes", session.metalake, "permissions", "roles", role, type_, object_, verb]
    reply = session.client.call("PUT", *path, body={"privileges": asked})
    print_object(reply["role"], session.output)
    done = {"grant": "Denied" if deny else "Granted", "revoke": "Revoked"}[verb]
    print_done(f"{done} {', '.join(privilege)} on {type_} {object_}: role {role}.")


def list_grants(session: Session, role: str) -> None:
    reply = session.client.get("metalakes", session.metalake, "roles", role)["role"]
    rows = [
        {"type": each["type"], "object": each["fullName"]} | privilege
        for each in reply["securableObjects"]
        for privilege in each["privileges"]
    ]
    columns = ("type", "object", "name", "condition", "startTime", "endTime")
    print_rows(rows, columns, session.output)


def show_owner(session: Session, type_: str, object_: str) -> None:
    reply = session.client.get("metalakes", session.metalake, "owners", type_, object_)
    print_object(reply.get("owner") or {}, session.output)


def set_owner(session: Session, type_: str, object_: str, to_user: str, to_group: str) -> None:
    if bool(to_user) == bool(to_group):
        raise Failure("Name one of --to-user and --to-group.", Exit.USAGE)
    body = {"name": to_user or to_group, "type": "user" if to_user else "group"}
    session.client.call("PUT", "metalakes", session.metalake, "owners", type_, object_, body=body)
    print_done(f"{body['name']} owns {type_} {object_}.")
