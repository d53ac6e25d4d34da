"""hive: a Hive Metastore with databases, tables of all formats and their partitions, over Thrift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from metalake.kinds import Kind
from providers.base import Offer
from providers.hive.catalog import HiveCatalog
from providers.hive.schemas import HiveSchemas
from providers.hive.tables import HiveTables
from providers.hive.views import HiveViews

ICEBERG = frozenset({"iceberg"})  # the only view format that is not an engine's form


class HiveProvider(HiveCatalog):
    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        offers = super().offers(properties)
        return {
            **offers,
            Kind.SCHEMA: replace(offers[Kind.SCHEMA], remote=HiveSchemas),
            Kind.TABLE: replace(offers[Kind.TABLE], remote=HiveTables),
            Kind.VIEW: replace(offers[Kind.VIEW], remote=HiveViews, formats=cls.shown_formats(properties) & ICEBERG),
        }
