"""Models of catalogs, schemas and tables; their common fields are in Securable."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import CatalogType, Kind
from metalake.models import Securable, new_id

LEVELS = "\x1f"


class Catalog(Securable):
    """A registered catalog; its provider decides where its schemas and tables are stored."""

    row_kind = Kind.CATALOG
    type = models.CharField(max_length=16, choices=[(type_.value, type_.value) for type_ in CatalogType])
    provider = models.CharField(max_length=64)
    enabled = models.BooleanField(default=True)
    nested = models.BooleanField(default=False, editable=False)
    folds_case = models.BooleanField(default=False, editable=False)
    systems = models.JSONField(null=True, editable=False)  # URLs that identify its outside system; None: not known yet
    storages = models.JSONField(null=True, editable=False)  # of its buckets (catalogs.services.storage_identity)


class CatalogSecrets(models.Model):
    """A catalog's secret properties, encrypted with its data key, itself wrapped by a master key (catalogs.vault)."""

    catalog = models.OneToOneField(Catalog, models.CASCADE, primary_key=True, related_name="secrets")
    master_key = models.CharField(max_length=64)  # its id in the key ring
    data_key = models.CharField(max_length=128)
    sealed = models.JSONField()  # property -> ciphertext

    class Meta:
        verbose_name_plural = "catalog secrets"

    def __str__(self) -> str:
        return f"secrets of {self.catalog.name}"


class Schema(Securable):
    """One level of a catalog's schemas; `name` is its last segment, `physical_name` the whole path."""

    row_kind = Kind.SCHEMA
    in_catalog = models.ForeignKey(Catalog, models.PROTECT, related_name="schemas", db_column="catalog_id")
    physical_name = models.CharField(max_length=1024)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["in_catalog", "physical_name"], name="schema_path_is_unique"),
        ]

    @property
    def path(self) -> HierarchicalSchema:
        return HierarchicalSchema.from_physical(self.physical_name)


class Tabular(Securable):
    """A table or view: they share their schema's namespace, and each is defined by a metadata file.

    The row holds the pointer to the current file; `catalogs.lookup` reads it with the lineage.
    """

    metadata_location = models.TextField()
    uuid = models.UUIDField(unique=True)

    class Meta:
        abstract = True


class Table(Tabular):
    row_kind = Kind.TABLE

    uuid = models.UUIDField(unique=True, db_column="table_uuid")  # nodes of 1.0 query it during an upgrade


class LocationClaim(models.Model):
    """A location that one object writes to, or did before; no other object may use it or anything below it."""

    securable = models.ForeignKey(Securable, models.CASCADE, related_name="claims", db_column="table_id")  # as of 1.0
    location = models.CharField(max_length=2048, db_index=True)  # bucket names are unique only within a storage
    former_since = models.DateTimeField(null=True)  # None while the object writes there

    def __str__(self) -> str:
        return self.location


class ReservedPlace(models.Model):
    """A location of a dropped, unpurged object or catalog, for its former owner and the catalog's owner only.

    The row describes the object as of the drop, without foreign keys to rows that could be deleted.
    """

    location = models.CharField(max_length=2048, db_index=True)
    storages = models.JSONField(null=True, editable=False)  # of its catalog; None: unknown
    is_named = models.BooleanField(default=True, db_default=True)  # by its catalog; otherwise applies to that only
    kind = models.CharField(max_length=16)  # of the dropped object; "catalog" for a whole catalog's location
    full_name = models.CharField(max_length=2048)
    metalake_name = models.CharField(max_length=255)
    of_metalake = models.BigIntegerField(db_index=True)
    of_catalog = models.BigIntegerField(db_index=True)
    owner_user_id = models.BigIntegerField(null=True)
    owner_group_id = models.BigIntegerField(null=True)
    catalog_user_id = models.BigIntegerField(null=True)  # the catalog's owner, if that is dropped too
    catalog_group_id = models.BigIntegerField(null=True)
    dropped_at = models.DateTimeField(default=timezone.now)
    denied = models.JSONField(null=True, editable=False)  # the DENYs in force on it (catalogs.services.reserved_denies)

    def __str__(self) -> str:
        return self.location


class Mirror(models.Model):
    """The cached copy of a schema or table of an outside system, as last returned."""

    securable = models.OneToOneField(Securable, models.CASCADE, primary_key=True, related_name="mirror")
    in_catalog = models.ForeignKey(Catalog, models.PROTECT, related_name="mirrors", db_column="catalog_id")
    wire_name = models.CharField(max_length=1024)  # of a schema: its remote levels, joined with U+001F
    identity = models.CharField(max_length=128, blank=True)  # if known, differs for a later object of the same name
    version = models.CharField(max_length=128)
    formats = models.CharField(max_length=255, blank=True)  # of a table, as in Remote; spares reading `definition`
    definition = models.JSONField()
    taken_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["in_catalog", "wire_name"], name="mirror_wire_name")]

    @property
    def levels(self) -> list[str]:
        return self.wire_name.split(LEVELS)


