"""The Django admin of accounts, tokens and permissions.

Operators create, disable and enable accounts, and set passwords. Only services change permissions: Django's groups back
our roles, so their admin page is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group as GuardianGroup
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from authz.models import (
    AccessRequest,
    AccessReview,
    AuditEntry,
    Dormancy,
    Fact,
    Grant,
    Group,
    Invitation,
    Member,
    Plan,
    PolicyChange,
    PolicyEpoch,
    Remembered,
    Role,
    Token,
    UseCaller,
    UseObject,
    UseQuestion,
    User,
    UseWriter,
)
from authz.name_rules import check_user_name
from metalake.admin import ReadOnlyAdmin, SecurableAdmin
from metalake.errors import Invalid
from metalake.events import Event, record

SHOWN = 50

admin.site.unregister(GuardianGroup)


class NewAccountForm(UserCreationForm):
    class Meta:
        model = User
        fields = ("username",)

    def clean_username(self) -> str | None:
        name = super().clean_username()
        if name is None:  # a duplicate: the form already has the error
            return None
        try:
            check_user_name(name)
        except Invalid as refusal:
            raise forms.ValidationError(refusal.message) from None
        return name


class PasswordForm(AdminPasswordChangeForm):
    """A new password for somebody else's account."""

    keep_tokens = forms.BooleanField(
        label="Keep the personal tokens",
        required=False,
        help_text="Otherwise they end with the old password. Tick it where nobody else can have seen either.",
    )

    def save(self, commit: bool = True) -> User:
        self.user.keeps_tokens = self.cleaned_data["keep_tokens"]
        return super().save(commit)


@admin.register(User)
class AccountAdmin(UserAdmin, ReadOnlyAdmin):
    """Accounts are disabled, never deleted or renamed: ownership and audit refer to them by name."""

    form = UserChangeForm
    add_form = NewAccountForm
    change_password_form = PasswordForm
    change_user_password_template = "authz/set_password.html"  # noqa: S105
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username",)
    ordering: ClassVar = ("username",)
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined", "metalakes", "roles", "guest_of")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("May", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Belongs to", {"fields": ("metalakes", "roles", "guest_of")}),
        ("When", {"fields": ("last_login", "date_joined")}),
    )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_operate_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_operate_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "username") if obj else self.readonly_fields

    @admin.display(description="metalakes")
    def metalakes(self, row: User) -> str:
        return _listed(row.memberships.values_list("metalake__name", flat=True))

    @admin.display(description="roles held directly")
    def roles(self, row: User) -> str:
        return _listed(row.groups.filter(role__isnull=False).values_list("role__name", flat=True))

    def log_addition(self, request: HttpRequest, obj: User, message: Any) -> Any:
        _record(request, "account.created", obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Also called for a password change, whose message is a string instead of a list."""
        changes = [entry.get("changed", {}) for entry in message] if isinstance(message, list) else []
        fields = [field for change in changes for field in change.get("fields", ())]
        _record(request, "account.altered", obj, changed=fields or ["Password"])
        return super().log_change(request, obj, message)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> User | None:
        account = super().get_object(request, object_id, from_field)
        if account is not None:
            account.changed_by = request.user.get_username()
        return account

    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        return super().user_change_password(request, id, form_url)


def _record(request: HttpRequest, name: str, account: User, **details: Any) -> None:
    record(
        Event(
            name=name,
            actor=request.user.get_username(),
            kind="user",
            object_id=account.pk,
            full_name=account.username,
            metalake_id=None,
            details=details,
        )
    )


def _listed(names: Iterable[str]) -> str:
    """The first SHOWN names, sorted, with "and more" if there are more."""
    shown = list(names.order_by(*names.query.values_select)[: SHOWN + 1])  # type: ignore[attr-defined]
    return ", ".join(shown[:SHOWN]) + (" and more" if len(shown) > SHOWN else "") or "-"


@admin.register(Token)
class TokenAdmin(ReadOnlyAdmin):
    """Personal tokens; operators can revoke but not issue them."""

    list_display = ("name", "user", "created_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "user__username")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke", permissions=["operate"])
    def revoke(self, request: HttpRequest, rows: QuerySet[Token]) -> None:
        with transaction.atomic():
            good = list(rows.filter(revoked_at__isnull=True).select_related("user").select_for_update(of=("self",)))
            Token.objects.filter(pk__in=[row.pk for row in good]).update(revoked_at=timezone.now())
            record(*(row.event("token.revoked", request.user.get_username()) for row in good))
        self.message_user(request, f"{len(good)} revoked.", messages.SUCCESS)


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Invitation links with which new accounts set their first password; revoked with MANAGE_USERS, not here."""

    list_display = ("user", "metalake_id", "expires_at")
    list_select_related = ("user",)
    search_fields = ("user__username", "metalake_id__exact")
    exclude = ("digest",)


@admin.register(Member)
class MemberAdmin(ReadOnlyAdmin):
    list_display = ("user", "metalake", "enabled", "external_id", "creator", "create_time")
    list_select_related = ("user", "metalake")
    list_filter = ("enabled",)
    search_fields = ("user__username", "metalake__name", "external_id")


@admin.register(Group)
class GroupAdmin(ReadOnlyAdmin):
    list_display = ("name", "metalake", "external_id", "creator", "create_time")
    list_select_related = ("metalake",)
    search_fields = ("name", "metalake__name", "external_id")
    fields = ("name", "metalake", "external_id", "its_users", "its_roles", "creator", "create_time")

    @admin.display(description="users")
    def its_users(self, row: Group) -> str:
        return _listed(row.users.values_list("username", flat=True))

    @admin.display(description="roles")
    def its_roles(self, row: Group) -> str:
        return _listed(row.roles.values_list("name", flat=True))


@admin.register(Role)
class RoleAdmin(SecurableAdmin):
    fields = (*SecurableAdmin.fields, "its_users", "its_groups")

    @admin.display(description="users who hold it directly")
    def its_users(self, row: Role) -> str:
        return _listed(User.objects.filter(groups=row.group_id).values_list("username", flat=True))

    @admin.display(description="groups that hold it")
    def its_groups(self, row: Role) -> str:
        return _listed(row.groups.values_list("name", flat=True))


@admin.register(Grant)
class GrantAdmin(ReadOnlyAdmin):
    list_display = ("effect", "privilege", "role", "content_object", "starts_at", "ends_at", "grantor", "granted_at")
    list_display_links = ("effect", "privilege")
    list_select_related = ("permission", "group__role", "content_object")
    list_filter = ("effect",)
    search_fields = ("group__role__name", "content_object__name", "permission__codename", "grantor")
    fields = ("effect", "privilege", "role", "content_object", "starts_at", "ends_at", "grantor", "granted_at")

    @admin.display(description="privilege", ordering="permission__codename")
    def privilege(self, row: Grant) -> str:
        return row.permission.codename

    @admin.display(description="role", ordering="group__role__name")
    def role(self, row: Grant) -> str:
        return row.group.role.name


class MomentsFilter(RangeDateTimeFilter):
    """From a moment to before another one, in UTC; a date alone is its beginning."""

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        for end, lookup in (("from", "gte"), ("to", "lt")):
            day, clock = (self.used_parameters.get(f"{self.parameter_name}_{end}_{part}") for part in (0, 1))
            try:
                moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}").replace(tzinfo=UTC)
            except ValueError:
                continue
            queryset = queryset.filter(**{f"{self.parameter_name}__{lookup}": moment})
        return queryset


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor", "event", "full_name", "kind", "request_id")
    list_filter = (("at", MomentsFilter),)
    list_filter_submit = True
    ordering: ClassVar[tuple[str, ...]] = ("-at", "-pk")  # an index also finds a range of years ago
    search_fields = ("actor", "event", "full_name", "object_id__exact", "request_id__exact")


