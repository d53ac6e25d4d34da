"""What definitions of schemas, tables and partitions in Hive's terms mean to the native wire; no call is made."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from formats.hive.alterations import altered
from formats.hive.creation import to_hive
from formats.hive.names import NameRule, folded_name
from formats.hive.partitions import IdentityPartition, kept_values, native_partition, partition_name
from formats.hive.properties import SERDE_PARAMETER
from formats.hive.tables import HiveTable, formats_of
from formats.hive.translate import from_hive
from formats.iceberg import guard
from formats.native.tables import CreateTableRequest, RemoveProperty, SetProperty
from metalake.errors import Invalid, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.external import MARKER, METADATA_FILE, PARTITION, Levels, Remote
from providers.hive_like.iceberg_entries import POINTER, IcebergEntries

SCHEMA_URL = "avro.schema.url"  # which a metastore fetches itself
MADE_HERE = frozenset({"iceberg", "hive"})  # formats of tables that are made here
FORMAT_WORDS = ("table_type", "table-format")  # properties by which a creation names its format


def formats_in(table: HiveTable) -> str:
    """A table's formats as a Remote has them."""
    formats = formats_of(table)
    is_pointed = "iceberg" in formats and table.parameters.get(POINTER)
    return ",".join(sorted(formats | {METADATA_FILE} if is_pointed else formats))


def formats_of_remote(table: Remote) -> frozenset[str]:
    said = table.formats or formats_in(HiveTable.from_json(table.definition))
    return frozenset(said.split(","))


