"""Views and their versions in the Django admin, read-only: services change them."""

from __future__ import annotations

from django.contrib import admin

from catalogs.admin import CatalogObjectAdmin, WithProperties
from metalake.admin import ReadOnlyAdmin
from views_mgmt.models import View, ViewFinding, ViewMeta, ViewRead, ViewVersion


@admin.register(View)
class ViewAdmin(CatalogObjectAdmin):
    """Views stored as Iceberg view metadata files."""

    list_display = ("name", "parent", "owner", "metadata_location", "creator", "create_time")
    search_fields = (*CatalogObjectAdmin.search_fields, "uuid__exact")
    fields = (*CatalogObjectAdmin.fields, "metadata_location", "uuid")


@admin.register(ViewMeta)
class ViewMetaAdmin(ReadOnlyAdmin):
    """Views of every store, including dropped ones."""

    list_display = ("view_name", "view_id", "schema_id", "current_version", "deleted_at")
    search_fields = ("view_name", "=view_id", "=schema_id")


@admin.register(ViewVersion)
class ViewVersionAdmin(WithProperties):
    """Every version of every view; SQL is shown verbatim."""

    list_display = ("view", "version", "security_mode", "view_comment")
    fields = (
        "view", "version", "view_comment", "security_mode", "representations", "columns", "masked_properties",
        "stored_as", "audit_info", "metalake_id", "catalog_id", "schema_id", "deleted_at",
    )  # fmt: skip
    list_select_related = ("view",)
    search_fields = ("view__view_name", "=view__view_id")


@admin.register(ViewRead)
class ViewReadAdmin(ReadOnlyAdmin):
    """What the SQL of each view reads, by name; the object need not exist."""

    list_display = ("view", "catalog", "schema", "name", "is_guess")
    list_select_related = ("view",)
    search_fields = ("view__view_name", "name", "=view__view_id")


@admin.register(ViewFinding)
class ViewFindingAdmin(ReadOnlyAdmin):
    """Check results that engines reported for views."""

    list_display = ("view", "version", "engine", "is_broken", "at", "by")
    list_select_related = ("view",)
    search_fields = ("view__view_name", "=view__view_id")