@admin.register(Fact)
class FactAdmin(ReadOnlyAdmin):
    """The history of permissions and objects; `manage.py verify_history` detects tampering."""

    list_display = ("at", "actor", "event", "topic", "holder", "about", "name", "position")
    list_filter = ("topic",)
    search_fields = ("actor", "event", "name", "holder__exact", "about__exact", "request_id__exact")


@admin.register(Plan)
class PlanAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "user", "metalake_id", "applied_at")
    list_select_related = ("user",)
    search_fields = ("user__username", "metalake_id__exact")
    exclude = ("digest",)


@admin.register(Remembered)
class RememberedAdmin(ReadOnlyAdmin):
    """Current failure counts; the rows do not reveal whose they are."""

    list_display = ("digest", "count", "until")


@admin.register(PolicyEpoch)
class PolicyEpochAdmin(ReadOnlyAdmin):
    list_display = ("value", "stamp")


@admin.register(PolicyChange)
class PolicyChangeAdmin(ReadOnlyAdmin):
    list_display = ("epoch", "stamp")
    search_fields = ("epoch__exact", "stamp")


@admin.register(UseCaller)
class UseCallerAdmin(ReadOnlyAdmin):
    """The callers in the usage records, whose own rows are too many for a page."""

    list_display = ("id", "user_id", "claimed", "active")
    search_fields = ("user_id__exact",)
    exclude = ("digest",)


@admin.register(UseObject)
class UseObjectAdmin(ReadOnlyAdmin):
    list_display = ("id", "object_id", "metalake_id")
    search_fields = ("object_id__exact", "metalake_id__exact")


@admin.register(UseQuestion)
class UseQuestionAdmin(ReadOnlyAdmin):
    list_display = ("operation", "outcome", "wire", "engine")
    list_filter = ("outcome", "wire")


@admin.register(Dormancy)
class DormancyAdmin(ReadOnlyAdmin):
    """A job's latest report of unused objects and inactive users; the lists are on the owners' pages."""

    list_display = ("metalake", "days", "object_count", "people_count", "complete_until", "at", "by")
    list_select_related = ("metalake",)
    exclude = ("objects_unused", "people_unused")


@admin.register(AccessReview)
class AccessReviewAdmin(ReadOnlyAdmin):
    """The latest access review of a metalake's grants; the findings are on the owners' pages."""

    list_display = ("metalake", "as_of", "days", "unused_count", "redundant_count", "shadowed_count", "at", "by")
    list_select_related = ("metalake",)
    exclude = ("findings",)


@admin.register(AccessRequest)
class AccessRequestAdmin(ReadOnlyAdmin):
    """What people asked for; whoever may grant on the object decides it on the pages."""

    list_display = ("metalake", "user", "kind", "full_name", "state", "asked_at", "ends_at", "decided_by")
    list_filter = ("state",)
    list_select_related = ("metalake", "user")


@admin.register(UseWriter)
class UseWriterAdmin(ReadOnlyAdmin):
    """The processes that record usage; one whose last write is minutes old was killed."""

    list_display = ("process", "written_until", "lost")
