"""The view store interface that services use, and the record that it returns.

The provider's offer decides which store a catalog's views are in (docs/views.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, ClassVar
from uuid import UUID

from authz.actor import Actor
from catalogs.leaf_stores import LeafListing, LeafStore
from catalogs.pointer_stores import PointerStore, now_ms
from formats.iceberg.views.builder import new_view_metadata
from formats.iceberg.views.metadata_json import parse_view_metadata
from formats.iceberg.views.translate import from_iceberg_view
from formats.native.view_definition import ViewDefinition
from metalake.blocking import may_block
from metalake.lineage import Address, Located
from views_mgmt.models import ViewMeta

Json = dict[str, Any]
SMALL = 64 * 1024  # bytes of metadata, with its history, up to which the parsed view is cached


@lru_cache(maxsize=256)
def _defined_by(content: bytes) -> ViewDefinition:
    """The view that a metadata file defines; cached, since views are loaded more often than changed."""
    return from_iceberg_view(parse_view_metadata(content))


@dataclass(frozen=True)
class Plan:
    """A function from the current definition to the new one; called again when a commit conflict is retried."""

    wanted_of: Callable[[ViewDefinition], ViewDefinition]
    event: str = "view.altered"  # the event that is recorded

    def __call__(self, now: ViewDefinition) -> ViewDefinition:
        return self.wanted_of(now)


@dataclass(frozen=True)
class ViewRecord:
    """A view as read from its store at one point in time.

    `engine` is the engine whose view format it has (`trino`, `spark`, `flink`, `hive`, `iceberg` or `metalake`),
    `format` the storage format (`iceberg`, `hive`, `glue` or `metalake`). `metadata_location` and `content`, the
    metadata file, are set for Iceberg views. `taken_at` is when an outside system returned it, None for a view stored
    here; `entry` is private to the store. `meta` is the view's row, if the store has read it. `query_columns` are the
    column names of the SQL itself, if the engine records them.
    """

    view: Located
    engine: str
    format: str
    defined: ViewDefinition | None = None
    is_materialized: bool = False
    metadata_location: str | None = None
    content: bytes = b""
    taken_at: datetime | None = None
    entry: Any = None
    meta: ViewMeta | None = None
    query_columns: tuple[str, ...] = ()

    @property
    def published(self) -> Located:
        return self.view

    @cached_property
    def metadata(self) -> Json:
        """The parsed metadata file of an Iceberg view."""
        return parse_view_metadata(self.content)

    @cached_property
    def definition(self) -> ViewDefinition:
        """The definition; for an Iceberg view parsed lazily from its metadata."""
        if self.defined is not None:
            return self.defined
        if len(self.content) <= SMALL:
            return _defined_by(self.content)
        may_block()  # parsing larger metadata takes milliseconds
        return from_iceberg_view(self.metadata)


@dataclass(frozen=True)
class ViewDraft:
    """An Iceberg REST create request: a view version, its schema, and the view's properties."""

    schema: Json
    version: Json
    properties: dict[str, str]
    location: str | None = None

    def metadata(self, uuid: UUID, location: str) -> Json:
        return new_view_metadata(
            view_uuid=str(uuid),
            location=location,
            schema=self.schema,
            version=self.version,
            properties=self.properties,
            now_ms=now_ms(),
        )


class ViewStore(LeafStore):
    """A catalog's views. The caller has checked permissions; a write checks them again in its transaction."""

    # None in a catalog that is not an Iceberg catalog: Iceberg REST neither lists nor creates views there.
    pointers: ClassVar[PointerStore[ViewRecord, ViewDraft] | None]
    # Whether one request may combine a rename with other changes; not where name and definition are in two stores.
    renames_with_changes: ClassVar[bool] = False

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        """Refresh the rows of a schema's views; `iceberg` leaves out views in other formats."""

    @abstractmethod
    def load(self, actor: Actor, view: Located, *, refresh: bool = False, as_published: bool = False) -> ViewRecord:
        """Load a view. Raises NotFound if it is gone, Unsupported, with the reason, if it is unreadable."""

    @abstractmethod
    def require_there(self, actor: Actor, view: Located, *, iceberg: bool) -> None:
        """Raise NotFound if it is gone from its outside system or, with `iceberg`, in another format."""

    def check(self, actor: Actor, view: Located) -> Json | None:
        """What the system that has the view finds wrong with it, as `RemoteViews.check`."""
        return None

    def only_read(self, located: Located) -> str:
        """Why views are only read in this catalog; empty where they are written."""
        return ""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, wanted: ViewDefinition) -> ViewRecord:
        """Create a view. Raises AlreadyExists; Invalid or Unsupported, naming what the store cannot represent."""

    @abstractmethod
    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        """Alter a view, and rename it to `target` if given, as one new version."""

    @abstractmethod
    def rename(self, actor: Actor, source: Address, view: Located, target: Address, *, iceberg: bool) -> Located:
        """Rename a view, or move it to another schema; returns it under its new name."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, view: Located, *, iceberg: bool) -> None:
        """Drop a view; its versions are kept."""
