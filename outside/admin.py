"""Admin pages for the rows of outside systems, and for writes that await an operator's decision."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import HarvestedPart, Intent, Listing, Mirror, RefreshRun, Reservation, Tombstone
from metalake.admin import ReadOnlyAdmin
from outside import monitoring


@admin.register(Intent)
class IntentAdmin(ReadOnlyAdmin):
    """Writes to outside systems; an operator decides about stuck ones. The arguments of calls are not shown."""

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
        self._decide(request, rows, monitoring.RETRIED, "will be tried again")

    @admin.action(description="Give stuck ones up: what they left outside stays", permissions=["operate"])
    def give_up(self, request: HttpRequest, rows: QuerySet[Intent]) -> None:
        self._decide(request, rows, monitoring.GIVEN_UP, "given up")

    def _decide(self, request: HttpRequest, rows: QuerySet[Intent], decision: monitoring.Decision, what: str) -> None:
        assert isinstance(request.user, User)
        count = monitoring.decide_all(actor_of(request.user), rows, decision)
        self.message_user(request, f"{count} {what}.", messages.SUCCESS if count else messages.WARNING)


@admin.register(Reservation)
class ReservationAdmin(ReadOnlyAdmin):
    """Names that live writes have reserved."""

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


@admin.register(HarvestedPart)
class HarvestedPartAdmin(ReadOnlyAdmin):
    list_display = ("run", "schema", "name", "seen")
    list_select_related = ("run",)
    search_fields = ("schema",)


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnlyAdmin):
    """Objects that were dropped outside in the last day."""

    list_display = ("full_name", "kind", "in_catalog", "owner", "found_at")
    list_filter = ("kind",)
    list_select_related = ("in_catalog",)
    search_fields = ("full_name", "owner")


@admin.register(Mirror)
class MirrorAdmin(ReadOnlyAdmin):
    """When each outside object last changed; only the pages show its definition, to users who may load the object."""

    list_display = ("securable", "in_catalog", "version", "taken_at")
    list_select_related = ("securable", "in_catalog")
    search_fields = ("securable__name",)
    fields = ("securable", "in_catalog", "identity", "version", "taken_at")


@admin.register(Listing)
class ListingAdmin(ReadOnlyAdmin):
    list_display = ("container", "taken_at")
    list_select_related = ("container",)
    search_fields = ("container__name",)