class HiveLike(IcebergEntries):
    """A schema's definition has `comment`, `location` and `parameters`, and what else its system says.

    A table's is a HiveTable's JSON; a partition's is `name`, `values`, `location` and `parameters`.
    """

    names: ClassVar[NameRule]

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            Kind.SCHEMA: Offer(storage=Storage.EXTERNAL, folds_case=True),
            Kind.TABLE: Offer(storage=Storage.EXTERNAL, folds_case=True, formats=cls.shown_formats(properties)),
        }

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        """The formats of tables that the properties let be seen, of those that are made here."""
        return MADE_HERE

    @property
    def default_format(self) -> str:
        """That of a new table that names none."""
        return "hive"

    def levels_of(self, path: HierarchicalSchema) -> Levels:
        levels = super().levels_of(path)
        return [folded_name(levels[0], self.names, Kind.SCHEMA)]

    def hive_place(self, location: str, *own: str | None) -> str:
        """A location that somebody names for what is Hive's: a schema, a table of Hive's own formats, a partition."""
        return self.allowed_place(location, *own)

    def require_movable(self, table: HiveTable) -> None:
        """Raise Invalid where a table may not be said to lie elsewhere."""

    def require_partition_place(self, table: HiveTable, place: str) -> None:
        """Raise Invalid for a place where a partition of the table may not lie."""

    # Schemas

    def shown_schema(self, definition: dict[str, Any]) -> dict[str, Any]:
        place = {"location": definition["location"]} if definition["location"] else {}
        return {"comment": definition["comment"], "properties": place | _without_marker(definition["parameters"])}

    def taken_apart(
        self, definition: Mapping[str, Any], properties: dict[str, str]
    ) -> tuple[str | None, dict[str, str]]:
        """Where a schema is to lie, and its parameters; one called `location` hides the place of that name."""
        parameters = checked(properties)
        if "location" in definition["parameters"]:
            return definition["location"], parameters
        return parameters.pop("location", None), parameters

    # Tables

    def new_table(self, schema: Remote, asked: CreateTableRequest) -> dict[str, Any]:
        checked(asked.properties)
        is_iceberg = self._format(asked.properties) == "iceberg"
        name = folded_name(asked.name, self.iceberg_names if is_iceberg else self.names, Kind.TABLE)
        wanted = {key: value for key, value in asked.properties.items() if key not in FORMAT_WORDS}
        plain = asked.model_copy(update={"name": name, "properties": wanted})
        if is_iceberg:
            return self._to_show(self.new_iceberg_table(schema, plain).as_json())
        if POINTER in wanted:
            raise Invalid(f"properties.{POINTER}: only an Iceberg table has one", kind=Kind.TABLE)
        properties = self.placed(schema, plain)
        table = to_hive(plain.model_copy(update={"properties": properties}))
        self._check_set(properties, schema.definition["location"])
        self.require_fit(table)
        return self._to_show(table.as_json())

    def require_fit(self, table: HiveTable) -> None:
        """Raise TooLarge for what the system could not keep and would not say so at once."""

    def _check_set(self, properties: Mapping[str, str], own: str | None) -> None:
        """Raise Invalid for what engines and metastores would load or fetch where it says."""
        for key, value in properties.items():
            plain = key.removeprefix(SERDE_PARAMETER)
            if guard.loads_class(plain):
                raise Invalid(
                    f"properties.{key}: names a class to load; only a server may choose classes", kind="table"
                )
            if plain == SCHEMA_URL and value != "none":
                self.hive_place(value, own)

    def iceberg_table(
        self, schema: Remote, name: str, metadata: dict[str, Any], location: str | None = None
    ) -> dict[str, Any]:
        return self._to_show(super().iceberg_table(schema, name, metadata, location))

    def _to_show(self, definition: dict[str, Any]) -> dict[str, Any]:
        """Raise Unsupported for a new table that nobody would see."""
        if not self.shows(Remote(definition["name"], definition)):
            raise Unsupported("The catalog's properties hide tables of this format, so none is made.", kind=Kind.TABLE)
        return definition

    @abstractmethod
    def placed(self, schema: Remote, asked: CreateTableRequest) -> dict[str, str]:
        """The properties of a new Hive table, which say where it goes unless that is the system's to decide."""

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

    def altered_table(self, definition: dict[str, Any], updates: Sequence[Any]) -> dict[str, Any]:
        """An Iceberg table is what its metadata says, so it is changed there."""
        table = HiveTable.from_json(definition)
        if self.metadata_location(definition) is not None:
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
            guard.check_limits(dict.fromkeys(changed.parameters, ""))
        if changed.location and changed.location != table.location:
            self.hive_place(changed.location, table.location)
            self.require_movable(table)
        return changed.as_json()

    def shown_table(self, definition: dict[str, Any]) -> dict[str, Any]:
        table = HiveTable.from_json(definition)
        return from_hive(replace(table, parameters=_without_marker(table.parameters)))

    def marked(self, definition: dict[str, Any], marker: str) -> dict[str, Any]:
        return {**definition, "parameters": {**definition["parameters"], MARKER: marker}}

    def marker_of(self, definition: dict[str, Any]) -> str:
        return str(definition["parameters"].get(MARKER, ""))

    # Partitions

    def new_partition(self, table: dict[str, Any], asked: IdentityPartition) -> dict[str, Any]:
        of = HiveTable.from_json(table)
        if "iceberg" in formats_of(of):
            raise Unsupported("The partitions of an Iceberg table are in its metadata.", kind=PARTITION)
        parameters = checked(asked.properties)
        values = kept_values(of.partition_keys, asked)
        location = parameters.pop("location", None)
        if location is not None:
            self.require_partition_place(of, self.hive_place(location, of.location))
        name = partition_name(of.partition_keys, values)
        return {"name": name, "values": values, "location": location, "parameters": parameters}

    def shown_partition(self, table: dict[str, Any], definition: dict[str, Any]) -> dict[str, Any]:
        keys = HiveTable.from_json(table).partition_keys
        place = {"location": definition["location"]} if definition["location"] else {}
        return native_partition(keys, definition["values"], place | definition["parameters"])


def checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Raises Invalid where there are too many of them, and for the one that is ours."""
    guard.check_limits(properties)
    if MARKER in properties:
        raise Invalid(f"properties.{MARKER}: it is written by Metalake", kind="property")
    return dict(properties)


def _without_marker(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key != MARKER}
