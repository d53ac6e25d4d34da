"""The Django admin: its base classes, and the pages of this app's models.

Staff may read everything. Changes that need a service, with its permissions, audit and events, cannot be made here;
the few operator actions require a superuser.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from metalake.models import Differing, Metalake, Outbox, Securable, Shared
from metalake.outbox import wake_after_commit


class ReadOnlyAdmin(ModelAdmin):
    """Shows rows; none can be added, changed or deleted, and no page counts a whole table."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 50
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("metalake.see_pages")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run actions with the permission "operate"."""
        return request.user.has_perm("metalake.operate")


class SecurableAdmin(ReadOnlyAdmin):
    """Base for objects with an owner. Properties are omitted since they may contain secrets."""

    list_display: tuple[str, ...] = ("name", "parent", "owner", "creator", "create_time")
    list_select_related = ("parent", "owner_user", "owner_group")
    search_fields: tuple[str, ...] = ("name", "id__exact")
    fields: tuple[str, ...] = (
        "id", "kind", "name", "parent", "owner", "comment", "creator", "create_time", "last_modifier",
        "last_modified_time", "version",
    )  # fmt: skip

    @admin.display(description="owner")
    def owner(self, row: Securable) -> str:
        return str(row.owner_user) if row.owner_user_id else f"group {row.owner_group}"


@admin.register(Securable)
class AnySecurableAdmin(SecurableAdmin):
    list_display = ("name", "kind", *SecurableAdmin.list_display[1:])
    list_filter = ("kind",)


@admin.register(Metalake)
class MetalakeAdmin(SecurableAdmin):
    list_display = ("name", "enabled", "owner", "creator", "create_time")
    list_filter = ("enabled",)
    fields = (*SecurableAdmin.fields, "enabled")


@admin.register(Outbox)
class OutboxAdmin(ReadOnlyAdmin):
    """Pending work; rows that failed show their attempts and last error."""

    list_display = ("topic", "id", "created_at", "due_at", "attempts", "last_error")
    search_fields = ("topic", "last_error", "id__exact")
    actions = ("try_again_now",)

    @admin.action(description="Try again now", permissions=["operate"])
    def try_again_now(self, request: HttpRequest, rows: QuerySet[Outbox]) -> None:
        """Make the rows due now and reset their attempts; handlers are idempotent, so an extra run does no harm."""
        with transaction.atomic():
            count = rows.update(due_at=timezone.now(), attempts=0)
            wake_after_commit()
        self.message_user(request, f"{count} will be tried at once.", messages.SUCCESS)


@admin.register(Shared)
class SharedAdmin(ReadOnlyAdmin):
    """Settings that all processes of this store share; `manage.py shared_settings --forget` removes one."""

    list_display = ("name", "value", "since")


@admin.register(Differing)
class DifferingAdmin(ReadOnlyAdmin):
    """Processes whose settings differ, as each last reported; reports stop when a process ends or agrees again."""

    list_display = ("process", "work", "reason", "seen_at")
    ordering = ("-seen_at",)
