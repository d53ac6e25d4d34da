"""A catalog in a Hive metastore: its settings, connections, and table locations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import Any

from formats.hive.names import HIVE
from formats.iceberg import locations
from formats.iceberg.folders import Ground
from metalake.errors import Invalid, NotFound, at
from providers.hive.calls import read_database
from providers.hive.client import Metastore, connect, connection
from providers.hive.settings import LIST_ALL, URIS, HiveSettings, require_offered
from providers.hive_like.catalog import HiveLikeCatalog, HiveLikePlaces
from providers.hive_like.parameters import MADE_HERE
from providers.network.endpoints import Endpoint
from providers.network.metastores import check_metastores, parse_metastores, systems_at, systems_named
from providers.network.response_budget import places_returned
from providers.places import require_no_metadata_host
from providers.remote_objects import Remote

ROOT = "default"  # the built-in database of every metastore
TO_NAME = "put it among the catalog's allowed-locations, or leave the location out"


class HivePlaces(HiveLikePlaces):
    def hive_place(self, location: str, *own: str | None) -> str:
        """Check a requested location; without configured locations, only the `own` ones are allowed. Raises Invalid.

        A metastore deletes a managed table's whole folder, including other tables' files in it.
        """
        place = locations.normalise(location)
        require_no_metadata_host(place)
        if not (self.catalog.allowed or any(own)):
            raise Invalid(f"Location {location!r:.200}: the catalog names no such place; {TO_NAME}", kind="location")
        return self.allowed_place(place, *own)

    def home_of(self, schema: Remote) -> str | None:
        """The database's location if configured in the catalog or without a warehouse; else a warehouse folder."""
        own = schema.definition["location"]
        warehouse = self.catalog.warehouse
        if own and (not warehouse or self.catalog.is_named(own)):
            return str(own)
        return f"{warehouse.removesuffix('/')}/{schema.name}.db" if warehouse else None

    def ground(self, schema: Remote) -> Ground:
        """As the base, but the default database's location is shared: it contains the other databases' folders."""
        ground = super().ground(schema)
        return replace(ground, own=(), shared=ground.own) if schema.name == ROOT else ground


class HiveCatalog(HiveLikeCatalog):
    label = "Hive Metastore"
    settings = HiveSettings
    longest_name = HIVE.longest
    rule = iceberg_rule = HIVE

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        """Raises Invalid, and Unsupported for a metastore with Kerberos or TLS."""
        given = super().check(properties)
        with at(f"Property {URIS!r}"):
            parse_metastores(properties[URIS])
        require_offered(properties)
        return given

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        return frozenset({"hive"}) if properties.get(LIST_ALL) == "false" else MADE_HERE

    @cached_property
    def places(self) -> HivePlaces:
        return HivePlaces(self)

    @cached_property
    def endpoints(self) -> list[Endpoint]:
        return parse_metastores(self.properties[URIS])

    def check_locations(self) -> None:
        super().check_locations()
        check_metastores(self.properties[URIS])

    def system_names(self) -> list[str]:
        return systems_named(self.properties[URIS])

    def system(self) -> list[str]:
        return systems_at(self.properties[URIS])

    def test_connection(self) -> None:
        check_metastores(self.properties[URIS])
        metastore = connect(self.endpoints)
        try:
            with places_returned():
                read_database(metastore, "default")
        except NotFound:
            pass  # a metastore nevertheless
        finally:
            metastore.close()

    def metastore(self) -> AbstractContextManager[Metastore]:
        return connection(self.endpoints)
