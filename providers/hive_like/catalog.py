"""The base of catalogs with Hive's data model: Hive metastores and AWS Glue.

A schema's definition has its `location` or None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from formats.hive.names import NameRule, folded_name
from formats.hive.partitions import escape
from formats.iceberg import locations
from formats.iceberg.folders import Ground, divided
from metalake.errors import Invalid
from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.hive_like.parameters import MADE_HERE
from providers.places import Placed
from providers.remote_objects import Remote


class HiveLikePlaces(ABC):
    """The locations of one catalog."""

    def __init__(self, catalog: Placed) -> None:
        self.catalog = catalog

    @abstractmethod
    def home_of(self, schema: Remote) -> str | None:
        """The default folder for a schema's tables, or None."""

    def hive_place(self, location: str, *own: str | None) -> str:
        """Check a requested location of a schema, a Hive table or a partition. Raises Invalid."""
        return self.allowed_place(location, *own)

    def ground(self, schema: Remote) -> Ground:
        """Below the schema's own location or default folder, and in its `allowed-locations`."""
        own, home = schema.definition["location"], self.home_of(schema)
        opened = divided(schema.definition["parameters"].get("allowed-locations"))
        folders = tuple(dict.fromkeys(place for place in (own, home) if place))
        return Ground(own=folders, opened=tuple(place for place in opened if self.catalog.is_named(place)))

    def place_of(self, schema: Remote, name: str, asked: str | None, ending: str = "") -> str:
        """A new table's location: the requested one, or a folder in the schema's default folder. Raises Invalid."""
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
        """The location, unchanged. Raises Invalid unless it is in one of the catalog's locations or an `own` one."""
        if self.catalog.is_named(location):
            return locations.check_allowed(location, self.catalog.allowed, file_roots=self.catalog.file_roots)
        others = [place for place in own if place and self.catalog.is_open_place(place)]
        return locations.check_allowed(location, others, file_roots=self.catalog.outside_roots)


class HiveLikeCatalog(Placed, ABC):
    """Table definitions are HiveTables as JSON; schema definitions have `comment`, `location` and `parameters`."""

    rule: ClassVar[NameRule]  # names of schemas and tables
    iceberg_rule: ClassVar[NameRule]  # names of Iceberg tables

    @cached_property
    @abstractmethod
    def places(self) -> HiveLikePlaces: ...

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        """The formats in which tables can be created here and that the properties do not hide."""
        return MADE_HERE

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {
            Kind.SCHEMA: Offer(storage=Storage.EXTERNAL, folds_case=True),
            Kind.TABLE: Offer(storage=Storage.EXTERNAL, folds_case=True, formats=cls.shown_formats(properties)),
            Kind.VIEW: Offer(storage=Storage.EXTERNAL, folds_case=True),
        }

    def checked_name(self, name: str) -> str:
        return folded_name(name, self.rule, Kind.SCHEMA)
