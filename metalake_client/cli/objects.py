"""The commands that every kind of object has: list, details, create, alter, drop, enable and disable."""

from __future__ import annotations

import json
from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import FILE_OF_PROPERTIES, YES, Names, add, name_option, option
from metalake_client.cli.kinds import Kind
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.properties import properties_of
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

FIELDS = {
    "provider": option("provider", str | None, default=None, help="glue, hive, lakehouse-iceberg, ..."),
    "type": option("type", str, default="relational", help="What it holds."),
    "file": option("file", Path, help="A JSON file with the definition, as the REST wire has it."),
}
DROPS = {
    "force": "Also if it is in use or not empty.",
    "cascade": "With all that it holds, where the catalog allows that.",
    "purge": "With its files.",
}
LIMIT = option("limit", int | None, default=None, min=1, help="At most so many.")


def add_kind(app: typer.Typer, kind: Kind) -> typer.Typer:
    """Add the commands of a kind, as `gcli <kind> <verb>`; returns its group, to which others can be added."""
    group = typer.Typer(help=kind.help, no_args_is_help=True)
    app.add_typer(group, name=kind.name)
    above = [name_option(each) for each in kind.above]
    itself = [*above, name_option(kind.name, "--name")]
    verbs = _Verbs(kind)
    in_metalake = kind.name != "metalake"
    refresh = [option("refresh", bool, "--refresh", default=False, help="Ask the outside system anew.")]
    parent = [option("parent", str | None, default=None, help="List what lies directly in this schema.")]
    listed = [*above, *(parent if kind.name == "schema" else ()), LIMIT]
    add(group, "list", verbs.list_all, listed, help=f"List the {kind.plural}.", in_metalake=in_metalake)
    loads = refresh if len(kind.above) else []
    add(group, "details", verbs.details, [*itself, *loads], help=f"Show a {kind.name}.")
    if kind.creates:
        fields = [FIELDS[each] for each in kind.fields]
        made = [
            *itself,
            *fields,
            *_comment(None),
            *FILE_OF_PROPERTIES,
            *(parent_of_new() if kind.name == "schema" else ()),
        ]
        add(group, "create", verbs.create, made, help=f"Create a {kind.name}.")
    add(group, "alter", verbs.alter, [*itself, *_changes(kind)], help=f"Change a {kind.name}, all or nothing.")
    drops = [option(each, bool, f"--{each}", default=False, help=DROPS[each]) for each in kind.drops]
    add(group, "drop", verbs.drop, [*itself, *drops, YES], help=f"Drop a {kind.name}; asks before.")
    if kind.switches:
        add(group, "enable", verbs.enable, itself, help=f"Let a {kind.name} be used.")
        add(group, "disable", verbs.disable, itself, help=f"Let nobody use a {kind.name} and what it holds.")
    return group


def parent_of_new() -> list[Parameter]:
    dry = option("dry_run", bool, "--dry-run", default=False, help="Only say which schemas it would make.")
    return [option("parent", str | None, default=None, help="The schema that it is to be in."), dry]


def _comment(default: str | None) -> list[Parameter]:
    return [option("comment", str | None, default=default, help="What people should know of it.")]


def _changes(kind: Kind) -> list[Parameter]:
    new_name = option("rename", str | None, default=None, help="Its new name.")
    removed = option("remove", list[str], "--remove", default=(), help="A property to remove; repeatable.")
    own = [new_name] * ("name" in kind.changes) + _comment(None) * ("comment" in kind.changes)
    return [*own, *FILE_OF_PROPERTIES, removed]


