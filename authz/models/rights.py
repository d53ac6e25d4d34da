"""Grants, the policy epoch that snapshots follow, and plans."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, NoReturn

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from guardian.models import GroupObjectPermissionBase

from authz.managers import RAW, GrantManager, refuse
from metalake.models import Metalake, Securable
from metalake.privileges import Effect


def unended(now: datetime) -> Q:
    """A filter for grants that are in force or will be."""
    return Q(ends_at__isnull=True) | Q(ends_at__gt=now)


def in_force(now: datetime) -> Q:
    return unended(now) & (Q(starts_at__isnull=True) | Q(starts_at__lte=now))


class Grant(GroupObjectPermissionBase):
    """guardian's permission of a role on a securable, with an effect, a time span, the grantor and the time."""

    content_object = models.ForeignKey(Securable, models.CASCADE, related_name="grants")
    effect = models.CharField(
        max_length=5, choices=[(effect.value, effect.value) for effect in Effect], default=Effect.ALLOW.value
    )
    grantor = models.CharField(max_length=255)
    granted_at = models.DateTimeField(default=timezone.now)
    starts_at = models.DateTimeField(null=True, blank=True, help_text="In force from then on; empty: at once.")
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Dead from then on; empty: never.")

    objects: ClassVar[GrantManager] = GrantManager()
    rows: ClassVar[models.Manager[Grant]] = models.Manager()  # for the services that write grants

    class Meta(GroupObjectPermissionBase.Meta):
        constraints = [
            models.UniqueConstraint(fields=["group", "permission", "content_object"], name="grant_is_unique")
        ]
        unique_together = []
        indexes = [
            models.Index(fields=["content_object", "group"], name="grant_object_group"),
            models.Index(fields=["content_object", "permission"], name="grant_object_permission"),
        ]

    def __str__(self) -> str:
        return f"{self.effect} {self.permission.codename} on {self.content_object} to {self.group.name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        refuse(RAW)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(RAW)


class PolicyEpoch(models.Model):
    """The single row that every permission change increments in its transaction; versions the policy snapshot."""

    value = models.PositiveBigIntegerField()
    stamp = models.CharField(max_length=16)


class PolicyChange(models.Model):
    """The changes of one epoch, for updating snapshots incrementally."""

    epoch = models.PositiveBigIntegerField(primary_key=True)
    stamp = models.CharField(max_length=16)
    changes = models.JSONField()


class Plan(models.Model):
    """A dry run of grant changes that its caller may apply once; only its token's SHA-256 is stored."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="plans")
    metalake_id = models.BigIntegerField()
    changes = models.JSONField(help_text="By ids, in the form that plans are made in.")
    fact_id = models.BigIntegerField(help_text="The newest fact about rights that it was made on.")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    applied_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"plan of {self.user} from {self.created_at:%Y-%m-%d %H:%M:%S}"


class AccessRequest(models.Model):
    """What somebody asks for on an object until a moment, for whoever may grant there to decide.

    `kind` and `full_name` are of the object as the requester saw it then: it may be renamed, hidden or gone since.
    """

    class State(models.TextChoices):
        OPEN = "open"
        APPROVED = "approved"
        DECLINED = "declined"
        WITHDRAWN = "withdrawn"

    metalake = models.ForeignKey(Metalake, models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    object_id = models.BigIntegerField()
    kind = models.CharField(max_length=16)
    full_name = models.TextField(help_text="Dotted.")
    privileges = models.JSONField()
    purpose = models.TextField()
    ends_at = models.DateTimeField(help_text="When the access is to end.")
    asked_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=255, blank=True)
    reason = models.TextField(blank=True, help_text="Why it was declined.")

    class Meta:
        indexes = [models.Index(fields=["metalake", "id"], name="request_open", condition=Q(state="open"))]

    def __str__(self) -> str:
        return f"request of {self.user} for {self.full_name}, {self.state}"
