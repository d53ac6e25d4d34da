"""lakehouse-iceberg: Iceberg tables whose catalog is our database; metadata files lie in the catalog's warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from uuid import uuid4

from django.conf import settings
from pydantic import Field

from catalogs.iceberg import files, locations
from catalogs.providers.base import Capabilities, Offers, Provider, Settings, Storage
from catalogs.providers.metadata_files import MetadataFiles
from catalogs.providers.reaching.storage import check_storage, parse_storage, reach_storage
from metalake.errors import Invalid, MetalakeError, ProviderUnavailable

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

# Of the server, in its home
OWN_DATA = ("secret_key", "secrets.keys", "static", "metalake.sqlite3", "metalake.sqlite3-wal", "metalake.sqlite3-shm")


class IcebergSettings(Settings):
    warehouse: str | None = Field(
        None, alias="warehouse", description="Where new tables go; a folder of this server's home where left out."
    )
    allowed_locations: str = Field(
        "", alias="allowed-locations", description="More places where tables may lie, divided by commas."
    )
    nested_namespaces: Literal["true", "false"] = Field(
        "true", alias="nested-namespaces", description="Whether schemas may lie inside schemas."
    )


class IcebergProvider(Provider):
    label = "Apache Iceberg"
    settings = IcebergSettings
    capabilities = Capabilities(
        schemas=Offers(storage=Storage.MANAGED, nested=True),
        tables=Offers(storage=Storage.MANAGED),
        table_formats=frozenset({"iceberg"}),
    )
    immutable: ClassVar[Mapping[str, str]] = {"warehouse": "tables are in it already"}

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        parse_storage(properties)
        return super().check(properties)

    @classmethod
    def completed(cls, catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
        home = f"file://{settings.METALAKE_HOME}/warehouse/{catalog_id}"
        return {"warehouse": home, "nested-namespaces": "true"} | dict(properties)

    @property
    def warehouse(self) -> str:
        return self.properties["warehouse"]

    @cached_property
    def allowed(self) -> list[str]:
        more = self.properties.get("allowed-locations", "").split(",")
        return [self.warehouse, *(location.strip() for location in more if location.strip())]

    @property
    def file_roots(self) -> list[str]:
        return [str(settings.METALAKE_HOME), *settings.METALAKE_FILE_LOCATIONS]

    @cached_property
    def io(self) -> FileIO:
        reach_storage(self.properties)
        return files.file_io(self.properties)

    @cached_property
    def files(self) -> MetadataFiles:
        return MetadataFiles(self.catalog_id, lambda: self.io, self.allowed, self.file_roots, self.warehouse)

    def locations(self) -> list[str]:
        return [locations.canonical(location) for location in self.allowed]

    def check_locations(self) -> None:
        """Raises Invalid for a place that is malformed, outside what this server allows, or holds our own data.

        Also for a storage's host that is unknown or that the server does not connect to.
        """
        check_storage(self.properties)
        home = locations.real_path(f"file://{settings.METALAKE_HOME}")
        keys = locations.real_path(f"file://{settings.METALAKE_SECRET_KEYS_FILE}")
        own = [f"{home}/{name}" for name in OWN_DATA]
        for location in self.allowed:
            locations.check_allowed(location, self.allowed, file_roots=self.file_roots)
            real = locations.real_path(location)
            inside_own = any(locations.is_under(real, place) for place in own)
            if inside_own or any(locations.is_under(place, real) for place in (home, keys)):
                raise Invalid(f"{location} holds the server's own data; choose another folder.", kind="catalog")

    def test_connection(self) -> None:
        """Write and delete a small file in the warehouse."""
        self.check_locations()
        probe = f"{self.warehouse.removesuffix('/')}/.metalake-probe-{uuid4()}"
        try:
            with self.io.new_output(probe).create() as stream:
                stream.write(b"probe")
            files.delete_file(self.io, probe)
        except MetalakeError:
            raise
        except Exception as failure:
            raise ProviderUnavailable(
                f"The warehouse {self.warehouse} cannot be written ({type(failure).__name__}).", kind="catalog"
            ) from failure
