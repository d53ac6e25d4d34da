"""Templates, runs and schedules as operators see them, without the values of placeholders, which may be secrets."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from authz.callers.identity import actor_of
from authz.models import User
from jobs.models import JobRun, JobTemplate, Schedule
from jobs.services.runs import cancel_rows
from metalake.admin import ReadOnlyAdmin, SecurableAdmin


@admin.register(JobTemplate)
class JobTemplateAdmin(SecurableAdmin):
    list_display = ("name", "job_type", *SecurableAdmin.list_display[1:])
    list_filter = ("job_type",)
    fields = (*SecurableAdmin.fields, "job_type")


@admin.register(JobRun)
class JobRunAdmin(ReadOnlyAdmin):
    """Runs; an operator may cancel those that have not ended."""

    list_display = ("id", "template_name", "metalake", "status", "user_name", "queued_at", "finished_at", "error")
    list_filter = ("status",)
    list_select_related = ("metalake",)
    search_fields = ("template_name", "user_name", "error", "id__exact")
    fields = (
        "id", "metalake", "template_name", "schedule", "user_name", "status", "queued_at", "started_at", "finished_at",
        "worker", "lease_until", "fence", "exit_code", "error", "done", "total", "stage", "progressed_at",
        "last_modifier", "last_modified_time", "request_id",
    )  # fmt: skip
    actions = ("cancel",)

    @admin.action(description="Cancel", permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[JobRun]) -> None:
        assert isinstance(request.user, User)
        live = rows.filter(status__in=(JobRun.Status.QUEUED, JobRun.Status.STARTED))
        with transaction.atomic():
            count = live.count()
            cancel_rows(actor_of(request.user), live)
        self.message_user(request, f"{count} cancelled.", messages.SUCCESS if count else messages.WARNING)


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    list_display = ("name", "metalake", "template_name", "user", "cron", "every", "enabled", "last_failure")
    list_filter = ("enabled",)
    list_select_related = ("metalake", "user")
    search_fields = ("name", "template_name", "last_failure", "id__exact")
    fields = (
        "id", "name", "metalake", "template_name", "user", "cron", "every", "starts_at", "ends_at", "enabled",
        "last_failure", "creator", "create_time", "last_modifier", "last_modified_time",
    )  # fmt: skip
