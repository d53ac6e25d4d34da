"""glue: the AWS Glue Data Catalog, with tables of all formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from metalake.kinds import Kind
from providers.base import Offer
from providers.glue.catalog import GlueCatalog
from providers.glue.schemas import GlueSchemas
from providers.glue.tables import GlueTables
from providers.glue.views import GlueViews


class GlueProvider(GlueCatalog):
    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        offers = super().offers(properties)
        return {
            **offers,
            Kind.SCHEMA: replace(offers[Kind.SCHEMA], remote=GlueSchemas),
            Kind.TABLE: replace(offers[Kind.TABLE], remote=GlueTables),
            Kind.VIEW: replace(offers[Kind.VIEW], remote=GlueViews),
        }
