"""lakehouse-iceberg: Iceberg tables whose catalog is our database; metadata files lie in the catalog's warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from uuid import UUID, uuid4

from django.conf import settings
from pydantic import Field

from catalogs.hierarchy import HierarchicalSchema
from catalogs.iceberg import files, guard, locations
from catalogs.iceberg.purge import purge
from catalogs.providers.base import Capabilities, Offers, Provider, Settings, Storage
from catalogs.providers.reaching.storage import check_storage, parse_storage, reach_storage
from metalake.errors import Invalid, MetalakeError, NotFound, ProviderUnavailable

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

# Of the server, in its home
OWN_DATA = ("secret_key", "secrets.keys", "static", "metalake.sqlite3", "metalake.sqlite3-wal", "metalake.sqlite3-shm")
MAX_PLACE_BYTES = locations.MAX_LENGTH - 128  # leaves room for the names of its files
METADATA = files.MetadataCache(settings.METALAKE_METADATA_CACHE)


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

    def locations(self) -> list[str]:
        return [locations.canonical(location) for location in self.allowed]

    def check_locations(self) -> None:
        """Raises Invalid for a place that is malformed, outside what this server allows, or holds our own data.

        Also for a storage's host that is unknown or that the server does not connect to.
        """
        check_storage(self.properties)
        home = locations.real_path(f"file://{settings.METALAKE_HOME}")
        keys = locations.real_path(f"file://{settings.METALAKE_SECRET_KEYS_FILE}")
        own = [keys, *(f"{home}/{name}" for name in OWN_DATA)]
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

    # What the table services need of a store of metadata files.

    def place(self, path: HierarchicalSchema, name: str, uuid: UUID, asked: str | None) -> str:
        """Where a new table goes. Raises Invalid for a place the catalog does not allow."""
        if not asked:
            return locations.default_table_location(self.warehouse, path.segments, name, uuid)
        return locations.check_allowed(asked, self.allowed, file_roots=self.file_roots)

    def check_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Every property and every location of it, whatever a request changed. Raises Invalid."""
        guard.check_properties(metadata.get("properties") or {})
        locations.check_metadata_locations(metadata, self.allowed, self.file_roots)
        for claim in self.claims(metadata):
            if any(locations.is_under(place, claim) for place in self.allowed):
                raise Invalid(f"{claim} is the catalog's; a table takes a folder below it.", kind="location")
            if len(claim.encode()) > MAX_PLACE_BYTES:
                raise Invalid(f"A table's location may take {MAX_PLACE_BYTES} bytes.", kind="location")

    def claims(self, metadata: Mapping[str, Any]) -> list[str]:
        """The places that the table writes to, in the spelling to compare, none below another."""
        places = sorted({locations.canonical(place) for place in locations.effective_locations(metadata)})
        return [
            place
            for place in places
            if not any(place != other and locations.is_under(place, other) for other in places)
        ]

    def read(self, location: str) -> bytes:
        content = METADATA.get(location)
        if content is None:
            content = files.read_metadata(self.io, location)
            METADATA.put(location, content)
        return content

    def allowed_place(self, location: str) -> str:
        """A location in the spelling to compare. Raises Invalid for one the catalog does not allow."""
        return locations.canonical(locations.check_allowed(location, self.allowed, file_roots=self.file_roots))

    def read_foreign(self, location: str) -> bytes:
        """A metadata file that a caller names. Raises Invalid where the place or the content is not allowed."""
        self.allowed_place(location)
        try:
            content = files.read_metadata(self.io, location)
        except NotFound as missing:
            raise Invalid(missing.message, kind="metadata-file") from None
        METADATA.put(location, content)  # what is checked now, not what another file of that name held before
        return content

    def write(self, metadata: Mapping[str, Any], previous: str | None) -> tuple[str, bytes]:
        """The location and the content of a new metadata file."""
        location, content = files.write_metadata(self.io, metadata, version=files.next_version(previous))
        METADATA.put(location, content)
        return location, content

    def discard(self, *written: str) -> None:
        """Remove metadata files that nothing points to."""
        for location in written:
            METADATA.forget(location)
        files.delete_quietly(self.io, written)

    def purge(self, metadata_location: str) -> int:
        """Delete every file the table owns, its metadata last; running it again goes on where it stopped."""
        METADATA.forget(metadata_location)
        try:
            metadata = files.parse_metadata(files.read_metadata(self.io, metadata_location))
        except NotFound:
            return 0
        return purge(self.io, metadata, metadata_location, self.allowed, self.file_roots)
