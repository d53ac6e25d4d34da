"""Views and their versions. Source: the design of logical views, tables `view_meta` and `view_version_info`.

The design makes names unique together with the drop time; here a name is unique among existing views, so that two
drops at the same time cannot collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import Q

from catalogs.models import Tabular
from formats.native.view_definition import ViewDefinition
from metalake.kinds import Kind


class View(Tabular):
    """A view whose row points to an Iceberg view metadata file; views of other stores have no such row."""

    row_kind = Kind.VIEW


class ViewMeta(models.Model):
    """A view of any store, with its latest version number. The row outlives a drop.

    `view_id` is the id of its securable, never reused; `audit_info` is the native API's audit. `engine` and `format`
    are those of `stores.ViewRecord`; `broken` says why its current state is unreadable.
    """

    view_id = models.BigIntegerField(primary_key=True)
    view_name = models.CharField(max_length=255)
    metalake_id = models.BigIntegerField(db_index=True)
    catalog_id = models.BigIntegerField(db_index=True)
    schema_id = models.BigIntegerField()
    audit_info = models.JSONField(default=dict)
    engine = models.CharField(max_length=16)
    format = models.CharField(max_length=16)
    broken = models.TextField(blank=True)
    current_version = models.PositiveIntegerField(default=1)
    read_version = models.PositiveIntegerField(default=0, db_default=0)  # the version that the ViewRead rows are of
    dialects_read = models.JSONField(null=True)  # by case-folded dialect, whether they are complete
    slow_version = models.PositiveIntegerField(default=0, db_default=0)  # a version whose analysis timed out
    latest_version = models.PositiveIntegerField(default=1)
    deleted_at = models.BigIntegerField(default=0)  # milliseconds since 1970; 0 while it exists

    class Meta:
        db_table = "view_meta"
        verbose_name, verbose_name_plural = "view", "views"
        constraints = [
            models.UniqueConstraint(
                fields=["schema_id", "view_name"], condition=Q(deleted_at=0), name="view_name_is_unique"
            )
        ]

    def __str__(self) -> str:
        return f"view {self.view_name}"


class ViewVersion(models.Model):
    """One state of a view, as Metalake wrote or discovered it. Immutable, and kept when the view is dropped.

    `stored_as` identifies it in its store: for Iceberg the `metadata-location` and `version-id`.
    """

    view = models.ForeignKey(ViewMeta, models.CASCADE, related_name="versions")
    metalake_id = models.BigIntegerField(db_index=True)
    catalog_id = models.BigIntegerField(db_index=True)
    schema_id = models.BigIntegerField(db_index=True)
    version = models.PositiveIntegerField()
    view_comment = models.TextField(null=True)
    columns = models.JSONField()
    properties = models.JSONField()
    security_mode = models.CharField(max_length=32, null=True)  # None if the store has no such field
    representations = models.JSONField()
    stored_as = models.JSONField(default=dict)
    audit_info = models.JSONField(default=dict)
    deleted_at = models.BigIntegerField(default=0)

    class Meta:
        db_table = "view_version_info"
        verbose_name, verbose_name_plural = "version of a view", "versions of views"
        constraints = [models.UniqueConstraint(fields=["view", "version"], name="view_version_is_unique")]

    def __str__(self) -> str:
        return f"version {self.version} of view {self.view_id}"

    @property
    def definition(self) -> ViewDefinition:
        return ViewDefinition.from_json(
            {
                "representations": self.representations,
                "columns": self.columns,
                "security_mode": self.security_mode,
                "comment": self.view_comment,
                "properties": self.properties,
            }
        )

    @staticmethod
    def fields_of(definition: ViewDefinition) -> dict[str, Any]:
        """This model's field values for a definition."""
        parts = definition.as_json()
        comment = parts.pop("comment")
        return parts | {"view_comment": comment}


class ViewRead(models.Model):
    """A table or view that a view's SQL reads, by name: it need not exist, nor be in one of our catalogs.

    `key` is the digest of the case-folded names, for looking up an object's readers; `schema` is a physical name.
    `catalog` is OWN for the view's own catalog, which may be renamed. `columns` are pairs of a view column and a source
    column that it derives from, if known; for a column expanded from `*`, a third element is the id of the source.
    A guess is a second interpretation of the names in the SQL, shown only if that object exists.
    """

    OWN = ""

    view = models.ForeignKey(ViewMeta, models.CASCADE, related_name="reads")
    metalake_id = models.BigIntegerField()
    key = models.CharField(max_length=64)
    catalog = models.CharField(max_length=255)
    schema = models.CharField(max_length=1024)
    name = models.CharField(max_length=255)
    dialects = models.JSONField()
    columns = models.JSONField()
    is_guess = models.BooleanField(default=False)

    class Meta:
        db_table = "view_read"
        verbose_name, verbose_name_plural = "table that a view reads", "tables that views read"
        indexes = [models.Index(fields=["metalake_id", "key"], name="view_read_key")]

    def __str__(self) -> str:
        return f"view {self.view_id} reads {self.name}"


class ViewFinding(models.Model):
    """An engine's check result for one version of a view only, delivered by the job that analysed it there.

    `dialects` has for each one the `problems`, the `differences` from the declared columns, the names that it `reads`
    and its `columns` with the columns that they derive from.
    """

    view = models.OneToOneField(ViewMeta, models.CASCADE, primary_key=True, related_name="finding")
    metalake_id = models.BigIntegerField()
    version = models.PositiveIntegerField()
    engine = models.CharField(max_length=64)
    at = models.DateTimeField()
    by = models.CharField(max_length=255)
    dialects = models.JSONField()
    is_broken = models.BooleanField()
    unseen: Sequence[str] = ()  # dialects withheld because the caller may not load what they read

    class Meta:
        db_table = "view_finding"
        verbose_name, verbose_name_plural = "finding about a view", "findings about views"
        indexes = [models.Index(fields=["metalake_id", "is_broken", "view"], name="view_finding_broken")]

    def __str__(self) -> str:
        return f"{self.engine} about version {self.version} of view {self.view_id}"
