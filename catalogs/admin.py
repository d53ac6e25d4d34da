"""Catalogs, schemas and tables as operators see them; services change them."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from catalogs.models import Catalog, CatalogSecrets, LocationClaim, Schema, Table
from catalogs.secrets import mask
from metalake.admin import ReadOnlyAdmin, SecurableAdmin
from metalake.models import Securable


class CatalogObjectAdmin(SecurableAdmin):
    @admin.display(description="properties")
    def masked_properties(self, row: Securable) -> SafeString | str:
        """Secrets show as set, never by value."""
        return format_html_join("\n", "<div>{} = {}</div>", sorted(mask(row.properties).items())) or "-"


@admin.register(Catalog)
class CatalogAdmin(CatalogObjectAdmin):
    list_display = ("name", "parent", "type", "provider", "enabled", "nested", "owner", "create_time")
    list_filter = ("type", "enabled", "nested")
    search_fields = (*CatalogObjectAdmin.search_fields, "provider")
    fields = (*CatalogObjectAdmin.fields, "type", "provider", "enabled", "nested", "masked_properties")


@admin.register(CatalogSecrets)
class CatalogSecretsAdmin(ReadOnlyAdmin):
    """Which secrets a catalog keeps, and by which master key they open."""

    list_display = ("catalog", "master_key", "names")
    list_select_related = ("catalog",)
    search_fields = ("catalog__name", "master_key")
    fields = ("catalog", "master_key", "names")

    @admin.display(description="secrets")
    def names(self, row: CatalogSecrets) -> str:
        return ", ".join(sorted(row.sealed))


@admin.register(Schema)
class SchemaAdmin(CatalogObjectAdmin):
    list_display = ("full_name", "in_catalog", "owner", "creator", "create_time")
    list_select_related = ("in_catalog", "owner_user", "owner_group")
    fields = (*CatalogObjectAdmin.fields, "in_catalog", "full_name", "masked_properties")

    @admin.display(description="schema", ordering="physical_name")
    def full_name(self, row: Schema) -> str:
        return row.path.logical()


@admin.register(Table)
class TableAdmin(CatalogObjectAdmin):
    list_display = ("name", "parent", "owner", "metadata_location", "creator", "create_time")
    search_fields = (*CatalogObjectAdmin.search_fields, "table_uuid__exact")
    fields = (*CatalogObjectAdmin.fields, "metadata_location", "table_uuid")


@admin.register(LocationClaim)
class LocationClaimAdmin(ReadOnlyAdmin):
    """Which table a place belongs to."""

    list_display = ("location", "table")
    list_select_related = ("table",)
    search_fields = ("location", "table__name")
