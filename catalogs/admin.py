"""Catalogs, schemas and tables as operators see them; services change them."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import (
    Catalog,
    CatalogSecrets,
    Intent,
    Listing,
    LocationClaim,
    Mirror,
    RefreshRun,
    Reservation,
    ReservedPlace,
    Schema,
    Table,
    Tombstone,
)
from catalogs.secrets import mask
from catalogs.services import releasing
from metalake.admin import ReadOnlyAdmin, SecurableAdmin
from metalake.models import Securable
from outside import watching


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
    search_fields = (*CatalogObjectAdmin.search_fields, "uuid__exact")
    fields = (*CatalogObjectAdmin.fields, "metadata_location", "uuid")


@admin.register(LocationClaim)
class LocationClaimAdmin(ReadOnlyAdmin):
    """What a place belongs to, and since when it is a former one."""

    list_display = ("location", "securable", "former_since")
    list_select_related = ("securable",)
    search_fields = ("location", "securable__name")


@admin.register(ReservedPlace)
class ReservedPlaceAdmin(ReadOnlyAdmin):
    """Places of what was dropped without purge; where the catalog is gone too, an operator may release them."""

    list_display = ("location", "kind", "full_name", "metalake_name", "dropped_at")
    list_filter = ("kind",)
    search_fields = ("location", "full_name", "metalake_name")
    actions = ("release",)

    @admin.action(description="Release those whose catalog is gone", permissions=["operate"])
    def release(self, request: HttpRequest, rows: QuerySet[ReservedPlace]) -> None:
        released = len(releasing.release_for_operator(request.user.get_username(), rows))
        self.message_user(request, f"{released} released.", messages.SUCCESS if released else messages.WARNING)


# Catalogs that lie in other systems


@admin.register(Intent)
class IntentAdmin(ReadOnlyAdmin):
    """Writes to outside systems; one that is stuck waits for a word. Its calls' arguments are not shown."""

    list_display = ("full_name", "verb", "state", "in_catalog", "actor_name", "created_at", "attempts", "last_failure")
    list_filter = ("state", "verb")
    list_select_related = ("in_catalog",)
    search_fields = ("full_name", "actor_name", "id__exact")
    fields = (
        "id", "verb", "full_name", "state", "in_catalog", "actor_name", "request_id", "calls", "refusal", "attempts",
        "last_failure", "lease_until", "created_at", "ended_at",
    )  # fmt: skip
    actions = ("retry", "give_up")

    @admin.display(description="calls")
    def calls(self, row: Intent) -> str:
        return ", ".join(f"{each['verb']}: {each['status']}" for each in row.steps) or "-"

    @admin.display(description="refusal")
    def refusal(self, row: Intent) -> str:
        return (row.error or {}).get("message", "-")

    @admin.action(description="Try stuck ones again", permissions=["operate"])
    def retry(self, request: HttpRequest, rows: QuerySet[Intent]) -> None:
        self._decide(request, rows, watching.retried, "will be tried again")

    @admin.action(description="Give stuck ones up: what they left outside stays", permissions=["operate"])
    def give_up(self, request: HttpRequest, rows: QuerySet[Intent]) -> None:
        self._decide(request, rows, watching.given_up, "given up")

    def _decide(self, request: HttpRequest, rows: QuerySet[Intent], decision: watching.Decision, what: str) -> None:
        assert isinstance(request.user, User)
        count = watching.decide_all(actor_of(request.user), rows, decision)
        self.message_user(request, f"{count} {what}.", messages.SUCCESS if count else messages.WARNING)


@admin.register(Reservation)
class ReservationAdmin(ReadOnlyAdmin):
    """Names that a live write holds."""

    list_display = ("name", "slot", "intent")
    list_select_related = ("intent",)
    search_fields = ("name",)


@admin.register(RefreshRun)
class RefreshRunAdmin(ReadOnlyAdmin):
    list_display = (
        "in_catalog", "state", "requested_by", "started_at", "ended_at", "seen", "created", "changed", "dropped",
        "held_back", "error",
    )  # fmt: skip
    list_filter = ("state",)
    list_select_related = ("in_catalog",)
    search_fields = ("in_catalog__name", "error", "id__exact")


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnlyAdmin):
    """What was dropped outside in the last day."""

    list_display = ("full_name", "kind", "in_catalog", "owner", "found_at")
    list_filter = ("kind",)
    list_select_related = ("in_catalog",)
    search_fields = ("full_name", "owner")


@admin.register(Mirror)
class MirrorAdmin(ReadOnlyAdmin):
    """When an outside object was last seen otherwise than before; its definition is shown to who may load it."""

    list_display = ("securable", "in_catalog", "version", "taken_at")
    list_select_related = ("securable", "in_catalog")
    search_fields = ("securable__name",)
    fields = ("securable", "in_catalog", "identity", "version", "taken_at")


@admin.register(Listing)
class ListingAdmin(ReadOnlyAdmin):
    list_display = ("container", "taken_at")
    list_select_related = ("container",)
    search_fields = ("container__name",)