class _Verbs:
    """What the commands of one kind do."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def path(self, session: Session, given: dict[str, Any], *, is_list: bool = False) -> list[str]:
        names: Names = {each: given[each] for each in self.kind.way if given.get(each)}
        if self.kind.name != "metalake":
            names["metalake"] = session.metalake
        return self.kind.path(names, is_list=is_list)

    def list_all(self, session: Session, limit: int | None, parent: str | None = None, **given: Any) -> None:
        path = self.path(session, given, is_list=True)
        query = {"details": "true"} if self.kind.name == "catalog" else {"parentSchema": parent}
        reply = session.client.get(*path, **query)
        rows = reply.get(self.kind.plural) or reply.get("identifiers") or []
        print_rows(rows[:limit], self.kind.columns, session.output)

    def details(self, session: Session, refresh: bool = False, **given: Any) -> None:
        reply = session.client.get(*self.path(session, given), refresh="true" if refresh else None)
        print_object(reply[self.kind.name], session.output)

    def create(
        self,
        session: Session,
        comment: str | None,
        properties: list[str],
        properties_file: Path | None,
        file: Path | None = None,
        parent: str | None = None,
        dry_run: bool = False,
        **given: Any,
    ) -> None:
        name = given[self.kind.name]
        if parent:
            name = given[self.kind.name] = f"{parent}:{name}"
        if dry_run:
            made = session.client.get(*self.path(session, given), "to-be-made")
            print_rows([{"name": each} for each in made["schemas"]], ("name",), session.output)
            return
        body = _definition(file) if file else {}
        body |= {"name": name, "properties": body.get("properties", {}) | properties_of(properties, properties_file)}
        body |= {each: given[each] for each in self.kind.fields if each != "file"}
        if comment is not None:
            body["comment"] = comment
        reply = session.client.call("POST", *self.path(session, given, is_list=True), body=body)
        print_object(reply[self.kind.name], session.output)
        print_done(f"Created {self.kind.name} {name}.")

    def alter(
        self,
        session: Session,
        properties: list[str],
        properties_file: Path | None,
        remove: list[str],
        rename: str | None = None,
        comment: str | None = None,
        **given: Any,
    ) -> None:
        wanted = properties_of(properties, properties_file).items()
        updates: list[dict[str, Any]] = [{"@type": "setProperty", "property": k, "value": v} for k, v in wanted]
        updates += [{"@type": "removeProperty", "property": each} for each in remove]
        if comment is not None:
            updates.append({"@type": "updateComment", "newComment": comment})
        if rename is not None:
            updates.append({"@type": "rename", "newName": rename})
        if not updates:
            raise Failure(f"What is to change? See gcli {self.kind.name} alter --help.", Exit.USAGE)
        reply = session.client.call("PUT", *self.path(session, given), body={"updates": updates})
        print_object(reply[self.kind.name], session.output)
        print_done(f"Changed {self.kind.name} {given[self.kind.name]}.")

    def drop(self, session: Session, yes: bool, **given: Any) -> None:
        name = given[self.kind.name]
        session.confirm(f"Drop {self.kind.name} {name}?", yes)
        query = {each: "true" for each in self.kind.drops if given[each]}
        reply = session.client.call("DELETE", *self.path(session, given), query=query)
        if not reply.get("dropped"):
            raise Failure(f"There is no {self.kind.name} {name}.", Exit.MISSING)
        print_done(f"Dropped {self.kind.name} {name}.")

    def enable(self, session: Session, **given: Any) -> None:
        self._switch(session, given, in_use=True)

    def disable(self, session: Session, **given: Any) -> None:
        self._switch(session, given, in_use=False)

    def _switch(self, session: Session, given: dict[str, Any], *, in_use: bool) -> None:
        session.client.call("PATCH", *self.path(session, given), body={"inUse": in_use})
        print_done(f"{'Enabled' if in_use else 'Disabled'} {self.kind.name} {given[self.kind.name]}.")


def _definition(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        raise Failure(f"--file: {path} cannot be read as JSON: {wrong}", Exit.USAGE) from None
    if not isinstance(given, dict):
        raise Failure(f"--file: {path} has to hold one JSON object.", Exit.USAGE)
    return given
