"""Read-only admin of catalogs, schemas and tables; services change them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from catalogs.models import (
    Catalog,
    CatalogSecrets,
    LocationClaim,
    ReservedPlace,
    Schema,
    Table,
)
from catalogs.secrets import mask
from catalogs.services import place_release
from metalake.admin import ReadOnlyAdmin, SecurableAdmin


class WithProperties(ReadOnlyAdmin):
    """Base for rows with properties, which may contain secrets."""

    @admin.display(description="properties")
    def masked_properties(self, row: Any) -> SafeString | str:
        """The properties with secrets masked."""
        return format_html_join("\n", "<div>{} = {}</div>", sorted(mask(row.properties).items())) or "-"


class CatalogObjectAdmin(WithProperties, SecurableAdmin): ...


@admin.register(Catalog)
class CatalogAdmin(CatalogObjectAdmin):
    list_display = ("name", "parent", "type", "provider", "enabled", "nested", "owner", "create_time")
    list_filter = ("type", "enabled", "nested")
    search_fields = (*CatalogObjectAdmin.search_fields, "provider")
    fields = (*CatalogObjectAdmin.fields, "type", "provider", "enabled", "nested", "masked_properties")


@admin.register(CatalogSecrets)
class CatalogSecretsAdmin(ReadOnlyAdmin):
    """The names of a catalog's secrets, and the master key that decrypts them."""

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
    search_fields = (*CatalogObjectAdmin.search_fields, "uuid__exact")
    fields = (*CatalogObjectAdmin.fields, "metadata_location", "uuid")


@admin.register(LocationClaim)
class LocationClaimAdmin(ReadOnlyAdmin):
    """The owner of each place, and since when it has been a former one."""

    list_display = ("location", "securable", "former_since")
    list_select_related = ("securable",)
    search_fields = ("location", "securable__name")


@admin.register(ReservedPlace)
class ReservedPlaceAdmin(ReadOnlyAdmin):
    """Places of objects dropped without purge; an operator may release them if their catalog is dropped too."""

    list_display = ("location", "kind", "full_name", "metalake_name", "dropped_at")
    list_filter = ("kind",)
    search_fields = ("location", "full_name", "metalake_name")
    actions = ("release",)

    @admin.action(description="Release those whose catalog is gone", permissions=["operate"])
    def release(self, request: HttpRequest, rows: QuerySet[ReservedPlace]) -> None:
        released = len(place_release.release_for_operator(request.user.get_username(), rows))
        self.message_user(request, f"{released} released.", messages.SUCCESS if released else messages.WARNING)


# Catalogs that lie in other systems
