"""The system in memory with views of its own: one whose views are written here, and one whose views are only read."""

from __future__ import annotations

from collections.abc import Mapping

from formats.native.view_definition import ViewDefinition
from metalake.errors import Unsupported
from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.remote_objects import Json, Levels, Page, Remote, ViewEntry
from providers.view_stores import ReadOnlyViews, RemoteViews
from tests.providers import world
from tests.providers.memory import MemoryProvider


class ViewsShown:
    """What both kinds of store read: views lie beside the tables, whose names they share."""

    provider: MemoryProvider

    def list(self, schema: Levels, page: str | None = None) -> Page:
        def act(state: Json) -> Page:
            above = world.LEVELS.join(schema)
            world.found(state["schemas"], schema, Kind.SCHEMA)
            inside = {name: one for name, one in state["tables"].items() if name.rpartition(world.LEVELS)[0] == above}
            return world.page_of({name: one for name, one in inside.items() if "kind" in one}, Kind.VIEW, page)

        return self.provider.ask("list_views", act)

    def read(self, definition: Json) -> ViewEntry:
        try:
            shown = definition | {"properties": world.unmarked(definition["properties"])}
            return ViewEntry("memory", "memory", ViewDefinition.from_json(shown))
        except KeyError as missing:
            raise Unsupported(f"It is a view without its {missing.args[0]}.", kind=Kind.VIEW) from None


class MemoryViews(ViewsShown, RemoteViews):
    def create(self, schema: Levels, view: str, definition: Json, marker: str = "") -> Remote:
        def act(state: Json) -> Remote:
            world.found(state["schemas"], schema, Kind.SCHEMA)
            made = world.fresh(world.marked(definition, marker), Kind.VIEW)
            return world.put(state["tables"], [*schema, view], made, Kind.VIEW)

        return self.provider.ask("create_view", act)

    def alter(self, schema: Levels, view: str, expected: Json, version: str, marker: str = "") -> Remote:
        def act(state: Json) -> Remote:
            there = world.unchanged(state["tables"], [*schema, view], version, Kind.VIEW)
            there["definition"] = world.marked(expected, marker)
            return world.remote_of(view, there, Kind.VIEW)

        return self.provider.ask("alter_view", act)

    def rename(self, schema: Levels, view: str, to_schema: Levels, to_view: str, identity: str) -> Remote:
        def act(state: Json) -> Remote:
            world.found(state["schemas"], to_schema, Kind.SCHEMA)
            there = world.identical(state["tables"], [*schema, view], identity, Kind.VIEW)
            made = world.put(state["tables"], [*to_schema, to_view], there, Kind.VIEW)
            del state["tables"][world.LEVELS.join([*schema, view])]
            return made

        return self.provider.ask("rename_view", act)

    def drop(self, schema: Levels, view: str, identity: str, version: str | None = None) -> None:
        def act(state: Json) -> None:
            there = world.identical(state["tables"], [*schema, view], identity, Kind.VIEW)
            if version is not None:
                world.unchanged(state["tables"], [*schema, view], version, Kind.VIEW)
            assert "kind" in there
            del state["tables"][world.LEVELS.join([*schema, view])]

        self.provider.ask("drop_view", act)

    def draft(self, schema: Remote, name: str, wanted: ViewDefinition, owner: str) -> Json:
        return wanted.as_json()

    def altered(self, definition: Json, wanted: ViewDefinition, owner: str) -> Json:
        return wanted.as_json()

    def is_marked(self, view: Remote, marker: str) -> bool:
        return bool(view.definition["properties"].get(world.MARKER) == marker)


class ReadOnlyMemoryViews(ViewsShown, ReadOnlyViews):
    pass


class ViewingProvider(MemoryProvider):
    label = "Memory with views"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {**super().offers(properties), Kind.VIEW: Offer(storage=Storage.EXTERNAL, remote=MemoryViews)}


class ReadOnlyViewsProvider(MemoryProvider):
    label = "Memory with views of others"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {**super().offers(properties), Kind.VIEW: Offer(storage=Storage.EXTERNAL, remote=ReadOnlyMemoryViews)}
