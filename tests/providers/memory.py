"""An outside system of our own: schemas inside schemas, several calls for one write, and faults on demand.

`flat` is the same without nesting.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from threading import Timer
from typing import Any

from pydantic import Field

from formats.native.tables import (
    AddColumn,
    CreateTableRequest,
    DeleteColumn,
    KeepProperty,
    RemoveProperty,
    RenameColumn,
    SetProperty,
    UpdateComment,
)
from metalake.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    MetalakeError,
    NotEmpty,
    NotFound,
    OutcomeUnknown,
    ProviderBusy,
    ProviderUnavailable,
    Unsupported,
)
from metalake.kinds import Kind
from metalake.wire import Body
from providers.base import Offer, Storage
from providers.external import MARKER, ExternalProvider, ExternalSettings, Levels, Page, Remote, digest
from tests.providers.world import LEVELS, World, fresh


class MemorySettings(ExternalSettings):
    world: str = Field(alias="world", description="The file that the world is in.")


class MemoryProvider(ExternalProvider):
    label = "Memory"
    settings = MemorySettings
    page_size = 3

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            Kind.SCHEMA: Offer(storage=Storage.EXTERNAL, nested=True),
            Kind.TABLE: Offer(storage=Storage.EXTERNAL, formats=frozenset({"memory"})),
        }

    @classmethod
    def completed(cls, catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
        nested = {"nested-namespaces": "true"} if cls.offers(properties)[Kind.SCHEMA].nested else {}
        return nested | dict(properties)

    @property
    def world(self) -> World:
        return World(self.properties["world"])

    def _call(self, verb: str, act: Callable[[dict[str, Any]], Any]) -> Any:
        with self.world.open() as state:
            state["calls"][verb] = state["calls"].get(verb, 0) + 1
            state["pids"] = sorted({*state.get("pids", ()), os.getpid()})
            faults = state["faults"].get(verb) or []
            fault = faults.pop(0) if faults else ""
        fault = fault or self.world.faults.next(verb)
        name, _, value = fault.partition(":")
        if name == "down":
            raise ProviderUnavailable("Memory refused the connection.", kind="catalog")
        if name == "busy":
            raise ProviderBusy("Memory is busy.", kind="catalog")
        if name == "denied":
            raise ProviderUnavailable("Memory knows no such key.", kind="catalog", retryable=False)
        if name == "dropped":
            raise self._silence(verb)
        if fault == "late":
            self.world.faults.arrive_late(lambda: self._apply(act))
            raise self._silence(verb)
        if name == "late":
            Timer(float(value), self._apply_late, [act]).start()
            raise self._silence(verb)
        if name == "slow, dropped":
            with self.world.faults.delayed():
                return self._apply(act)
        if name == "slow" and value:
            time.sleep(float(value))
        answer = self._apply(act)
        if fault == "slow":
            with self.world.faults.delayed():
                return answer
        if name == "twice":
            answer = self._apply(act)
        if name == "lost":
            raise self._silence(verb)
        if name == "bug":
            raise KeyError("CreateTime")
        return answer

    def _apply_late(self, act: Callable[[dict[str, Any]], Any]) -> None:
        with suppress(MetalakeError):  # nobody hears it
            self._apply(act)

    def _apply(self, act: Callable[[dict[str, Any]], Any]) -> Any:
        with self.world.open() as state:
            return act(state)

    def _silence(self, verb: str) -> Exception:
        message = "Memory did not answer."
        is_read = verb.startswith(("list", "load"))
        return ProviderUnavailable(message, kind="catalog") if is_read else OutcomeUnknown(message, kind="catalog")

    def system_names(self) -> list[str]:
        return [f"memory://{self.properties['world']}"]

    def test_connection(self) -> None:
        self._call("test_connection", lambda state: None)

    def list_schemas(self, page: str | None = None) -> Page:
        return self._call("list_schemas", lambda state: self._page(state["schemas"], Kind.SCHEMA, page))

    def list_tables(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        def act(state: dict[str, Any]) -> Page:
            above = LEVELS.join(schema)
            _there(state["schemas"], schema, Kind.SCHEMA)
            inside = {k: v for k, v in state["tables"].items() if k.rpartition(LEVELS)[0] == above}
            found = self._page(inside, Kind.TABLE, page)
            names = [replace(one, name=one.name.rpartition(LEVELS)[2]) for one in found.items]
            return Page(names if whole else [Remote(one.name, {}) for one in names], found.next)

        return self._call("list_tables", act)

    def _page(self, kept: dict[str, Any], kind: str, page: str | None) -> Page:
        names = sorted(name for name in kept if page is None or name > page)
        chosen = names[: self.page_size]
        items = [_remote(name, kept[name], kind) for name in chosen]
        return Page(items, chosen[-1] if len(names) > len(chosen) else None)

    def load_schema(self, schema: Levels) -> Remote:
        return self._call(
            "load_schema",
            lambda state: _remote(LEVELS.join(schema), _there(state["schemas"], schema, Kind.SCHEMA), Kind.SCHEMA),
        )

    def create_schema(self, schema: Levels, definition: dict[str, Any]) -> Remote:
        def act(state: dict[str, Any]) -> Remote:
            if len(schema) > 1:
                _there(state["schemas"], schema[:-1], Kind.SCHEMA)
            return _made(state["schemas"], schema, definition, Kind.SCHEMA)

        return self._call("create_schema", act)

    def alter_schema(self, schema: Levels, definition: dict[str, Any], version: str) -> Remote:
        return self._call(
            "alter_schema", lambda state: _altered(state["schemas"], schema, definition, version, Kind.SCHEMA)
        )

    def drop_schema(self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False) -> None:
        def act(state: dict[str, Any]) -> None:
            kept = _there(state["schemas"], schema, Kind.SCHEMA)
            name = LEVELS.join(schema)
            inside = [k for k in (*state["schemas"], *state["tables"]) if k.startswith(f"{name}{LEVELS}")]
            if kept["identity"] != identity:
                raise NotFound(f"Schema {name} does not exist.", kind=Kind.SCHEMA)
            if inside and not cascade:
                raise NotEmpty(f"Schema {name} is not empty.", kind=Kind.SCHEMA)
            for gone in (name, *inside):
                state["schemas"].pop(gone, None)
                state["tables"].pop(gone, None)

        self._call("drop_schema", act)

    def load_table(self, schema: Levels, table: str) -> Remote:
        where = [*schema, table]
        return self._call(
            "load_table", lambda state: _remote(table, _there(state["tables"], where, Kind.TABLE), Kind.TABLE)
        )

    def create_table(self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False) -> Remote:
        def act(state: dict[str, Any]) -> Remote:
            _there(state["schemas"], schema, Kind.SCHEMA)
            return _made(state["tables"], [*schema, table], definition, Kind.TABLE)

        return self._call("create_table", act)

    def alter_table(
        self, schema: Levels, table: str, definition: dict[str, Any], version: str, by_owner: bool = False
    ) -> Remote:
        return self._call(
            "alter_table",
            lambda state: _altered(state["tables"], [*schema, table], definition, version, Kind.TABLE),
        )

    def rename_table(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        def act(state: dict[str, Any]) -> Remote:
            _there(state["schemas"], to_schema, Kind.SCHEMA)
            kept = _there(state["tables"], [*schema, table], Kind.TABLE)
            if kept["identity"] != identity:
                raise NotFound(f"Table {table} does not exist.", kind=Kind.TABLE)
            target = LEVELS.join([*to_schema, to_table])
            if target in state["tables"]:
                raise AlreadyExists(f"Table {to_table} already exists.", kind=Kind.TABLE)
            state["tables"][target] = state["tables"].pop(LEVELS.join([*schema, table]))
            return _remote(to_table, kept, Kind.TABLE)

        return self._call("rename_table", act)

    def drop_table(
        self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False
    ) -> None:
        def act(state: dict[str, Any]) -> None:
            kept = _there(state["tables"], [*schema, table], Kind.TABLE)
            if kept["identity"] != identity:
                raise NotFound(f"Table {table} does not exist.", kind=Kind.TABLE)
            del state["tables"][LEVELS.join([*schema, table])]

        self._call("drop_table", act)

    def new_schema(self, comment: str | None, properties: dict[str, str]) -> dict[str, Any]:
        return {"comment": comment, "properties": dict(properties)}

    def altered_schema(
        self, definition: dict[str, Any], comment: str | None, properties: dict[str, str]
    ) -> dict[str, Any]:
        return {**definition, "comment": comment, "properties": dict(properties)}

    def shown_schema(self, definition: dict[str, Any]) -> dict[str, Any]:
        return {"comment": definition["comment"], "properties": _without_marker(definition["properties"])}

    def new_table(self, schema: Remote, asked: CreateTableRequest) -> dict[str, Any]:
        if asked.partitioning:
            raise Unsupported("partitioning: Memory has no partitions.", kind="table")
        columns = [column.model_dump(by_alias=True, mode="json", exclude_none=True) for column in asked.columns]
        return {"comment": asked.comment, "columns": columns, "properties": dict(asked.properties)}

    def altered_table(self, definition: dict[str, Any], updates: Sequence[Body]) -> dict[str, Any]:
        changed = deepcopy(definition)
        for update in updates:
            match update:
                case KeepProperty():
                    pass
                case SetProperty():
                    changed["properties"][update.property] = update.value
                case RemoveProperty():
                    changed["properties"].pop(update.property, None)
                case UpdateComment():
                    changed["comment"] = update.new_comment
                case AddColumn():
                    name = update.field_name[0]
                    if any(column["name"] == name for column in changed["columns"]):
                        raise Invalid(f"Column {name} already exists.", kind="column")
                    changed["columns"].append(
                        {"name": name, "type": update.type, "nullable": True, "autoIncrement": False}
                    )
                case DeleteColumn():
                    changed["columns"] = [one for one in changed["columns"] if one["name"] != update.field_name[0]]
                case RenameColumn():
                    for one in changed["columns"]:
                        if one["name"] == update.old_field_name[0]:
                            one["name"] = update.new_field_name
                case _:
                    raise Unsupported("Memory cannot change that.", kind="table")
        return changed

    def shown_table(self, definition: dict[str, Any]) -> dict[str, Any]:
        return {
            "comment": definition["comment"],
            "columns": definition["columns"],
            "properties": _without_marker(definition["properties"]),
            "partitioning": [],
            "sortOrders": [],
            "distribution": {"strategy": "none", "number": 0, "funcArgs": []},
            "indexes": [],
        }

    def marked(self, definition: dict[str, Any], marker: str) -> dict[str, Any]:
        return {**definition, "properties": {**definition["properties"], MARKER: marker}}

    def marker_of(self, definition: dict[str, Any]) -> str:
        return str(definition["properties"].get(MARKER, ""))


class FlatMemoryProvider(MemoryProvider):
    """The same where schemas hold no schemas, names know lower case only, and a table is renamed by copying it."""

    label = "Flat memory"
    longest_name = 128

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            kind: replace(offer, nested=False, folds_case=True) for kind, offer in super().offers(properties).items()
        }

    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> list[tuple[str, dict[str, Any]]]:
        copied = {"schema": to_schema, "table": to_table, "definition": self.marked(table.definition, marker)}
        dropped = {"schema": schema, "table": table.name, "identity": table.identity}
        return [("create_table", copied), ("drop_table", dropped)]


def _without_marker(properties: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key != MARKER}


def _remote(name: str, kept: dict[str, Any], kind: str) -> Remote:
    return Remote(name, kept["definition"], kept["identity"], digest(kept["definition"]), kind)


def _there(kept: dict[str, Any], levels: Sequence[str], kind: str) -> dict[str, Any]:
    try:
        return kept[LEVELS.join(levels)]
    except KeyError:
        raise NotFound(f"{kind.capitalize()} {'.'.join(levels)} does not exist.", kind=kind) from None


def _made(kept: dict[str, Any], levels: Sequence[str], definition: dict[str, Any], kind: str) -> Remote:
    name = LEVELS.join(levels)
    if name in kept:
        raise AlreadyExists(f"{kind.capitalize()} {'.'.join(levels)} already exists.", kind=kind)
    kept[name] = fresh(definition)
    return _remote(name if kind == Kind.SCHEMA else levels[-1], kept[name], kind)


def _altered(
    kept: dict[str, Any], levels: Sequence[str], definition: dict[str, Any], version: str, kind: str
) -> Remote:
    there = _there(kept, levels, kind)
    if digest(there["definition"]) != version:
        raise Conflict(f"{kind.capitalize()} {'.'.join(levels)} was changed meanwhile.", kind=kind)
    there["definition"] = definition
    return _remote(LEVELS.join(levels) if kind == Kind.SCHEMA else levels[-1], there, kind)
