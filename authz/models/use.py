"""The record of use: which questions were asked of the evaluator, by whom, about what, in which hour, and how often.

Its rows are many, so they are of small integers that stand for the rows of three other tables, without foreign keys.
"""

from __future__ import annotations

from django.db import models

from metalake.models import Metalake


class UseCaller(models.Model):
    """Who asked: an account (0: none), with the groups that a token claimed and the roles that were active."""

    id = models.AutoField(primary_key=True)
    user_id = models.BigIntegerField(db_index=True)
    claimed = models.JSONField(help_text="Ids of groups.")
    active = models.JSONField(null=True, help_text="Ids of roles; null for all.")
    digest = models.CharField(max_length=64, unique=True, editable=False)


class UseObject(models.Model):
    """What was asked about; the object may be gone."""

    id = models.AutoField(primary_key=True)
    object_id = models.BigIntegerField(unique=True)
    metalake_id = models.BigIntegerField(db_index=True)


class UseQuestion(models.Model):
    """What was asked: a row of the table of operations, its outcome, and by which wire and engine."""

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
    """How often one caller asked one question about one object in one hour, and at which seconds of it."""

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
    """A process that counts: all that it counted until `written_until` is in the store.

    A process that ends takes its row with it, so one that was not written for long is of a process that was killed.
    """

    process = models.CharField(max_length=128, primary_key=True)
    written_until = models.DateTimeField()
    lost = models.BigIntegerField(default=0, help_text="Questions that were not counted for want of memory.")


class AccessReview(models.Model):
    """What the last access review says of a metalake's grants, as its job reported it.

    `findings` are stored access.usage.reports.Finding. Of many, the first are here; all are in the job's tables.
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
    """Which objects and members of a metalake the record of use says nothing of, as a job last reported it.

    `objects` are pairs of an object's id and when it was last used, null for never, the longest unused first; `people`
    are the same with the ids of accounts. Of many, the first are here; all of them are in the job's tables.
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
