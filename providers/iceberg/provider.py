"""lakehouse-iceberg: managed Iceberg tables with metadata files in the catalog's warehouse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field

from formats.iceberg import locations, storage
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.wire import quote
from providers.base import Offer, Storage
from providers.metadata_files import MetadataFiles
from providers.network.storage import parse_storage
from providers.places import Placed, PlacedSettings, own_warehouse
from providers.settings import NESTED

# Properties with which other servers and engines select the backing catalog.
_OF = r"(?:gravitino[.]bypass[.])?(?:iceberg[.])?"
BACKEND = re.compile(rf"{_OF}catalog[-_.]?(?:backend|impl)", re.IGNORECASE)
TYPE = re.compile(rf"{_OF}(?:catalog[-_.]?)?type", re.IGNORECASE)  # may have values other than Iceberg's
TYPES = frozenset({"hive", "hive_metastore", "glue", "rest", "jdbc", "hadoop", "nessie", "dynamodb", "snowflake"})
INSTEAD = {
    "hive": "Iceberg tables in a Hive Metastore are in catalogs of the provider 'hive'.",
    "glue": "Iceberg tables in AWS Glue are in catalogs of the provider 'glue'.",
}


class IcebergSettings(PlacedSettings):
    groups = {"Locations": ["warehouse"], "Schemas": [NESTED]}
    warehouse: str | None = Field(
        None, alias="warehouse", description="Where new tables go; a folder in this server's own where left out."
    )
    nested_namespaces: Literal["true", "false"] = Field(
        "true", alias=NESTED, description="Whether schemas may lie inside schemas."
    )


class IcebergProvider(Placed):
    label = "Apache Iceberg"
    settings = IcebergSettings
    immutable: ClassVar[Mapping[str, str]] = {"warehouse": "tables are in it already"}

    @classmethod
    def check_given(cls, properties: Mapping[str, str]) -> None:
        for key, value in properties.items():
            backend = value.strip().lower()
            names_one = BACKEND.fullmatch(key.strip()) and backend != "metalake"
            if names_one or (TYPE.fullmatch(key.strip()) and backend in TYPES):
                elsewhere = INSTEAD.get(backend, "The providers 'hive' and 'glue' have tables elsewhere, no other yet.")
                raise Invalid(
                    f"Property {key!r} is {quote(value)}: the tables of lakehouse-iceberg are in this server's own "
                    f"catalog, so leave it out or say 'metalake'. {elsewhere}",
                    kind=Kind.CATALOG,
                )

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            Kind.SCHEMA: Offer(storage=Storage.MANAGED, nested=True),
            Kind.TABLE: Offer(storage=Storage.MANAGED, formats=frozenset({"iceberg"})),
            Kind.VIEW: Offer(storage=Storage.MANAGED, formats=frozenset({"iceberg"})),
        }

    @classmethod
    def completed(cls, catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
        return {"warehouse": f"{own_warehouse()}/{catalog_id}", "nested-namespaces": "true"} | dict(properties)

    @cached_property
    def files(self) -> MetadataFiles:
        roots, twins = self.file_roots, self.case_twins
        return MetadataFiles(self.catalog_id, lambda: self.io, self.allowed, roots, self.warehouse, case_twins=twins)

    @property
    def reaches_out(self) -> bool:
        return bool(parse_storage(self.properties)) or not all(map(locations.is_local, self.allowed))

    def test_connection(self) -> None:
        """Check that the warehouse is reachable; writes nothing."""
        self.check_locations()
        storage.require_reachable(self.io, self.warehouse)
