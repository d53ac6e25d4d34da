"""What the definitions of Glue's databases, tables and partitions mean to the native wire; no call is made."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from catalogs.hierarchy import HierarchicalSchema
from catalogs.hive.alterations import altered
from catalogs.hive.creation import to_hive
from catalogs.hive.names import GLUE, ICEBERG_IN_GLUE, folded_name
from catalogs.hive.partitions import IdentityPartition, escape, kept_values, native_partition, partition_name
from catalogs.hive.tables import EXTERNAL_TABLE, HiveTable, formats_of, passes
from catalogs.hive.translate import from_hive
from catalogs.iceberg import guard, locations
from catalogs.providers import glue_iceberg as iceberg
from catalogs.providers.base import Capabilities, Offers, Storage
from catalogs.providers.external import MARKER, ExternalProvider, Levels, Remote
from catalogs.providers.glue_settings import GlueSettings
from catalogs.providers.metadata_files import MetadataFiles
from catalogs.table_wire import CreateTableRequest, RemoveProperty, SetProperty
from metalake.errors import Invalid, Unsupported
from metalake.privileges import Kind

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

FORMAT_WORDS = ("table_type", "table-format")  # properties by which a creation names its format
PLACED_BY_ICEBERG = "the location of an Iceberg table is in its metadata; engines move it"


class GlueMeaning(ExternalProvider):
    """A schema's definition is of glue_mapping's making, a table's is a HiveTable's JSON.

    A partition's is `name`, `values`, `location` and `parameters`.
    """

    label = "AWS Glue"
    settings = GlueSettings
    capabilities = Capabilities(
        schemas=Offers(storage=Storage.EXTERNAL, folds_case=True),
        tables=Offers(storage=Storage.EXTERNAL, folds_case=True),
        table_formats=frozenset({"iceberg", "hive"}),
    )
    immutable: ClassVar[Mapping[str, str]] = {
        "aws-region": "another region has other databases",
        "aws-glue-catalog-id": "another Glue catalog has other databases",
    }
    longest_name = GLUE.longest

    @cached_property
    def given(self) -> GlueSettings:
        return GlueSettings.model_validate(self.properties)

    def levels_of(self, path: HierarchicalSchema) -> Levels:
        levels = super().levels_of(path)
        return [folded_name(levels[0], GLUE, Kind.SCHEMA)]

    # Schemas.

    def new_schema(self, comment: str | None, properties: dict[str, str]) -> dict[str, Any]:
        return self.altered_schema({"location": None, "parameters": {}, "rest": {}}, comment, properties)

    def altered_schema(
        self, definition: dict[str, Any], comment: str | None, properties: dict[str, str]
    ) -> dict[str, Any]:
        parameters = _checked(properties)
        location = definition["location"]
        if "location" not in definition["parameters"]:
            location = parameters.pop("location", None)
        if location is not None and location != definition["location"]:
            self._check_place(location, self.given.allowed)
        return {**definition, "comment": comment, "location": location, "parameters": parameters}

    def shown_schema(self, definition: dict[str, Any]) -> dict[str, Any]:
        place = {"location": definition["location"]} if definition["location"] else {}
        return {"comment": definition["comment"], "properties": place | _without_marker(definition["parameters"])}

    # Tables.

    def new_table(self, schema: Remote, asked: CreateTableRequest) -> dict[str, Any]:
        _checked(asked.properties)
        format = self._format(asked.properties)
        rule = ICEBERG_IN_GLUE if format == "iceberg" else GLUE
        name = folded_name(asked.name, rule, Kind.TABLE)
        wanted = {key: value for key, value in asked.properties.items() if key not in FORMAT_WORDS}
        plain = asked.model_copy(update={"name": name, "properties": wanted})
        if format == "iceberg":
            folded_name(schema.name, rule, Kind.SCHEMA)
            return self._new_iceberg_table(schema, plain).as_json()
        if iceberg.POINTER in wanted:
            raise Invalid(f"properties.{iceberg.POINTER}: only an Iceberg table has one", kind=Kind.TABLE)
        wanted = (
            {"table-type": EXTERNAL_TABLE}
            | wanted
            | {"location": self._place(schema, name, plain.properties.get("location"))}
        )
        return to_hive(plain.model_copy(update={"properties": wanted})).as_json()

    def _format(self, properties: Mapping[str, str]) -> str:
        named = {properties[word].strip().lower() for word in FORMAT_WORDS if word in properties}
        if len(named) > 1:
            raise Invalid(f"properties: {' and '.join(FORMAT_WORDS)} contradict each other", kind=Kind.TABLE)
        format = named.pop() if named else self.given.default_table_format
        if format not in self.capabilities.table_formats:
            raise Unsupported(
                f"properties.table_type: tables of format {format!r:.40} are created by their engines; "
                "here iceberg or hive",
                kind=Kind.TABLE,
            )
        return format

    def _new_iceberg_table(self, schema: Remote, asked: CreateTableRequest) -> HiveTable:
        own = schema.definition["location"]
        places = [own] if own else []
        if iceberg.POINTER in asked.properties:
            table = iceberg.registered_table(asked.name, asked, self.metadata_files(*places))
        else:
            places = [self._place(schema, asked.name, asked.properties.get("location"))]
            table = iceberg.planned_table(asked.name, asked, places[0], self.metadata_files(*places))
        table.rest[iceberg.PLANNED] |= {"schema": schema.name, "places": places}
        return table

    def iceberg_place(self, schema: Remote, name: str, asked: str | None) -> str:
        folded_name(schema.name, ICEBERG_IN_GLUE, Kind.SCHEMA)
        return self._place(schema, folded_name(name, ICEBERG_IN_GLUE, Kind.TABLE), asked)

    def iceberg_table(
        self, schema: Remote, name: str, metadata: dict[str, Any], location: str | None = None
    ) -> dict[str, Any]:
        if location is None:
            places = [metadata["location"]]
            table = iceberg.planned_entry(name, None, metadata, self.metadata_files(*places))
        else:
            own = schema.definition["location"]
            places = [own] if own else []
            asked = CreateTableRequest(name=name, columns=[], properties={iceberg.POINTER: location})
            table = iceberg.registered_table(name, asked, self.metadata_files(*places))
        table.rest[iceberg.PLANNED] |= {"schema": schema.name, "places": places}
        return table.as_json()

    def metadata_files(self, *places: str) -> MetadataFiles:
        return MetadataFiles(self.catalog_id, lambda: self.io, self.given.allowed, (), places=places)

    @property
    @abstractmethod
    def io(self) -> FileIO:
        """Where metadata files are."""

    def _allowed(self, schema: Remote) -> list[str]:
        own = schema.definition["location"]
        return [*self.given.allowed, *([own] if own else [])]

    def _place(self, schema: Remote, name: str, asked: str | None) -> str:
        """Where a new table goes: where it asks to, else below its schema's place, else below the warehouse."""
        if asked:
            return self._check_place(asked, self._allowed(schema))
        if below := schema.definition["location"]:
            return self._check_place(f"{below.removesuffix('/')}/{escape(name)}", [below])
        if warehouse := self.given.warehouse:
            place = f"{warehouse.removesuffix('/')}/{schema.name}/{escape(name)}"
            return self._check_place(place, [warehouse])
        raise Invalid(
            f"properties.location: say where table {name} goes; neither its schema has a location nor the "
            "catalog a warehouse",
            kind=Kind.TABLE,
        )

    def _check_place(self, location: str, allowed: Sequence[str]) -> str:
        return locations.check_allowed(location, allowed, file_roots=())

    def altered_table(self, definition: dict[str, Any], updates: Sequence[Any]) -> dict[str, Any]:
        table = HiveTable.from_json(definition)
        touched = {update.property: "" for update in updates if isinstance(update, RemoveProperty)}
        touched |= {update.property: update.value for update in updates if isinstance(update, SetProperty)}
        _checked(touched)
        if "iceberg" in formats_of(table) and "location" in touched:
            raise Unsupported(f"updates: {PLACED_BY_ICEBERG}", kind=Kind.TABLE)
        changed = altered(table, updates)
        if changed.location and changed.location != table.location:
            self._check_place(changed.location, [*self.given.allowed, *([table.location] if table.location else [])])
        return changed.as_json()

    def shown_table(self, definition: dict[str, Any]) -> dict[str, Any]:
        table = HiveTable.from_json(definition)
        shown = from_hive(replace(table, parameters=_without_marker(table.parameters)))
        if "iceberg" in formats_of(table):
            shown["columns"] = iceberg.shown_columns(table, shown["columns"])
        return shown

    @property
    def hides_some(self) -> bool:
        return "all" not in self._shown_formats

    def shows(self, table: Remote) -> bool:
        return "all" in self._shown_formats or passes(self._shown_formats, HiveTable.from_json(table.definition))

    @cached_property
    def _shown_formats(self) -> frozenset[str]:
        return self.given.shown_formats

    def metadata_location(self, definition: dict[str, Any]) -> str | None:
        parameters = definition["parameters"]
        is_iceberg = parameters.get("table_type", "").upper() == "ICEBERG"
        return parameters.get(iceberg.POINTER) if is_iceberg else None

    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """A second entry for the same metadata file, then the first one goes, unless it was changed meanwhile."""
        if self.metadata_location(table.definition) is None:
            raise Unsupported(
                "AWS Glue cannot rename a table, and only an Iceberg table can be entered under another name without "
                "losing what belongs to it.",
                kind=Kind.TABLE,
            )
        folded_name(to_table, ICEBERG_IN_GLUE, Kind.TABLE)
        renamed = self.marked({**table.definition, "name": to_table}, marker)
        old = {"identity": table.identity, "version": table.version}
        return [
            ("create_table", {"schema": to_schema, "table": to_table, "definition": renamed}),
            ("drop_table", {"schema": schema, "table": table.name, **old}),
        ]

    def marked(self, definition: dict[str, Any], marker: str) -> dict[str, Any]:
        return {**definition, "parameters": {**definition["parameters"], MARKER: marker}}

    def marker_of(self, definition: dict[str, Any]) -> str:
        return str(definition["parameters"].get(MARKER, ""))

    # Partitions.

    def new_partition(self, table: dict[str, Any], asked: IdentityPartition) -> dict[str, Any]:
        of = HiveTable.from_json(table)
        if "iceberg" in formats_of(of):
            raise Unsupported("The partitions of an Iceberg table are in its metadata.", kind="partition")
        parameters = _checked(asked.properties)
        values = kept_values(of.partition_keys, asked)
        name = partition_name(of.partition_keys, values)
        location = parameters.pop("location", None)
        if location is not None:
            self._check_place(location, [*self.given.allowed, *([of.location] if of.location else [])])
        elif of.location:
            location = f"{of.location.removesuffix('/')}/{name}"
        return {"name": name, "values": values, "location": location, "parameters": parameters}

    def shown_partition(self, table: dict[str, Any], definition: dict[str, Any]) -> dict[str, Any]:
        keys = HiveTable.from_json(table).partition_keys
        place = {"location": definition["location"]} if definition["location"] else {}
        return native_partition(keys, definition["values"], place | definition["parameters"])


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Raises Invalid where there are too many of them, and for the one that is ours."""
    guard.check_limits(properties)
    if MARKER in properties:
        raise Invalid(f"properties.{MARKER}: it is written by Metalake", kind="property")
    return dict(properties)


def _without_marker(parameters: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key != MARKER}
