"""What is a metastore's own in the meaning of definitions; no call is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from formats.hive.names import HIVE
from formats.hive.tables import EXTERNAL_TABLE, HiveTable
from formats.iceberg import locations
from formats.iceberg.folders import Ground
from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid, TooLarge, Unsupported, at
from metalake.kinds import Kind
from metalake.wire import quote
from providers.external import PARTITION, ExternalSettings, Remote
from providers.hive import iceberg as hive_iceberg
from providers.hive_like.meaning import MADE_HERE, HiveLike, formats_of_remote
from providers.places import PlacedSettings, require_no_metadata_host
from providers.reaching.metastores import parse_metastores

URIS = "metastore.uris"
LIST_ALL = "list-all-tables"
ROOT = "default"  # the database that every metastore begins with
TO_NAME = "put it among the catalog's allowed-locations, or leave the location out"
MANAGED_STAYS = "a metastore deletes the folder of a managed table with it, so such a table lies in its schema's folder"
TO_NAME_ONE = "leave the location out, or make an EXTERNAL_TABLE"
LONGEST_KEY, LONGEST_TEXT = 256, 4_000  # of a metastore's own database
BYPASS = "gravitino.bypass."
KERBEROS = ("kerberos.principal", "kerberos.keytab-uri")
SWITCHES = ("impersonation-enable", "hive.metastore.sasl.enabled", "hive.metastore.use.SSL")


class HiveSettings(PlacedSettings, ExternalSettings):
    uris: str = Field(
        alias=URIS,
        description="The metastore as thrift://host:port; several, divided by commas, are tried in their order.",
    )
    list_all_tables: Literal["true", "false"] = Field(
        "true",
        alias=LIST_ALL,
        description="Whether tables of other formats than Hive's own, such as Iceberg, are shown.",
    )


class HiveMeaning(HiveLike):
    label = "Hive Metastore"
    deletes_folders = True
    settings = HiveSettings
    longest_name = HIVE.longest
    names = iceberg_names = HIVE

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        """Raises Unsupported for a metastore that asks for Kerberos or TLS."""
        given = super().check(properties)
        with at(f"Property {URIS!r}"):
            parse_metastores(properties[URIS])
        for key, value in properties.items():
            name = key.removeprefix(BYPASS)
            if name in KERBEROS or (name in SWITCHES and value.strip().lower() == "true"):
                raise Unsupported(
                    f"Property {key!r}: metastores that ask for Kerberos or TLS are not offered.", kind=Kind.CATALOG
                )
        return given

    def hive_place(self, location: str, *own: str | None) -> str:
        """Where the catalog names no places, only what is `own` is taken: a metastore deletes a managed table's folder,
        whoever else's files are in it.
        """
        place = locations.normalise(location)
        require_no_metadata_host(place)
        if not (self.allowed or any(own)):
            raise Invalid(f"Location {location!r:.200}: the catalog names no such place; {TO_NAME}", kind="location")
        return self.allowed_place(place, *own)

    # Schemas

    def new_schema(self, comment: str | None, properties: dict[str, str]) -> dict[str, Any]:
        location, parameters = self.taken_apart({"parameters": {}}, properties)
        if location is not None:
            location = self.hive_place(location)
        return {"comment": comment, "location": location, "parameters": parameters, "owner": None, "owner_type": None}

    def altered_schema(
        self, definition: dict[str, Any], comment: str | None, properties: dict[str, str]
    ) -> dict[str, Any]:
        """A metastore of Hive 2 would pass over any change but that of parameters, without a word."""
        location, parameters = self.taken_apart(definition, properties)
        if comment != definition["comment"]:
            raise Unsupported("A metastore keeps the comment that a schema was made with.", kind=Kind.SCHEMA)
        if location is not None and not locations.are_one(location, definition["location"] or ""):
            raise Invalid("location: where a schema lies is decided at creation.", kind=Kind.SCHEMA)
        return {**definition, "parameters": parameters}

    def home_of(self, schema: Remote) -> str | None:
        """The database's own place, which it always has, where the catalog names it or has no warehouse."""
        own = schema.definition["location"]
        if own and (not self.warehouse or self.is_named(own)):
            return str(own)
        return f"{self.warehouse.removesuffix('/')}/{schema.name}.db" if self.warehouse else None

    def ground(self, schema: Remote) -> Ground:
        """The first database lies where the folders of the others do, none of which has a dash."""
        ground = super().ground(schema)
        return replace(ground, own=(), shared=ground.own) if schema.name == ROOT else ground

    # Tables

    def require_fit(self, table: HiveTable) -> None:
        for key in table.parameters:
            if len(key) > LONGEST_KEY:
                raise TooLarge(f"properties: the name {quote(key)} is over {LONGEST_KEY} characters", kind=Kind.TABLE)
        for column in (*table.columns, *table.partition_keys):
            if len(column.comment or "") > LONGEST_TEXT:
                what = f"columns: the comment of {quote(column.name)}"
                raise TooLarge(f"{what} is over {LONGEST_TEXT} characters", kind=Kind.TABLE)

    def placed(self, schema: Remote, asked: CreateTableRequest) -> dict[str, str]:
        """A table that names no place goes where the metastore puts it, which is below its database.

        One that names another is external, as Spark has it: with a managed one a metastore deletes its folder.
        """
        location, own = asked.properties.get("location"), schema.definition["location"]
        if location is None:
            return asked.properties
        place = self.hive_place(location, own)
        wanted = {"table-type": EXTERNAL_TABLE} | asked.properties | {"location": place}
        if wanted["table-type"].upper() == EXTERNAL_TABLE:
            return wanted
        if own and locations.are_one(place, f"{own.removesuffix('/')}/{asked.name}"):
            return wanted
        raise Invalid(f"properties.location: {MANAGED_STAYS}; {TO_NAME_ONE}", kind=Kind.TABLE)

    def require_movable(self, table: HiveTable) -> None:
        if not table.is_external:
            raise Invalid(f"updates: location: {MANAGED_STAYS}; {TO_NAME_ONE}", kind=Kind.TABLE)

    def require_partition_place(self, table: HiveTable, place: str) -> None:
        if table.is_external or (table.location and locations.is_inside(place, table.location)):
            return
        raise Invalid(
            f"properties.location: a partition of a managed table lies below {table.location}", kind=PARTITION
        )

    def described(self, entry: HiveTable, metadata: dict[str, Any]) -> HiveTable:
        return hive_iceberg.described(entry, metadata)

    @property
    def hides_some(self) -> bool:
        return self.properties.get(LIST_ALL) == "false"

    def shows(self, table: Remote) -> bool:
        return not self.hides_some or "hive" in formats_of_remote(table)

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        return frozenset({"hive"}) if properties.get(LIST_ALL) == "false" else MADE_HERE
