"""Definitions of Hive-like tables, and how the native API shows and changes them; makes no calls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from formats.hive.alterations import altered
from formats.hive.creation import to_hive
from formats.hive.names import folded_name
from formats.hive.properties import SERDE_PARAMETER
from formats.hive.tables import HiveTable
from formats.hive.translate import from_hive
from formats.iceberg import forbidden_properties
from formats.iceberg.folders import Ground
from formats.native.changes import read_changes
from formats.native.tables import CreateTableRequest, RemoveProperty, SetProperty
from metalake.errors import Invalid, Unsupported
from metalake.kinds import Kind
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.parameters import MADE_HERE, POINTER, checked, marked, marker_of, without_marker
from providers.hive_like.pointers import HiveLikePointers
from providers.remote_objects import Json, NewTable, Remote
from providers.stores import RemoteTables

SCHEMA_URL = "avro.schema.url"  # a metastore fetches it
FORMAT_WORDS = ("table_type", "table-format")  # properties that select a new table's format


class HiveLikeTables(RemoteTables):
    provider: HiveLikeCatalog

    @property
    def pointed(self) -> HiveLikePointers:
        """The store of Iceberg tables."""
        store = self.provider.pointers
        assert isinstance(store, HiveLikePointers)
        return store

    @property
    def default_format(self) -> str:
        """The format of new tables that specify none."""
        return "hive"

    @abstractmethod
    def placed(self, schema: Remote, asked: CreateTableRequest) -> dict[str, str]:
        """A new Hive table's properties, with its location unless the system chooses it."""

    def require_fit(self, table: HiveTable) -> None:
        """Raise TooLarge or Invalid for values that the system cannot store and would not reject immediately."""

    def require_movable(self, table: HiveTable) -> None:
        """Raise Invalid if this table's location must not change."""

    # New tables

    def draft(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        checked(asked.properties)
        is_iceberg = self._format(asked.properties) == "iceberg"
        rule = self.provider.iceberg_rule if is_iceberg else self.provider.rule
        name = folded_name(asked.name, rule, Kind.TABLE)
        wanted = {key: value for key, value in asked.properties.items() if key not in FORMAT_WORDS}
        plain = asked.model_copy(update={"name": name, "properties": wanted})
        if is_iceberg:
            return self.pointed.new_table(schema, plain)
        if any(name.lower() == POINTER for name in wanted):
            raise Invalid(f"properties.{POINTER}: only an Iceberg table has one", kind=Kind.TABLE)
        properties = self.placed(schema, plain)
        table = to_hive(plain.model_copy(update={"properties": properties}))
        self._check_set(properties, schema.definition["location"])
        self.require_fit(table)
        self.pointed.require_shown(table)
        return NewTable(table.as_json())

    def _check_set(self, properties: Mapping[str, str], own: str | None) -> None:
        """Raise Invalid for properties that would make an engine or metastore load a class or fetch a foreign URL."""
        for key, value in properties.items():
            plain = key.removeprefix(SERDE_PARAMETER)
            if forbidden_properties.loads_class(plain):
                raise Invalid(
                    f"properties.{key}: names a class to load; only a server may choose classes", kind="table"
                )
            if plain.lower() == SCHEMA_URL and value != "none":
                self.provider.places.hive_place(value, own)

    def _format(self, properties: Mapping[str, str]) -> str:
        named = {properties[word].strip().lower() for word in FORMAT_WORDS if word in properties}
        if len(named) > 1:
            raise Invalid(f"properties: {' and '.join(FORMAT_WORDS)} contradict each other", kind=Kind.TABLE)
        format = named.pop() if named else self.default_format
        if format not in MADE_HERE:
            raise Unsupported(
                f"properties.table_type: tables of format {format!r:.40} are created by their engines; "
                "here iceberg or hive",
                kind=Kind.TABLE,
            )
        return format

    def discard(self, definition: Json, plan: Json | None = None) -> None:
        self.pointed.discard(definition, plan)

    # Existing tables

    def altered(self, definition: Json, updates: Sequence[Any]) -> Json:
        """The definition after updates. Raises Invalid, TooLarge; Unsupported for Iceberg tables (commits only)."""
        table = HiveTable.from_json(definition)
        if self.pointed.location(definition) is not None:
            raise Unsupported(
                "updates: this is an Iceberg table, which is changed by commits to its metadata", kind=Kind.TABLE
            )
        removed = {update.property: "" for update in updates if isinstance(update, RemoveProperty)}
        wanted = {update.property: update.value for update in updates if isinstance(update, SetProperty)}
        checked(removed | wanted)
        self._check_set(wanted, table.location)
        changed = altered(table, updates)
        self.require_fit(changed)
        if len(changed.parameters) > len(table.parameters):
            forbidden_properties.check_limits(dict.fromkeys(changed.parameters, ""))
        if changed.location and changed.location != table.location:
            self.provider.places.hive_place(changed.location, table.location)
            self.require_movable(table)
        return changed.as_json()

    def wanted(self, now: HiveTable, changes: Sequence[Json] | None, expected: Json | None, marker: str) -> HiveTable:
        """The table after the changes, or the expected one without any, with our marker."""
        definition = (expected or {}) if changes is None else self.altered(now.as_json(), read_changes(changes))
        return HiveTable.from_json(marked(definition, marker))

    def show(self, definition: Json) -> Json:
        table = HiveTable.from_json(definition)
        return from_hive(replace(table, parameters=without_marker(table.parameters)))

    def is_marked(self, table: Remote, marker: str) -> bool:
        return marker_of(table.definition) == marker

    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        named = self.pointed.named_places(definition, plan)
        spark = (definition.get("serde_parameters") or {}).get("path")  # where Spark looks for its own tables' files
        return [*named, spark] if spark else named

    def ground(self, schema: Remote) -> Ground:
        return self.provider.places.ground(schema)
