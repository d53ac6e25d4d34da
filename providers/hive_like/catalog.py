"""The base of catalogs whose system has Hive's model of databases and tables: a Hive metastore, AWS Glue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from formats.hive.names import NameRule, folded_name
from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.hive_like.parameters import MADE_HERE
from providers.hive_like.places import HiveLikePlaces
from providers.places import Placed


class HiveLikeCatalog(Placed, ABC):
    """Definitions of tables are HiveTables as JSON; those of schemas have `comment`, `location` and `parameters`."""

    rule: ClassVar[NameRule]  # names of schemas and tables
    iceberg_rule: ClassVar[NameRule]  # names of Iceberg tables

    @cached_property
    @abstractmethod
    def places(self) -> HiveLikePlaces: ...

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        """The formats in which tables can be made here and that the properties do not hide."""
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
