"""Accounts, members, groups, roles and credentials."""

from __future__ import annotations

from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_backends, load_backend
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.auth.models import Group as GuardianGroup
from django.db import models, transaction
from django.utils import timezone

from metalake.events import Event, record
from metalake.kinds import Kind
from metalake.models import AuditInfo, Metalake, Securable
from metalake.privileges import Privilege

PASSWORDS = "authz.passwords.PasswordBackend"  # a dotted path as in settings, to avoid a circular import


class UserManager(BaseUserManager["User"]):
    def create_user(self, username: str, password: str | None = None, **extra: Any) -> User:
        """Create an account; without a password it cannot sign in."""
        user = self.model(username=username, **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, username: str, password: str | None = None, **extra: Any) -> User:
        return self.create_user(username, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractBaseUser, PermissionsMixin):
    """A global account; membership in a metalake is a Member row, roles are the `groups` that guardian grants to."""

    username = models.CharField(max_length=128, unique=True)
    is_active = models.BooleanField(default=True, help_text="A disabled account is out at once and keeps what it owns.")
    is_staff = models.BooleanField(default=False, help_text="May open the operators' admin.")
    date_joined = models.DateTimeField(default=timezone.now, editable=False)
    # The metalake whose invitation set the password, until an operator or an issuer vouches for the account.
    guest_of = models.BigIntegerField(null=True, editable=False)

    objects = UserManager()
    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    # For the next password change: who makes it, and whether tokens stay valid.
    changed_by = "metalake"
    keeps_tokens = False
    _is_locked = False
    _password: str | None

    def __str__(self) -> str:
        return self.username

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """`metalake.<privilege>` and `authz.<operation>` on an object; superusers are checked like everybody else.

        Without an object Django decides; nobody has a privilege without an object.
        """
        if obj is None:
            return perm.removeprefix("metalake.") not in set(Privilege) and super().has_perm(perm)
        return self.is_active and any(backend.has_perm(self, perm, obj) for backend in get_backends())

    async def ahas_perm(self, perm: str, obj: Any = None) -> bool:
        return await sync_to_async(self.has_perm)(perm, obj)

    def check_password(self, raw_password: str | None) -> bool:
        """Check as for a sign-in, with its rate limits; forms use it for the old password.

        Raises TooManyRequests.
        """
        backend: Any = load_backend(PASSWORDS)
        if not backend.is_password_of(self, raw_password or ""):
            return False
        return super().check_password(raw_password)  # which upgrades an old hash

    def set_unusable_password(self) -> None:
        super().set_unusable_password()
        self._is_locked = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; setting or removing the password, in any way, revokes the account's personal tokens.

        Setting somebody else's password vouches for the account.
        """
        # Django keeps the raw password until save(), except when it only rehashes the same one.
        is_new = not self._state.adding and (self._password is not None or self._is_locked)
        with transaction.atomic():
            super().save(*args, **kwargs)
            if is_new:
                self._end_tokens()
        self._is_locked = False

    def _end_tokens(self) -> None:
        if self.guest_of is not None and self.changed_by != self.username:
            self.guest_of, self.keeps_tokens = None, False
            User.objects.filter(pk=self.pk).update(guest_of=None)
        good = Token.objects.select_for_update().filter(user=self, revoked_at__isnull=True).order_by("pk")
        rows = [] if self.keeps_tokens else list(good)
        Token.objects.filter(pk__in=[row.pk for row in rows]).update(revoked_at=timezone.now())
        details = {"endedTokens": len(rows), "keepsTokens": self.keeps_tokens}
        record(
            _about_account("account.password_set", self.changed_by, "user", self.pk, self.username, details),
            *(row.event("token.revoked", self.changed_by) for row in rows),
        )


def _about_account(name: str, actor: str, kind: str, object_id: int, full_name: str, details: dict[str, Any]) -> Event:
    return Event(
        name=name, actor=actor, kind=kind, object_id=object_id, full_name=full_name, metalake_id=None, details=details
    )


class Member(AuditInfo):
    """A user in a metalake; a non-member sees nothing of it."""

    metalake = models.ForeignKey(Metalake, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    external_id = models.CharField(max_length=255, null=True, blank=True)
    enabled = models.BooleanField(default=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metalake", "user"], name="member_is_unique")]

    def __str__(self) -> str:
        return f"{self.user} in {self.metalake.name}"


class Role(Securable):
    """A named set of grants in a metalake; `group` is the Django group that guardian grants to and users belong to."""

    row_kind = Kind.ROLE
    group = models.OneToOneField(GuardianGroup, models.PROTECT, related_name="role")


class Group(AuditInfo):
    """A stored group of a metalake's users; it can hold roles and own objects."""

    metalake = models.ForeignKey(Metalake, models.CASCADE, related_name="groups")
    name = models.CharField(max_length=128)
    external_id = models.CharField(max_length=255, null=True, blank=True)
    users = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="metalake_groups", blank=True)
    roles = models.ManyToManyField(Role, related_name="groups", blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metalake", "name"], name="group_name_is_unique")]

    def __str__(self) -> str:
        return self.name


class Token(models.Model):
    """A personal access token; only its SHA-256 is stored. `within`: the only metalake that it is valid in.

    `standing`: the groups and active roles that its bearer acts with, as in authz.actor; null for all.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=128)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    within = models.ForeignKey(Metalake, models.CASCADE, null=True, blank=True, related_name="+")
    standing = models.JSONField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"

    def event(self, name: str, actor: str) -> Event:
        """An event about this token, by the actor of that name."""
        return _about_account(name, actor, "token", self.pk, self.name, {"user": self.user.username})


class Invitation(models.Model):
    """A one-time link for setting a new account's first password; only the SHA-256 of its secret is stored."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitation")
    metalake_id = models.BigIntegerField(help_text="The metalake that the account was made for.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"invitation of {self.user}"


class Remembered(models.Model):
    """An expiring counter or flag under a keyed digest (authz.throttling)."""

    digest = models.CharField(max_length=64, primary_key=True, editable=False)
    count = models.PositiveIntegerField(help_text="How often it failed; 0 for what is only known.")
    until = models.BigIntegerField(db_index=True, help_text="Seconds since 1970.")

    class Meta:
        verbose_name_plural = "remembered"
