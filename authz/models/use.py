"""Usage records: permission checks counted per hour by caller, object and operation.

There are many rows, so they consist of small integers that refer to three other tables, without foreign keys.
"""

from __future__ import annotations

from django.db import models

from metalake.models import Metalake


class UseCaller(models.Model):
    """A caller: an account (0: none), with the groups that a token claimed and the active roles."""

    id = models.AutoField(primary_key=True)
    user_id = models.BigIntegerField(db_index=True)
    claimed = models.JSONField(help_text="Ids of groups.")
    active = models.JSONField(null=True, help_text="Ids of roles; null for all.")
    digest = models.CharField(max_length=64, unique=True, editable=False)


class UseObject(models.Model):
    """A checked object, which may be gone."""

    id = models.AutoField(primary_key=True)
    object_id = models.BigIntegerField(unique=True)
    metalake_id = models.BigIntegerField(db_index=True)


class UseQuestion(models.Model):
    """A kind of check: an operation of authz.operations, its outcome, the API and the engine."""

    id = models.AutoField(primary_key=True)
    operation = models.CharField(max_length=64)
    outcome = models.CharField(max_length=8)
    wire = models.CharField(max_length=8)
    engine = models.CharField(max_length=16)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["operation", "outcome", "wire", "engine"], name="use_question_is_unique")
        ]


class Use(models.Model):
    """How often a caller did a kind of check on an object in one hour, and the first and last second of it."""

    pk = models.CompositePrimaryKey("hour", "about", "caller", "question")
    hour = models.IntegerField(help_text="Hours since 1970, UTC.")
    about = models.IntegerField()
    caller = models.IntegerField()
    question = models.IntegerField()
    times = models.IntegerField()
    first = models.SmallIntegerField()
    last = models.SmallIntegerField()

    class Meta:
        indexes = [models.Index(fields=["caller", "hour"], name="use_caller_hour")]


class UseWriter(models.Model):
    """A process that records usage: everything until `written_until` is in the store.

    A process deletes its row on exit, so a stale row is of a process that was killed.
    """

    process = models.CharField(max_length=128, primary_key=True)
    written_until = models.DateTimeField()
    lost = models.BigIntegerField(default=0, help_text="Questions that were not counted for want of memory.")


class AccessReview(models.Model):
    """The latest access review of a metalake's grants, as reported by its job.

    `findings` are serialized access.usage.reports.Finding, only the first if many; the job's tables have all.
    """

    metalake = models.OneToOneField(Metalake, models.CASCADE, primary_key=True, related_name="+")
    as_of = models.DateTimeField()
    place = models.BigIntegerField(help_text="In the history, as of which the grants are.")
    days = models.PositiveIntegerField(help_text="Without use for as many days.")
    recorded_from = models.DateTimeField(null=True)
    complete_until = models.DateTimeField()
    unused_count = models.PositiveIntegerField()
    redundant_count = models.PositiveIntegerField()
    shadowed_count = models.PositiveIntegerField()
    findings = models.JSONField()
    at = models.DateTimeField()
    by = models.CharField(max_length=255)

    class Meta:
        verbose_name = "access review"

    def __str__(self) -> str:
        return f"review of the grants of metalake {self.metalake_id} as of {self.as_of}"


class Dormancy(models.Model):
    """The objects and members of a metalake without usage records, as last reported by a job.

    `objects_unused` are pairs of an object's id and its last use, null for never, longest unused first;
    `people_unused` are the same with account ids. Only the first if many; the job's tables have all.
    """

    metalake = models.OneToOneField(Metalake, models.CASCADE, primary_key=True, related_name="+")
    complete_until = models.DateTimeField()
    days = models.PositiveIntegerField(help_text="Without use for as many days.")
    object_count = models.PositiveIntegerField()
    people_count = models.PositiveIntegerField()
    objects_unused = models.JSONField()
    people_unused = models.JSONField()
    at = models.DateTimeField()
    by = models.CharField(max_length=255)

    class Meta:
        verbose_name, verbose_name_plural = "report of what is dormant", "reports of what is dormant"

    def __str__(self) -> str:
        return f"unused for {self.days} days in metalake {self.metalake_id}"
