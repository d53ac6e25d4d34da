"""What the definitions of a metastore's databases, tables and partitions mean to the native wire; no call is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from catalogs.hierarchy import HierarchicalSchema
from catalogs.hive.alterations import altered
from catalogs.hive.creation import to_hive
from catalogs.hive.names import HIVE, folded_name
from catalogs.hive.partitions import IdentityPartition, kept_values, native_partition, partition_name
from catalogs.hive.tables import HiveTable, formats_of
from catalogs.hive.translate import from_hive
from catalogs.iceberg.guard import check_limits
from catalogs.providers.base import Capabilities, Offers, Storage
from catalogs.providers.external import MARKER, ExternalProvider, ExternalSettings, Levels, Remote
from catalogs.providers.reaching.metastores import parse_metastores
from catalogs.providers.reaching.storage import parse_storage
from catalogs.table_wire import CreateTableRequest, RemoveProperty, SetProperty
from metalake.errors import Invalid, Unsupported, at
from metalake.privileges import Kind

URIS = "metastore.uris"
BYPASS = "gravitino.bypass."
KERBEROS = ("kerberos.principal", "kerberos.keytab-uri")
SWITCHES = ("impersonation-enable", "hive.metastore.sasl.enabled", "hive.metastore.use.SSL")
METADATA = "metadata_location"


class HiveSettings(ExternalSettings):
    uris: str = Field(
        alias=URIS,
        description="The metastore as thrift://host:port; several, divided by commas, are tried in their order.",
    )
    warehouse: str | None = Field(
        None, alias="warehouse", description="Where Iceberg tables may lie, such as s3://lake/tables."
    )
    allowed_locations: str = Field(
        "", alias="allowed-locations", description="More places where they may lie, divided by commas."
    )
    list_all_tables: Literal["true", "false"] = Field(
        "true",
        alias="list-all-tables",
        description="Whether tables of other formats than Hive's own, such as Iceberg, are shown.",
    )


class HiveMeaning(ExternalProvider):
    """A schema's definition is of hive_objects' making, a table's is a HiveTable's JSON.

    A partition's is `name`, `values`, `location` and `parameters`.
    """

    label = "Hive Metastore"
    settings = HiveSettings
    capabilities = Capabilities(
        schemas=Offers(storage=Storage.EXTERNAL, folds_case=True),
        tables=Offers(storage=Storage.EXTERNAL, folds_case=True),
        table_formats=frozenset({"hive", "iceberg"}),
    )
    longest_name = HIVE.longest

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        """Raises Unsupported for a metastore that asks for Kerberos or TLS."""
        settings = super().check(properties)
        with at(f"Property {URIS!r}"):
            parse_metastores(properties[URIS])
        parse_storage(properties)
        for key, value in properties.items():
            name = key.removeprefix(BYPASS)
            if name in KERBEROS or (name in SWITCHES and value.strip().lower() == "true"):
                raise Unsupported(
                    f"Property {key!r}: metastores that ask for Kerberos or TLS are not offered.", kind=Kind.CATALOG
                )
        return settings

    def levels_of(self, path: HierarchicalSchema) -> Levels:
        levels = super().levels_of(path)
        return [folded_name(levels[0], HIVE, Kind.SCHEMA)]

    # Schemas

    def new_schema(self, comment: str | None, properties: dict[str, str]) -> dict[str, Any]:
        parameters = _checked(properties)
        location = parameters.pop("location", None)
        return {"comment": comment, "location": location, "parameters": parameters, "owner": None, "owner_type": None}

    def altered_schema(
        self, definition: dict[str, Any], comment: str | None, properties: dict[str, str]
    ) -> dict[str, Any]:
        """A metastore of Hive 2 would pass over any change but that of parameters, without a word."""
        parameters = _checked(properties)
        if comment != definition["comment"]:
            raise Unsupported("A metastore keeps the comment that a schema was made with.", kind=Kind.SCHEMA)
        if parameters.pop("location", definition["location"]) != definition["location"]:
            raise Invalid("location: where a schema lies is decided at creation.", kind=Kind.SCHEMA)
        return {**definition, "parameters": parameters}

    def shown_schema(self, definition: dict[str, Any]) -> dict[str, Any]:
        place = {"location": definition["location"]} if definition["location"] else {}
        return {"comment": definition["comment"], "properties": _without_marker(definition["parameters"]) | place}

    # Tables

    def new_table(self, schema: Remote, asked: CreateTableRequest) -> dict[str, Any]:
        _checked(asked.properties)
        name = folded_name(asked.name, HIVE, Kind.TABLE)
        return to_hive(asked.model_copy(update={"name": name})).as_json()

    def altered_table(self, definition: dict[str, Any], updates: Sequence[Any]) -> dict[str, Any]:
        """What is native to Hive; an Iceberg table is what its metadata says, so it is changed there."""
        table = HiveTable.from_json(definition)
        if self.metadata_location(definition) is not None:
            raise Unsupported(
                "updates: this is an Iceberg table, which is changed through the Iceberg wire or by its engines",
                kind=Kind.TABLE,
            )
        touched = [each.property for each in updates if isinstance(each, SetProperty | RemoveProperty)]
        _checked(dict.fromkeys(touched, ""))
        changed = altered(table, updates)
        check_limits(changed.parameters)
        return changed.as_json()

    def shown_table(self, definition: dict[str, Any]) -> dict[str, Any]:
        table = HiveTable.from_json(definition)
        return from_hive(replace(table, parameters=_without_marker(table.parameters)))

    @property
    def hides_some(self) -> bool:
        return self.properties.get("list-all-tables") == "false"

    def shows(self, table: Remote) -> bool:
        return not self.hides_some or "hive" in formats_of(HiveTable.from_json(table.definition))

    def metadata_location(self, definition: dict[str, Any]) -> str | None:
        parameters = definition["parameters"]
        return parameters.get(METADATA) if parameters.get("table_type", "").upper() == "ICEBERG" else None

    def marked(self, definition: dict[str, Any], marker: str) -> dict[str, Any]:
        return {**definition, "parameters": {**definition["parameters"], MARKER: marker}}

    def marker_of(self, definition: dict[str, Any]) -> str:
        return str(definition["parameters"].get(MARKER, ""))

    # Partitions

    def new_partition(self, table: dict[str, Any], asked: IdentityPartition) -> dict[str, Any]:
        keys = HiveTable.from_json(table).partition_keys
        values = kept_values(keys, asked)
        parameters = _checked(asked.properties)
        location = parameters.pop("location", None)
        return {"name": partition_name(keys, values), "values": values, "location": location, "parameters": parameters}

    def shown_partition(self, table: dict[str, Any], definition: dict[str, Any]) -> dict[str, Any]:
        keys = HiveTable.from_json(table).partition_keys
        place = {"location": definition["location"]} if definition["location"] else {}
        return native_partition(keys, definition["values"], definition["parameters"] | place)


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Raises Invalid where there are too many of them, and for the one that is ours."""
    check_limits(properties)
    if MARKER in properties:
        raise Invalid(f"properties.{MARKER}: it is written by Metalake", kind="property")
    return dict(properties)


def _without_marker(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if name != MARKER}
