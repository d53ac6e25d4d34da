"""Catalog > schema > table, as rows; the names they share live in Securable."""

from __future__ import annotations

from django.db import models

from catalogs.hierarchy import HierarchicalSchema
from metalake.models import Securable
from metalake.privileges import CatalogType


class Catalog(Securable):
    """A registered catalog: its provider says what keeps its schemas and tables."""

    type = models.CharField(max_length=16, choices=[(type_.value, type_.value) for type_ in CatalogType])
    provider = models.CharField(max_length=64)
    enabled = models.BooleanField(default=True)
    nested = models.BooleanField(default=False, editable=False)


class Schema(Securable):
    """One level of a catalog's schemas; `name` is its last segment, `physical_name` the whole path."""

    in_catalog = models.ForeignKey(Catalog, models.PROTECT, related_name="schemas", db_column="catalog_id")
    physical_name = models.CharField(max_length=1024)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["in_catalog", "physical_name"], name="schema_path_is_unique"),
        ]

    @property
    def path(self) -> HierarchicalSchema:
        return HierarchicalSchema.from_physical(self.physical_name)


class Tabular(Securable):
    """A table or a view: both are named in one space below a schema."""

    class Meta:
        abstract = True


class Table(Tabular):
    """A table whose truth is a metadata file: the row keeps the pointer to the current one."""

    metadata_location = models.TextField()
    table_uuid = models.UUIDField(unique=True)


class LocationClaim(models.Model):
    """A place that one table writes to; no other table may have it, or a part of it."""

    table = models.ForeignKey(Table, models.CASCADE, related_name="claims")
    location = models.CharField(max_length=2048, unique=True)

    def __str__(self) -> str:
        return self.location
