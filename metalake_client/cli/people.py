"""`gcli user`, `group` and `role`: who belongs to a metalake, and who holds which role."""

from __future__ import annotations

from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import (
    FILE_OF_PROPERTIES,
    FOR,
    LIMIT,
    PLACE_OR_NONE,
    YES,
    add,
    family,
    name_option,
    option,
    subject_of,
)
from metalake_client.cli.kinds import PEOPLE
from metalake_client.cli.objects import json_of
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.plans import DRY_RUN, show_plan
from metalake_client.cli.properties import properties_of
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

ROLE = name_option("role")
HOLDERS = [FOR["user"], FOR["group"]]
OUTSIDE_ID = option("external_id", str | None, default=None, help="Its id at another system, as SCIM has it.")
FILE = option("file", Path | None, default=None, help="A JSON file with a list of names; more than one, up to 100.")
CHANGES = ("add", "remove")


def add_to(app: typer.Typer) -> None:
    for name, kind in PEOPLE.items():
        group = family(app, name, f"{kind.plural.capitalize()} of a metalake.")
        _Verbs(name).add_to(group)
        if name == "user":
            invited = [name_option("user", "--name", "--user-name", in_place=True, name="name")]
            add(group, "invite", invite, invited, help="Make a link by which a new person sets a password.")
        if name == "group":
            users = [option(each, list[str], f"--{each}", default=(), help=f"A user to {each}.") for each in CHANGES]
            add(group, "members", change_members, [_named("group"), *users], help="Add users to a group, remove them.")
        if name == "role":
            options = [ROLE, *HOLDERS, DRY_RUN]
            add(group, "assign", assign, options, help="Give a role to a user or a group.")
            add(group, "unassign", unassign, options, help="Take a role from a user or a group.")
            grants = option(
                "file", Path, help="A JSON file with the list of its securable objects, as the wire has it."
            )
            whole = [_named("role"), grants, YES]
            add(group, "override", override, whole, help="Replace all that a role holds; asks before.")


def _named(what: str) -> Parameter:
    return name_option(what, "--name", in_place=True, name="name")