class Listing(models.Model):
    """When the names below a catalog or schema were last listed, in catalogs that cache listings."""

    container = models.OneToOneField(Securable, models.CASCADE, primary_key=True)
    taken_at = models.DateTimeField()


class Tombstone(models.Model):
    """An object that was dropped in its outside system, with its owner and grants. Kept for a day."""

    in_catalog = models.ForeignKey(Catalog, models.CASCADE, db_column="catalog_id")
    kind = models.CharField(max_length=16)
    full_name = models.CharField(max_length=2048)
    securable_id = models.BigIntegerField()
    owner = models.CharField(max_length=255)
    grants = models.JSONField(default=list)
    found_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["in_catalog", "found_at"], name="tombstone_since")]

    def __str__(self) -> str:
        return f"{self.kind} {self.full_name}"


class Intent(models.Model):
    """A two-phase write to an outside system, until it is published or rolled back."""

    class State(models.TextChoices):
        OPEN = "open"  # being applied
        UNDOING = "undoing"  # refused or abandoned, now being rolled back
        COMMITTED = "committed"
        ABORTED = "aborted"
        RESIDUE = "residue"  # aborted, but a part remains because others use it
        STUCK = "stuck"  # needs an operator's decision

    LIVE = (State.OPEN, State.UNDOING, State.STUCK)

    id = models.BigIntegerField(primary_key=True, default=new_id, editable=False)
    verb = models.CharField(max_length=32)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    in_catalog = models.ForeignKey(Catalog, models.CASCADE, db_column="catalog_id")
    actor_id = models.BigIntegerField()
    actor_name = models.CharField(max_length=255)
    standing = models.JSONField(default=dict)  # claimed groups and active roles of the request
    request_id = models.CharField(max_length=128, blank=True)
    full_name = models.CharField(max_length=2048)
    arguments = models.JSONField()  # for publishing
    steps = models.JSONField()  # [{verb, arguments, status, result}], in call order
    error = models.JSONField(null=True)
    fence = models.PositiveIntegerField(default=0)  # fencing token: a process with a lower one has lost the intent
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    last_failure = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["state", "lease_until"], name="intent_due"),
            models.Index(fields=["in_catalog", "ended_at"], name="intent_ended_since"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.full_name} ({self.state})"


class Reservation(models.Model):
    """A name locked by a live intent: no other write to it starts until the intent has ended."""

    intent = models.ForeignKey(Intent, models.CASCADE, related_name="reservations")
    scope_id = models.BigIntegerField()  # the catalog or schema of the name
    slot = models.CharField(max_length=16)
    name = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope_id", "slot", "name"], name="reserved_name_is_unique")]


class RefreshRun(models.Model):
    """One sync of a whole outside catalog: its progress and counts."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    id = models.BigIntegerField(primary_key=True, default=new_id, editable=False)
    in_catalog = models.ForeignKey(Catalog, models.CASCADE, related_name="refreshes", db_column="catalog_id")
    state = models.CharField(max_length=16, choices=State.choices, default=State.RUNNING)
    requested_by = models.CharField(max_length=255)
    accept_drops = models.BooleanField(default=False)
    is_delivered = models.BooleanField(default=False, db_default=False)  # a job delivers the listings
    started_at = models.DateTimeField(default=timezone.now)
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    fence = models.PositiveIntegerField(default=0)
    after = models.CharField(max_length=1024, blank=True)  # the last schema that was fully compared
    counted = models.PositiveIntegerField(default=0)  # `seen` as of `after`, where a process resumes
    expected = models.PositiveIntegerField(default=0)  # objects, as of the start
    seen = models.PositiveIntegerField(default=0)
    created = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    dropped = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    held_back = models.PositiveIntegerField(default=0)  # missing outside, but too many to drop here
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["in_catalog"], condition=models.Q(state="running"), name="one_refresh_at_a_time"
            )
        ]
        indexes = [models.Index(fields=["in_catalog", "-started_at"], name="refresh_of_catalog")]

    def __str__(self) -> str:
        return f"refresh {self.pk} ({self.state})"

    @property
    def is_left_alone(self) -> bool:
        """Whether the process that ran it died, and no other has resumed it yet."""
        return self.state == self.State.RUNNING and bool(self.fence) and self.lease_until < timezone.now()


class HarvestedPart(models.Model):
    """A chunk of a listing that was delivered to a run, so that a duplicate delivery counts once.

    `schema` is the schema's remote name, empty for the catalog's listing of schemas. The chunk without a name marks
    that listing as complete. The rows are deleted when the run ends.
    """

    run = models.ForeignKey(RefreshRun, models.CASCADE, related_name="parts")
    schema = models.CharField(max_length=1024, blank=True)
    name = models.CharField(max_length=255, blank=True)
    seen = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "schema", "name"], name="a_part_counts_once")]

    def __str__(self) -> str:
        return f"{self.schema} {self.name}".strip()
