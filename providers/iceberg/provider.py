"""lakehouse-iceberg: managed Iceberg tables, with their metadata files in the catalog's warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field

from formats.iceberg import locations, storage
from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.metadata_files import MetadataFiles
from providers.places import Placed, PlacedSettings, own_warehouse
from providers.reaching.storage import parse_storage


class IcebergSettings(PlacedSettings):
    warehouse: str | None = Field(
        None, alias="warehouse", description="Where new tables go; a folder in this server's own where left out."
    )
    nested_namespaces: Literal["true", "false"] = Field(
        "true", alias="nested-namespaces", description="Whether schemas may lie inside schemas."
    )


class IcebergProvider(Placed):
    label = "Apache Iceberg"
    settings = IcebergSettings
    immutable: ClassVar[Mapping[str, str]] = {"warehouse": "tables are in it already"}

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
        """Check that the warehouse can be reached; nothing is written."""
        self.check_locations()
        storage.require_reachable(self.io, self.warehouse)