class _Verbs:
    """list, details, create and drop, which users, groups and roles have alike."""

    def __init__(self, what: str) -> None:
        self.what, self.plural = what, PEOPLE[what].plural

    def add_to(self, group: typer.Typer) -> None:
        what, plural = self.what, self.plural
        by_place = PLACE_OR_NONE if what == "role" else []
        add(group, "list", self.list_all, [*by_place, LIMIT], help=f"List the {plural}.")
        add(group, "details", self.details, [_named(what)], help=f"Show a {what}.")
        name = option("name", str, "--name", help="Its name.")
        if what == "role":
            grants = option("file", Path | None, default=None, help="A JSON file with its first securable objects.")
            add(group, "create", self.create_role, [name, grants, *FILE_OF_PROPERTIES], help="Add a role.")
            add(group, "drop", self.drop, [_named(what), DRY_RUN, YES], help="Remove a role; asks before.")
            return
        disabled = option("disabled", bool, "--disabled", default=False, help="Who may not sign in yet.")
        fields = [OUTSIDE_ID, *[disabled] * (what == "user")]
        add(group, "create", self.create, [name, *fields], help=f"Add a {what}.")
        add(group, "drop", self.drop, [_named(what), YES], help=f"Remove a {what}; asks before.")
        many = option("file", Path, help="A JSON file with a list of names, up to 100.")
        add(group, "create-all", self.create_all, [many], help=f"Add {plural}, each by itself.")
        add(group, "drop-all", self.drop_all, [many, YES], help=f"Remove {plural}, each by itself; asks before.")

    def list_all(
        self, session: Session, limit: int | None, type_: str | None = None, object_: str | None = None
    ) -> None:
        if type_ or object_:
            place = ["objects", type_ or "", object_ or "", "roles"]
            names = session.client.get("metalakes", session.metalake, *place)["names"]
            print_rows([{"name": each} for each in names[:limit]], ("name",), session.output)
            return
        has_details = self.what != "role"
        path = ["metalakes", session.metalake, self.plural]
        reply = session.client.get(*path, details="true" if has_details else None)
        rows = reply[self.plural] if has_details else [{"name": each} for each in reply["names"]]
        print_rows(rows[:limit], ("name", "roles") if has_details else ("name",), session.output)

    def details(self, session: Session, name: str) -> None:
        print_object(session.client.get("metalakes", session.metalake, self.plural, name)[self.what], session.output)

    def create(self, session: Session, name: str, external_id: str | None, disabled: bool = False) -> None:
        body: dict[str, Any] = {"name": name}
        if external_id is not None:
            body["externalId"] = external_id
        self._create(session, body | ({"enabled": False} if disabled else {}))

    def create_role(
        self, session: Session, name: str, file: Path | None, properties: list[str], properties_file: Path | None
    ) -> None:
        given = json_of(file) if file else []
        self._create(
            session,
            {"name": name, "properties": properties_of(properties, properties_file), "securableObjects": given},
        )

    def _create(self, session: Session, body: dict[str, Any]) -> None:
        reply = session.client.call("POST", "metalakes", session.metalake, self.plural, body=body)
        print_object(reply[self.what], session.output)
        print_done(f"Added {self.what} {body['name']} to metalake {session.metalake}.")

    def drop(self, session: Session, name: str, yes: bool, dry_run: bool = False) -> None:
        if dry_run:
            show_plan(session, {"change": "dropRole", "role": name})
            return
        session.confirm(f"Remove {self.what} {name} from metalake {session.metalake}?", yes)
        reply = session.client.call("DELETE", "metalakes", session.metalake, self.plural, name)
        if not any(value is True for value in reply.values()):
            raise Failure(f"There is no {self.what} {name} in metalake {session.metalake}.", Exit.MISSING)
        print_done(f"Removed {self.what} {name} from metalake {session.metalake}.")

    def create_all(self, session: Session, file: Path) -> None:
        self._all(session, "add", {self.plural: [{"name": each} for each in _names(file)]})

    def drop_all(self, session: Session, file: Path, yes: bool) -> None:
        names = _names(file)
        session.confirm(f"Remove {len(names)} {self.plural} from metalake {session.metalake}?", yes)
        self._all(session, "remove", {"names": names})

    def _all(self, session: Session, verb: str, body: dict[str, Any]) -> None:
        path = ["bulk", "metalakes", session.metalake, self.plural, verb]
        reply = session.client.call("POST", *path, body=body)
        summary = reply["summary"]
        print_object({**summary, "errors": reply["errors"]}, session.output)
        if summary["failed"]:
            raise Failure(f"{summary['failed']} of {summary['total']} {self.plural} failed, as shown.", Exit.CONFLICT)
        print_done(f"{summary['succeeded']} {self.plural} done.")


def _names(file: Path) -> list[str]:
    names = json_of(file)
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise Failure(f"--file: {file} has to hold a JSON list of names.", Exit.USAGE)
    return names


def invite(session: Session, name: str) -> None:
    path = ["metalakes", session.metalake, "users", name, "invitation"]
    made = session.client.call("POST", *path)["invitation"]
    print_object({"link": session.profile.url.rstrip("/") + made["path"], **made}, session.output)
    print_done("Send the link to them alone: it sets their password, once.")


def change_members(session: Session, name: str, add: list[str], remove: list[str]) -> None:
    body = {"usersToAdd": list(add), "usersToRemove": list(remove)}
    reply = session.client.call("PUT", "metalakes", session.metalake, "groups", name, body=body)
    print_object(reply["group"], session.output)


def assign(session: Session, role: str, dry_run: bool, **holder: str) -> None:
    _assign(session, "grant", role, dry_run, **holder)


def unassign(session: Session, role: str, dry_run: bool, **holder: str) -> None:
    _assign(session, "revoke", role, dry_run, **holder)


def _assign(session: Session, verb: str, role: str, dry_run: bool, **given: str) -> None:
    sort, holder = subject_of(given)
    if dry_run:
        show_plan(session, {"change": "assign" if verb == "grant" else "unassign", "role": role, sort: holder})
        return
    path = ["metalakes", session.metalake, "permissions", f"{sort}s", holder, verb]
    session.client.call("PUT", *path, body={"roleNames": [role]})
    print_done(f"{holder} has role {role}{'' if verb == 'grant' else ' no more'}.")


def override(session: Session, name: str, file: Path, yes: bool) -> None:
    given = json_of(file)
    session.confirm(f"Replace all that role {name} holds?", yes)
    path = ["metalakes", session.metalake, "permissions", "roles", name]
    print_object(session.client.call("PUT", *path, body={"overrides": given})["role"], session.output)
    print_done(f"Role {name} holds what {file} has.")
