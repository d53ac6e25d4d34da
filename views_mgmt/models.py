"""Views and their versions. Source: the design of logical views, tables `view_meta` and `view_version_info`.

The design makes names unique together with the time of the drop; here a name is unique among the views that exist, so
that two drops in one moment cannot collide.
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
    """A view of any store, with its latest version. The row stays when the view is dropped.

    `view_id` is the id of its securable, which is never reused; `audit_info` is the native wire's audit. `engine` and
    `format` are those of `stores.ViewRecord`; `broken` says why its present state cannot be read.
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
    read_version = models.PositiveIntegerField(default=0, db_default=0)  # the version whose ViewRead rows there are
    dialects_read = models.JSONField(null=True)  # by dialect in one case, whether those are all that it reads
    slow_version = models.PositiveIntegerField(default=0, db_default=0)  # a version that took too long to be read
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
    """One state of a view, as Metalake wrote or met it. Never changed, and kept when the view is dropped.

    `stored_as` says what it is in its own store: for Iceberg the `metadata-location` and `version-id`.
    """

    view = models.ForeignKey(ViewMeta, models.CASCADE, related_name="versions")
    metalake_id = models.BigIntegerField(db_index=True)
    catalog_id = models.BigIntegerField(db_index=True)
    schema_id = models.BigIntegerField(db_index=True)
    version = models.PositiveIntegerField()
    view_comment = models.TextField(null=True)
    columns = models.JSONField()
    properties = models.JSONField()
    security_mode = models.CharField(max_length=32, null=True)  # None where the store cannot say
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
        """The columns of this model that a definition fills."""
        parts = definition.as_json()
        comment = parts.pop("comment")
        return parts | {"view_comment": comment}


class ViewRead(models.Model):
    """A table or view that a view's SQL reads, by its name: it need not be there, nor be in a catalog of ours.

    `key` is the digest of the names in one case, by which readers of an object are looked up; `schema` is a physical
    name. `catalog` is OWN for that of the view itself, which may be renamed. `columns` are pairs of a column of a view
    and a column that it is made of, as far as they can be told; if a `*` names it and not the SQL, a third says of
    which object, by its id. A guess is a second meaning that the names in the SQL may have: it is shown only if it is
    there.
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
    """What an engine says of one version of a view, as a job that analysed it there delivered it.

    `dialects` has for each one the `problems`, the `differences` from the declared columns, the names that it `reads`
    and its `columns` with what they are made of. It says nothing of other versions.
    """

    view = models.OneToOneField(ViewMeta, models.CASCADE, primary_key=True, related_name="finding")
    metalake_id = models.BigIntegerField()
    version = models.PositiveIntegerField()
    engine = models.CharField(max_length=64)
    at = models.DateTimeField()
    by = models.CharField(max_length=255)
    dialects = models.JSONField()
    is_broken = models.BooleanField()
    unseen: Sequence[str] = ()  # dialects that are left out, since who asks may not load what they read

    class Meta:
        db_table = "view_finding"
        verbose_name, verbose_name_plural = "finding about a view", "findings about views"
        indexes = [models.Index(fields=["metalake_id", "is_broken", "view"], name="view_finding_broken")]

    def __str__(self) -> str:
        return f"{self.engine} about version {self.version} of view {self.view_id}"
