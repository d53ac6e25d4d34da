"""Catalogs whose properties configure the locations of their tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from pydantic import Field

from formats.iceberg import locations, storage
from formats.iceberg.column_names import CASE_TWINS
from formats.iceberg.folders import divided
from metalake.errors import Invalid, ProviderUnavailable, at
from providers.base import Provider
from providers.network.addresses import METADATA, METADATA_NAMES, kind_of, literal, parse_host
from providers.network.storage import (
    check_storage,
    client_of,
    open_storage,
    parse_storage,
    require_listening,
    storages_at,
)
from providers.settings import Settings

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


NOT_ASKED = ("file:", *(f"{scheme}:" for scheme in locations.CLUSTERS))  # governed by the operator's settings


class PlacedSettings(Settings):
    groups = {"Locations": ["warehouse", "allowed-locations"], "Tables": [CASE_TWINS]}
    warehouse: str | None = Field(
        None,
        alias="warehouse",
        description="Where tables go whose schema has no place of its own, such as s3://lake/tables.",
    )
    allowed_locations: str = Field(
        "", alias="allowed-locations", description="More places where tables may lie, divided by commas."
    )
    case_twins: Literal["true", "false"] = Field(
        "false",
        alias=CASE_TWINS,
        description="Whether columns may have names that differ by case alone, which Trino cannot read.",
    )


def named_places(properties: Mapping[str, str]) -> list[str]:
    """The warehouse, then the allowed locations, of a catalog's properties."""
    warehouse = (properties.get("warehouse") or "").strip()
    return [*([warehouse] if warehouse else []), *divided(properties.get("allowed-locations"))]


def own_warehouse() -> str:
    """The location below which each catalog without a `warehouse` property gets a folder."""
    return settings.METALAKE_WAREHOUSE or f"file://{settings.METALAKE_HOME}/warehouse"


def own_folders() -> list[str]:
    """The server's own local folders: its home, and its warehouse if that lies outside."""
    home = str(settings.METALAKE_HOME)
    local = own_warehouse().startswith("file:") and not locations.is_under(own_warehouse(), f"file://{home}")
    return [home, own_warehouse().removeprefix("file://")] if local else [home]


def require_no_home(location: str) -> None:
    """Raise Invalid for a location in the server's home folder, except below its `warehouse` folder."""
    real = locations.real_path(location)
    home = os.path.realpath(settings.METALAKE_HOME)
    if locations.is_under(real, home) and not locations.is_inside(real, f"{home}/warehouse"):
        raise Invalid(
            f"{location} is in this server's home folder, where places of catalogs lie below "
            f"file://{settings.METALAKE_HOME}/warehouse.",
            kind="catalog",
        )


def require_no_metadata_host(location: str) -> None:
    """Raise Invalid for a location on a cloud metadata host, which serves the machine's credentials."""
    scheme, _, rest = location.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2].partition(":")[0]
    if scheme.lower() not in locations.CLUSTERS | locations.AZURE or not host:
        return
    with at(f"Location {location!r:.200}"):
        host = parse_host(host)
        address = literal(host)
        if host in METADATA_NAMES or (address and kind_of(address) == METADATA):
            raise Invalid(f"{host} is a {METADATA} host", kind="location")


class Placed(Provider):
    """A catalog with a warehouse and allowed locations (PlacedSettings)."""

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        given = super().check(properties)
        parse_storage(properties)
        for place in named_places(properties):
            locations.normalise(place)
        return given

    @property
    def case_twins(self) -> bool:
        """Whether a table or view may have column names that differ only by case."""
        return self.properties.get(CASE_TWINS) == "true"

    @cached_property
    def allowed(self) -> list[str]:
        """The warehouse and the allowed locations."""
        return named_places(self.properties)

    def is_open_place(self, place: str) -> bool:
        """Whether a table may lie at a location from the outside system: anywhere but in this server's own folders."""
        if self.is_named(place):
            return True
        try:
            require_no_metadata_host(place)
            if locations.normalise(place).startswith("file:"):
                locations.check_allowed(place, [place], file_roots=self.outside_roots)
        except Invalid:
            return False
        own = [own_warehouse(), *(f"file://{os.path.realpath(folder)}" for folder in own_folders())]
        return not any(locations.is_under(locations.real_path(place), folder) for folder in own)

    def is_named(self, location: str) -> bool:
        """Whether a location lies in the warehouse or an allowed location; False for a malformed one."""
        try:
            return any(locations.is_under(location, place) for place in self.allowed)
        except Invalid:
            return False

    @property
    def outside_roots(self) -> Sequence[str]:
        """`file_roots` without the server's own folders, which contain other catalogs' tables."""
        own = own_folders()
        return [root for root in self.file_roots if root not in own]

    @property
    def warehouse(self) -> str:
        return self.properties.get("warehouse", "").strip()

    @property
    def file_roots(self) -> Sequence[str]:
        """The local folders below which a catalog's locations may lie; `check_locations` further checks new ones."""
        return [*own_folders(), *settings.METALAKE_FILE_LOCATIONS]

    @cached_property
    def io(self) -> FileIO:
        """FileIO of the metadata files' storage."""
        return open_storage(self.catalog_id, self.properties)

    def locations(self) -> list[str]:
        return [locations.canonical(location) for location in self.allowed]

    def check_locations(self) -> None:
        """Raise Invalid for a new location that is malformed, not allowed here, or contains the server's data.

        Also for a storage host that is unknown or that the server must not connect to.
        """
        check_storage(self.properties)
        for location in self.allowed:
            if locations.canonical(location) not in self.existing_places:
                locations.check_allowed(location, self.allowed, file_roots=self.file_roots)
                require_no_home(location)

    @property
    def _places_to_reach(self) -> list[str]:
        spelled = [place for place in self.locations() if not place.startswith(NOT_ASKED)]
        return [place for place in spelled if place not in self.reached_places]

    def load_clients(self) -> None:
        for place in self._places_to_reach:
            client_of(place.partition("://")[0])

    def reach_storages(self) -> list[str]:
        try:
            for place in self._places_to_reach:
                require_listening(self.properties)
                storage.require_reachable(self.io, place)
        except ProviderUnavailable as failure:
            failure.message += " A catalog names places only in a storage that answers to it."
            raise
        return storages_at(self.properties)
