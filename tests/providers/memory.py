"""An outside system of our own: schemas inside schemas, columns told by numbers, and faults on demand (its world)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field

from formats.native.changes import changed_schema, read_changes
from formats.native.tables import CreateTableRequest
from metalake.errors import NotEmpty, Unsupported
from metalake.kinds import Kind
from providers.absent import NoPartitions, NoPointers
from providers.base import Offer, Provider, Storage
from providers.remote_objects import Json, Levels, NewTable, Page, Remote
from providers.settings import ExternalSettings
from providers.stores import RemoteSchemas, RemoteTables
from tests.providers import world
from tests.providers.columns import altered, renumbered


class MemorySettings(ExternalSettings):
    world: str = Field(alias="world", description="The file that the world is in.")


class MemoryProvider(Provider):
    label = "Memory"
    settings = MemorySettings

    @property
    def world(self) -> world.World:
        return world.World(self.properties["world"])

    def system_names(self) -> list[str]:
        return [f"memory://{self.properties['world']}"]

    def ask(self, verb: str, act: Callable[[Json], Any]) -> Any:
        return self.world.call(verb, act)

    def test_connection(self) -> None:
        self.ask("test_connection", lambda state: None)

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            Kind.SCHEMA: Offer(storage=Storage.EXTERNAL, nested=True, remote=MemorySchemas),
            Kind.TABLE: Offer(storage=Storage.EXTERNAL, formats=frozenset({"memory"}), remote=MemoryTables),
        }

    @classmethod
    def completed(cls, catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
        return {"nested-namespaces": "true"} | dict(properties)


class MemorySchemas(RemoteSchemas):
    provider: MemoryProvider

    def delivered(self, entry: Json) -> Remote:
        return world.delivered(entry, Kind.SCHEMA)

    def list(self, page: str | None = None) -> Page:
        return self.provider.ask("list_schemas", lambda state: world.page_of(state["schemas"], Kind.SCHEMA, page))

    def load(self, schema: Levels) -> Remote:
        def act(state: Json) -> Remote:
            there = world.found(state["schemas"], schema, Kind.SCHEMA)
            return world.remote_of(world.LEVELS.join(schema), there, Kind.SCHEMA)

        return self.provider.ask("load_schema", act)

    def create(self, schema: Levels, definition: Json, marker: str = "") -> Remote:
        def act(state: Json) -> Remote:
            if len(schema) > 1:
                world.found(state["schemas"], schema[:-1], Kind.SCHEMA)
            return world.put(state["schemas"], schema, world.fresh(world.marked(definition, marker)), Kind.SCHEMA)

        return self.provider.ask("create_schema", act)

    def alter(
        self, schema: Levels, changes: Any, version: str, expected: Json | None = None, marker: str = ""
    ) -> Remote:
        def act(state: Json) -> Remote:
            there = world.unchanged(state["schemas"], schema, version, Kind.SCHEMA)
            wanted = (expected or {}) if changes is None else self.altered(there["definition"], changes)
            there["definition"] = world.marked(wanted, marker)
            return world.remote_of(world.LEVELS.join(schema), there, Kind.SCHEMA)

        return self.provider.ask("alter_schema", act)

    def drop(self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False) -> None:
        def act(state: Json) -> None:
            name = world.LEVELS.join(schema)
            world.identical(state["schemas"], schema, identity, Kind.SCHEMA)
            everything = (*state["schemas"], *state["tables"])
            inside = [each for each in everything if each.startswith(f"{name}{world.LEVELS}")]
            if inside and not cascade:
                raise NotEmpty(f"Schema {name} is not empty.", kind=Kind.SCHEMA)
            for gone in (name, *inside):
                state["schemas"].pop(gone, None)
                state["tables"].pop(gone, None)

        self.provider.ask("drop_schema", act)

    def draft(self, comment: str | None, properties: dict[str, str]) -> Json:
        return {"comment": comment, "properties": dict(properties)}

    def altered(self, definition: Json, changes: Sequence[Json]) -> Json:
        comment, properties = definition["comment"], self.show(definition)["properties"]
        comment, properties = changed_schema(comment, properties, changes)
        return {**definition, "comment": comment, "properties": properties}

    def show(self, definition: Json) -> Json:
        return {"comment": definition["comment"], "properties": world.unmarked(definition["properties"])}

    def is_marked(self, schema: Remote, marker: str) -> bool:
        return bool(schema.definition["properties"].get(world.MARKER) == marker)


class MemoryTables(RemoteTables):
    provider: MemoryProvider
    partitions, pointers = NoPartitions, NoPointers

    def delivered(self, entry: Json) -> Remote:
        return world.delivered(entry, Kind.TABLE)

    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        def act(state: Json) -> Page:
            above = world.LEVELS.join(schema)
            world.found(state["schemas"], schema, Kind.SCHEMA)
            inside = {name: one for name, one in state["tables"].items() if name.rpartition(world.LEVELS)[0] == above}
            listed = world.page_of(inside, Kind.TABLE, page)
            return listed if whole else Page([Remote(one.name, {}, kind=one.kind) for one in listed.items], listed.next)

        return self.provider.ask("list_tables", act)

    def load(self, schema: Levels, table: str) -> Remote:
        def act(state: Json) -> Remote:
            return world.remote_of(table, world.found(state["tables"], [*schema, table], Kind.TABLE), Kind.TABLE)

        return self.provider.ask("load_table", act)

    def create(
        self, schema: Levels, table: str, definition: Json, plan: Any = None, marker: str = "", by_owner: bool = False
    ) -> Remote:
        def act(state: Json) -> Remote:
            world.found(state["schemas"], schema, Kind.SCHEMA)
            made = world.fresh(world.marked(definition, marker))
            return world.put(state["tables"], [*schema, table], made, Kind.TABLE)

        return self.provider.ask("create_table", act)

    def alter(
        self,
        schema: Levels,
        table: str,
        changes: Any,
        version: str,
        expected: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        def act(state: Json) -> Remote:
            there = world.unchanged(state["tables"], [*schema, table], version, Kind.TABLE)
            updates = read_changes(changes or ())
            wanted = (expected or {}) if changes is None else altered(there["definition"], updates)
            there["numbers"] = renumbered(there, wanted, updates)
            there["definition"] = world.marked(wanted, marker)
            return world.remote_of(table, there, Kind.TABLE)

        return self.provider.ask("alter_table", act)

    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        def act(state: Json) -> Remote:
            world.found(state["schemas"], to_schema, Kind.SCHEMA)
            there = world.identical(state["tables"], [*schema, table], identity, Kind.TABLE)
            made = world.put(state["tables"], [*to_schema, to_table], there, Kind.TABLE)
            del state["tables"][world.LEVELS.join([*schema, table])]
            return made

        return self.provider.ask("rename_table", act)

    def drop(self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False) -> None:
        def act(state: Json) -> None:
            world.identical(state["tables"], [*schema, table], identity, Kind.TABLE)
            del state["tables"][world.LEVELS.join([*schema, table])]

        self.provider.ask("drop_table", act)

    def draft(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        if parts := asked.layout():
            raise Unsupported(f"{parts[0]}: Memory cannot store that.", kind="table")
        columns = [column.model_dump(by_alias=True, mode="json", exclude_none=True) for column in asked.columns]
        return NewTable({"comment": asked.comment, "columns": columns, "properties": dict(asked.properties)})

    def altered(self, definition: Json, updates: Sequence[Any]) -> Json:
        return altered(definition, updates)

    def show(self, definition: Json) -> Json:
        return {**definition, "properties": world.unmarked(definition["properties"]), **world.LAYOUT}

    def is_marked(self, table: Remote, marker: str) -> bool:
        return bool(table.definition["properties"].get(world.MARKER) == marker)
