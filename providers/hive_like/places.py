"""Where schemas and tables of a Hive-like system may lie; a schema's definition has its `location` or None."""

from __future__ import annotations

from abc import ABC, abstractmethod

from formats.hive.partitions import escape
from formats.iceberg import locations
from formats.iceberg.folders import Ground, divided
from metalake.errors import Invalid
from metalake.kinds import Kind
from providers.places import Placed
from providers.remote_objects import Remote


class HiveLikePlaces(ABC):
    """The places of one catalog."""

    def __init__(self, catalog: Placed) -> None:
        self.catalog = catalog

    @abstractmethod
    def home_of(self, schema: Remote) -> str | None:
        """The folder for tables of a schema without a location, or None if there is none."""

    def hive_place(self, location: str, *own: str | None) -> str:
        """Check a requested location of a schema, a Hive table or a partition. Raises Invalid."""
        return self.allowed_place(location, *own)

    def ground(self, schema: Remote) -> Ground:
        """Below the schema's own location or its default folder, and in the places that its owner opened."""
        own, home = schema.definition["location"], self.home_of(schema)
        opened = divided(schema.definition["parameters"].get("allowed-locations"))
        folders = tuple(dict.fromkeys(place for place in (own, home) if place))
        return Ground(own=folders, opened=tuple(place for place in opened if self.catalog.is_named(place)))

    def place_of(self, schema: Remote, name: str, asked: str | None, ending: str = "") -> str:
        """The location of a new table: the requested one, or a folder of its name in the schema's default folder."""
        own = schema.definition["location"]
        if asked:
            return self.allowed_place(asked, own)
        below = self.home_of(schema)
        if below is None:
            raise Invalid(
                f"properties.location: say where table {name} goes; neither its schema has a location nor the "
                "catalog a warehouse",
                kind=Kind.TABLE,
            )
        by_default = locations.normalise(f"{below.removesuffix('/')}/{escape(name)}{ending}")
        return self.allowed_place(by_default, own)

    def allowed_place(self, location: str, *own: str | None) -> str:
        """The location as it was sent. Raises Invalid unless it is in a place of the catalog, or in an `own` one."""
        if self.catalog.is_named(location):
            return locations.check_allowed(location, self.catalog.allowed, file_roots=self.catalog.file_roots)
        others = [place for place in own if place and self.catalog.is_open_place(place)]
        return locations.check_allowed(location, others, file_roots=self.catalog.outside_roots)
