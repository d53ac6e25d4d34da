"""Job templates, their runs with logs, and the schedules that start runs."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from catalogs.models import Catalog
from metalake.kinds import Kind
from metalake.models import AuditInfo, Metalake, Securable, new_id


class JobTemplate(Securable):
    """What a job runs; `content` is the API's JSON object without name and comment (jobs.definition)."""

    row_kind = Kind.JOB_TEMPLATE
    job_type = models.CharField(max_length=16)
    content = models.JSONField()


class Schedule(AuditInfo):
    """When a template runs automatically, as the schedule's owner; a django-celery-beat row is its clock.

    `template` is None for a built-in one, which `template_name` names.
    """

    id = models.BigIntegerField(primary_key=True, default=new_id, editable=False)
    metalake = models.ForeignKey(Metalake, models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=64)
    template = models.ForeignKey(JobTemplate, models.CASCADE, null=True, related_name="schedules")
    template_name = models.CharField(max_length=255)
    conf = models.JSONField(default=dict)
    content = models.JSONField(null=True)  # the template's, as the owner knows it; None for a built-in one
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    standing = models.JSONField(null=True)  # denying groups and active roles (authz.actor) of its owner's requests
    cron = models.CharField(max_length=255, blank=True)
    every = models.PositiveIntegerField(null=True, help_text="Seconds; empty where cron says when.")
    starts_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True)
    last_failure = models.TextField(blank=True, help_text="Why it started no run the last time; empty if it did.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metalake", "name"], name="schedule_name_is_unique")]

    def __str__(self) -> str:
        return self.name


class JobRun(models.Model):
    """One run of a template. The holder of its lease (metalake.leases) watches its process."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        STARTED = "started"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLING = "cancelling"
        CANCELLED = "cancelled"

    LIVE = (Status.QUEUED, Status.STARTED, Status.CANCELLING)
    RUNNING = (Status.STARTED, Status.CANCELLING)

    id = models.BigIntegerField(primary_key=True, default=new_id, editable=False)
    metalake = models.ForeignKey(Metalake, models.CASCADE, related_name="runs")
    template = models.ForeignKey(JobTemplate, models.CASCADE, null=True, related_name="runs")
    template_name = models.CharField(max_length=255)
    conf = models.JSONField(default=dict)
    content = models.JSONField(null=True)  # the template's when the run was queued; None for a built-in one
    schedule = models.ForeignKey(Schedule, models.SET_NULL, null=True, related_name="runs")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    user_name = models.CharField(max_length=255)
    standing = models.JSONField(default=dict)  # groups and active roles of the request (authz.actor)
    request_id = models.CharField(max_length=128, blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED)
    queued_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    last_modifier = models.CharField(max_length=255, blank=True)  # who cancelled it
    last_modified_time = models.DateTimeField(null=True)
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=255, blank=True)  # host and process that watch it
    token_id = models.BigIntegerField(null=True)  # the run's own token
    system_token_id = models.BigIntegerField(null=True)  # its token for writing results
    exit_code = models.IntegerField(null=True)
    error = models.TextField(blank=True)
    done = models.BigIntegerField(null=True)
    total = models.BigIntegerField(null=True)
    stage = models.CharField(max_length=200, blank=True)
    progressed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["metalake", "-queued_at"], name="run_of_metalake"),
            models.Index(
                fields=["queued_at"], name="run_live", condition=Q(status__in=["queued", "started", "cancelling"])
            ),
            models.Index(fields=["finished_at"], name="run_finished"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.template_name} ({self.status})"


class SystemCatalog(models.Model):
    """Marks a catalog that jobs.services.system created for results; no request writes this."""

    catalog = models.OneToOneField(Catalog, models.CASCADE, primary_key=True, related_name="system")

    def __str__(self) -> str:
        return f"system catalog {self.catalog_id}"


class RunLog(models.Model):
    """A run's output: its head and tail, of `total` bytes, with secrets masked."""

    run = models.OneToOneField(JobRun, models.CASCADE, primary_key=True, related_name="log")
    head = models.BinaryField(default=b"")
    tail = models.BinaryField(default=b"")
    total = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"log of run {self.run_id}"
