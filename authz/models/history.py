"""The change history: facts, and the audit log."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Fact(models.Model):
    """The state of one thing since a point in time: append-only, sealed once, immutable (access.history)."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    metalake_id = models.BigIntegerField()
    topic = models.CharField(max_length=16)
    holder = models.BigIntegerField(help_text="The role, user, group, metalake or parent that the fact is about.")
    about = models.BigIntegerField(default=0, help_text="The object, user or group that it holds or contains.")
    name = models.CharField(max_length=255, blank=True)
    state = models.JSONField(null=True)
    actor = models.CharField(max_length=255)
    event = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64, blank=True)
    mac = models.CharField(max_length=64, help_text="A keyed hash of all the above.")
    position = models.BigIntegerField(null=True, unique=True, help_text="Its place in the chain; empty until sealed.")
    digest = models.CharField(max_length=64, blank=True, help_text="A keyed hash of this fact and the one before.")

    class Meta:
        indexes = [
            models.Index(fields=["topic", "about", "id"], name="fact_about"),
            models.Index(fields=["topic", "holder", "name", "id"], name="fact_holder"),
            models.Index(fields=["metalake_id", "id"], name="fact_metalake"),
            models.Index(fields=["id"], name="fact_unsealed", condition=Q(position__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.holder} {self.about} since {self.at:%Y-%m-%d %H:%M:%S}"


class AuditEntry(models.Model):
    """One change, written in its own transaction; never updated, never deleted by us."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=255, db_index=True)
    event = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    object_id = models.BigIntegerField()
    full_name = models.TextField()
    metalake_id = models.BigIntegerField(null=True)
    details = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["object_id", "id"], name="audit_of_object"),
            models.Index(fields=["metalake_id", "id"], name="audit_of_metalake"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.event} {self.full_name}"
