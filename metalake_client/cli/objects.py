"""The commands that every kind of object has: list, details, create, alter, drop, enable and disable."""

from __future__ import annotations

import json
from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import FILE_OF_PROPERTIES, LIMIT, YES, Names, add, family, name_option, option
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
CHANGES = {
    "name": option("rename", str | None, default=None, help="Its new name."),
    "schema": option("to_schema", str | None, default=None, help="The schema that it moves to."),
    "comment": option("comment", str | None, default=None, help="What people should know of it."),
    "file": option("file", Path | None, default=None, help="A JSON file with a list of updates, as the wire has them."),
}
REFRESH = option("refresh", bool, "--refresh", default=False, help="Ask the outside system anew.")


def add_kind(app: typer.Typer, kind: Kind) -> typer.Typer:
    """Add the commands of a kind, as `gcli <kind> <verb>`; returns its group, to which others can be added."""
    group, verbs = family(app, kind.name, kind.help), _Verbs(kind)
    above = [name_option(each) for each in kind.above]
    itself = [*above, name_option(kind.name, "--name")]
    anew = [REFRESH] * kind.refreshes
    parent = option("parent", str | None, default=None, help="List what lies directly in this schema.")
    listed = [*above, *[parent] * kind.is_nested, *anew, LIMIT]
    is_below = kind.name != "metalake"
    add(group, "list", verbs.list_all, listed, help=f"List the {kind.plural}.", in_metalake=is_below)
    add(group, "details", verbs.details, [*itself, *anew], help=f"Show a {kind.name}.")
    add(group, "create", verbs.create, [*above, *_made(kind)], help=f"Create a {kind.name}.")
    if kind.changes:
        add(group, "alter", verbs.alter, [*itself, *_changes(kind)], help=f"Change a {kind.name}, all or nothing.")
    drops = [option(each, bool, f"--{each}", default=False, help=DROPS[each]) for each in kind.drops]
    add(group, "drop", verbs.drop, [*itself, *drops, YES], help=f"Drop a {kind.name}; asks before.")
    if kind.switches:
        add(group, "enable", verbs.enable, itself, help=f"Let a {kind.name} be used.")
        add(group, "disable", verbs.disable, itself, help=f"Let nobody use a {kind.name} and what it holds.")
    return group


def _made(kind: Kind) -> list[Parameter]:
    """The options of `create`, other than the names of the parents."""
    fields = [FIELDS[each] for each in kind.fields]
    if kind.is_named_by_content:
        return [*fields, *FILE_OF_PROPERTIES]
    dry = option("dry_run", bool, "--dry-run", default=False, help="Only say which schemas it would make.")
    parent = [option("parent", str | None, default=None, help="The schema that it is to be in."), dry]
    made = [name_option(kind.name, "--name"), *fields, CHANGES["comment"], *FILE_OF_PROPERTIES]
    return made + parent if kind.is_nested else made


def _changes(kind: Kind) -> list[Parameter]:
    removed = option("remove", list[str], "--remove", default=(), help="A property to remove; repeatable.")
    return [*(CHANGES[each] for each in kind.changes if each in CHANGES), *FILE_OF_PROPERTIES, removed]


