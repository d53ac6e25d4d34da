"""The base models: Securable (one row per object), AuditInfo, Metalake, Outbox, Shared, Differing."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from secrets import randbits
from typing import Any, ClassVar, Protocol, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from metalake.kinds import Kind, kind_choices, slot_choices, slot_of
from metalake.privileges import Privilege

_EPOCH_MS = 1_704_067_200_000  # 2024-01-01
_last = 0
_lock = threading.Lock()


def new_id() -> int:
    """A 63-bit id, never reused: milliseconds, then 22 bits that start at random and count up."""
    global _last
    with _lock:
        fresh = (int(time.time() * 1000) - _EPOCH_MS) << 22 | randbits(22)
        _last = fresh if fresh >> 22 > _last >> 22 else _last + 1
        return _last


def first_id(moment: datetime) -> int:
    """The least id that `new_id` gives from this moment on."""
    return (int(moment.timestamp() * 1000) - _EPOCH_MS) << 22


class AuditInfo(models.Model):
    """Who created it and who changed it last."""

    creator = models.CharField(max_length=255, editable=False)
    create_time = models.DateTimeField(default=timezone.now, editable=False)
    last_modifier = models.CharField(max_length=255, null=True, blank=True, editable=False)
    last_modified_time = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True


class Container(Protocol):
    """A parent of objects, as a row or as Located."""

    @property
    def id(self) -> Any: ...

    @property
    def lineage(self) -> Any: ...


class Securable(AuditInfo):
    """Anything with grants or an owner; catalogs, schemas, tables and roles extend it.

    `lineage` is the path of ids from the metalake to the object itself, "/1/5/9", so that everything below an object
    is one index range. `row_kind` is set on models with rows of a single kind.
    """

    row_kind: ClassVar[Kind | None] = None
    id = models.BigIntegerField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=16, choices=kind_choices)
    slot = models.CharField(max_length=16, choices=slot_choices, editable=False)
    name = models.CharField(max_length=255)
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="children")
    lineage = models.CharField(max_length=512, editable=False)
    owner_user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="owned")
    owner_group = models.ForeignKey("authz.Group", models.PROTECT, null=True, related_name="owned")
    comment = models.TextField(null=True, blank=True)
    properties = models.JSONField(default=dict, blank=True)
    version = models.PositiveBigIntegerField(default=1, editable=False)
    spec_version = models.CharField(max_length=8, default="1.0", editable=False)

    class Meta:
        default_permissions = ()
        permissions = [(privilege.value, privilege.label) for privilege in Privilege]
        constraints = [
            models.UniqueConstraint(fields=["parent", "slot", "name"], name="securable_name_is_unique"),
            models.UniqueConstraint(
                fields=["slot", "name"], condition=Q(parent__isnull=True), name="metalake_name_is_unique"
            ),
            models.CheckConstraint(
                condition=Q(owner_user__isnull=True) ^ Q(owner_group__isnull=True), name="securable_has_one_owner"
            ),
        ]
        indexes = [
            models.Index(fields=["lineage"], name="securable_lineage"),
            models.Index(Lower("name"), "id", name="securable_lower_name"),
            models.Index(fields=["owner_user", "lineage"], name="securable_owner_user"),
            models.Index(fields=["owner_group", "lineage"], name="securable_owner_group"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @classmethod
    def made(
        cls,
        kind: Kind,
        name: str,
        parent: Container | None,
        *,
        creator: str,
        owner_user_id: int | None = None,
        owner_group_id: int | None = None,
        **fields: Any,
    ) -> Self:
        """A new, unsaved row; every securable is created here. A metalake has no parent."""
        owner = {"owner_user_id": owner_user_id, "owner_group_id": owner_group_id}
        row = cls(kind=kind, name=name, creator=creator, **owner, **fields)
        row.pk = row.id  # the primary key of a child model is the securable's
        row.place_under(parent)
        return row

    def place_under(self, parent: Container | None) -> None:
        """Set the fields derived from the object's kind and parent."""
        self.slot = slot_of(self.kind)
        self.parent_id = parent.id if parent else None
        self.lineage = f"{parent.lineage if parent else ''}/{self.id}"

    @property
    def lineage_ids(self) -> tuple[int, ...]:
        """From the metalake to the object itself."""
        return tuple(int(part) for part in self.lineage[1:].split("/"))


def below(lineage: str, field: str = "lineage") -> Q:
    """A filter for everything below this lineage, excluding the object itself: one index range."""
    return Q(**{f"{field}__gt": f"{lineage}/", f"{field}__lt": f"{lineage}0"})


class Metalake(Securable):
    """The tenant of one organisation; `enabled` is the API's `in-use`."""

    row_kind = Kind.METALAKE
    enabled = models.BooleanField(default=True)


class Outbox(models.Model):
    """The transactional outbox: follow-up work of a commit, drained by a server thread or a worker."""

    id = models.BigAutoField(primary_key=True)
    topic = models.CharField(max_length=64)
    payload = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now, db_index=True)
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "outbox"

    def __str__(self) -> str:
        return f"{self.topic} #{self.id}"


class Shared(models.Model):
    """A setting shared by all processes of this store; the first process sets the value."""

    name = models.CharField(max_length=2200, unique=True)
    value = models.CharField(max_length=64)
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "shared"

    def __str__(self) -> str:
        return self.name


class Differing(models.Model):
    """Work that a process leaves to others because of differing settings; written every minute."""

    process = models.CharField(max_length=255)
    work = models.CharField(max_length=64)
    reason = models.TextField()
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "differing processes"

    def __str__(self) -> str:
        return f"{self.process}: {self.work}"