class _Verbs:
    """What the commands of one kind do."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def path(self, session: Session, given: dict[str, Any], *, is_list: bool = False) -> list[str]:
        names: Names = {each: given[each] for each in self.kind.way if each in given}
        if self.kind.name != "metalake":
            names["metalake"] = session.metalake
        return self.kind.path(names, is_list=is_list)

    def list_all(
        self, session: Session, limit: int | None, parent: str | None = None, refresh: bool = False, **given: Any
    ) -> None:
        path = self.path(session, given, is_list=True)
        query = {"details": "true" if self.kind.lists_details else None, "refresh": "true" if refresh else None}
        rows = list[dict[str, Any]]()
        for page in session.client.pages(*path, parentSchema=parent, **query):
            rows += page[self.kind.plural] if self.kind.plural in page else page["identifiers"]
            if limit and len(rows) >= limit:
                break
        print_rows(rows[:limit], self.kind.columns, session.output)

    def details(self, session: Session, refresh: bool = False, **given: Any) -> None:
        reply = session.client.get(*self.path(session, given), refresh="true" if refresh else None)
        print_object(reply[self.kind.name], session.output)

    def create(
        self,
        session: Session,
        properties: list[str],
        properties_file: Path | None,
        comment: str | None = None,
        file: Path | None = None,
        parent: str | None = None,
        dry_run: bool = False,
        **given: Any,
    ) -> None:
        if parent:
            given[self.kind.name] = f"{parent}{session.separator}{given[self.kind.name]}"
        if dry_run:
            made = session.client.get(*self.path(session, given), "to-be-made")
            print_rows([{"name": each} for each in made["schemas"]], ("name",), session.output)
            return
        body = definition_of(file) if file else {}
        body["properties"] = body.get("properties", {}) | properties_of(properties, properties_file)
        body |= {each: given[each] for each in self.kind.fields if each != "file"}
        if comment is not None:
            body["comment"] = comment
        made = self._post(session, self.path(session, given, is_list=True), body, given.get(self.kind.name))
        print_object(made, session.output)
        print_done(f"Created {self.kind.name} {made['name']}.")

    def _post(self, session: Session, path: list[str], body: dict[str, Any], name: str | None) -> dict[str, Any]:
        if self.kind.is_named_by_content:
            (made,) = session.client.call("POST", *path, body={self.kind.plural: [body]})[self.kind.plural]
            return dict(made)
        return dict(session.client.call("POST", *path, body=body | {"name": name})[self.kind.name])

    def alter(
        self,
        session: Session,
        properties: list[str],
        properties_file: Path | None,
        remove: list[str],
        rename: str | None = None,
        to_schema: str | None = None,
        comment: str | None = None,
        file: Path | None = None,
        **given: Any,
    ) -> None:
        name = given[self.kind.name]
        updates = updates_of(properties, properties_file, remove)
        if comment is not None:
            updates.append({"@type": "updateComment", "newComment": comment})
        if rename is not None or to_schema is not None:
            moved = {} if to_schema is None else {"newSchemaName": to_schema}
            updates.append({"@type": "rename", "newName": name if rename is None else rename} | moved)
        if file is not None:
            updates += _updates(file)
        if not updates:
            raise Failure(f"What is to change? See gcli {self.kind.name} alter --help.", Exit.USAGE)
        reply = session.client.call("PUT", *self.path(session, given), body={"updates": updates})
        print_object(reply[self.kind.name], session.output)
        print_done(f"Changed {self.kind.name} {name}.")

    def drop(self, session: Session, yes: bool, **given: Any) -> None:
        name, path = given[self.kind.name], self.path(session, given)
        session.confirm(f"Drop {self.kind.name} {name}?", yes)
        query = {each: "true" for each in self.kind.drops if given[each]}
        reply = session.client.call("DELETE", *path, query=query)
        if not reply.get("dropped"):
            whole = ".".join(given[each] for each in self.kind.way)
            raise Failure(f"{self.kind.name.capitalize()} {whole} does not exist.", Exit.MISSING)
        print_done(f"Dropped {self.kind.name} {name}.")

    def enable(self, session: Session, **given: Any) -> None:
        self._switch(session, given, in_use=True)

    def disable(self, session: Session, **given: Any) -> None:
        self._switch(session, given, in_use=False)

    def _switch(self, session: Session, given: dict[str, Any], *, in_use: bool) -> None:
        session.client.call("PATCH", *self.path(session, given), body={"inUse": in_use})
        print_done(f"{'Enabled' if in_use else 'Disabled'} {self.kind.name} {given[self.kind.name]}.")


def updates_of(properties: list[str], properties_file: Path | None, remove: list[str]) -> list[dict[str, Any]]:
    """The updates of the wire that set and remove properties."""
    wanted = properties_of(properties, properties_file).items()
    updates: list[dict[str, Any]] = [{"@type": "setProperty", "property": k, "value": v} for k, v in wanted]
    return updates + [{"@type": "removeProperty", "property": each} for each in remove]


def definition_of(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises Failure."""
    given = json_of(path)
    if not isinstance(given, dict) or not isinstance(given.get("properties", {}), dict):
        raise Failure(f"--file: {path} has to hold one JSON object, and its properties another.", Exit.USAGE)
    return given


def _updates(path: Path) -> list[Any]:
    given = json_of(path)
    if not isinstance(given, list):
        raise Failure(f"--file: {path} has to hold a JSON list of updates.", Exit.USAGE)
    return given


def json_of(path: Path) -> Any:
    """What a JSON file holds. Raises Failure."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as wrong:
        raise Failure(f"--file: {path} cannot be read: {wrong.strerror}.", Exit.USAGE) from None
    except (ValueError, RecursionError) as wrong:
        raise Failure(f"--file: {path} cannot be read as JSON: {wrong}", Exit.USAGE) from None
