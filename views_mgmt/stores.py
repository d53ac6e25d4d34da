"""The stores of views as services use them, and the record that they return.

Which of them keeps a catalog's views follows from what its provider offers (docs/views.md).
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
SMALL = 64 * 1024  # bytes of metadata, with its history, of which is remembered what it says


@lru_cache(maxsize=256)
def _defined_by(content: bytes) -> ViewDefinition:
    """The view that a metadata file describes, remembered: a view is loaded more often than changed."""
    return from_iceberg_view(parse_view_metadata(content))


@dataclass(frozen=True)
class Plan:
    """A change that makes the wanted view from the view as it is now; it may be called again after a lost race."""

    wanted_of: Callable[[ViewDefinition], ViewDefinition]
    event: str = "view.altered"  # what the change is recorded as

    def __call__(self, now: ViewDefinition) -> ViewDefinition:
        return self.wanted_of(now)


@dataclass(frozen=True)
class ViewRecord:
    """A view as its store had it at one moment.

    `engine` is whose form it has (`trino`, `spark`, `flink`, `hive`, `iceberg` or `metalake`), `format` what it is
    stored as (`iceberg`, `hive`, `glue` or `metalake`). `metadata_location` and `content`, its metadata file, are those
    of an Iceberg view. `taken_at` is when an outside system was asked, None for a view stored here; `entry` is for
    the view's own store. `meta` is the view's row, where its store has read it. `query_columns` are the names that the
    SQL itself gives its columns, where its engine notes them.
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
        """The content of an Iceberg view's metadata file."""
        return parse_view_metadata(self.content)

    @cached_property
    def definition(self) -> ViewDefinition:
        """The view; that of an Iceberg view is read from its metadata, when it is asked for."""
        if self.defined is not None:
            return self.defined
        if len(self.content) <= SMALL:
            return _defined_by(self.content)
        may_block()  # parsing what is larger takes milliseconds
        return from_iceberg_view(self.metadata)


@dataclass(frozen=True)
class ViewDraft:
    """A creation request of the Iceberg wire: a view version, its schema, and the view's properties."""

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
    """The views of a catalog. The caller has checked the rights; a write checks them again, in its transaction."""

    # None in a catalog that is no Iceberg catalog: the Iceberg wire neither shows nor makes any views there.
    pointers: ClassVar[PointerStore[ViewRecord, ViewDraft] | None]
    # Whether a rename and other changes in one request are one change; where two stores would have to, it comes alone.
    renames_with_changes: ClassVar[bool] = False

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        """Bring the rows of a schema's views up to date; with `iceberg`, views in another format are left out."""

    @abstractmethod
    def load(self, actor: Actor, view: Located, *, refresh: bool = False, as_published: bool = False) -> ViewRecord:
        """Load it. Raises NotFound if it is gone, Unsupported, saying what is wrong, if it cannot be read."""

    @abstractmethod
    def require_there(self, actor: Actor, view: Located, *, iceberg: bool) -> None:
        """Raise NotFound if it is gone from its own system or, with `iceberg`, in another format."""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, wanted: ViewDefinition) -> ViewRecord:
        """Make a view. Raises AlreadyExists; Invalid or Unsupported for what the store cannot hold, naming it."""

    @abstractmethod
    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        """Change a view, and rename it to `target` if one is given, as one new version."""

    @abstractmethod
    def rename(self, actor: Actor, source: Address, view: Located, target: Address, *, iceberg: bool) -> Located:
        """Rename a view, or move it to another schema; the view with its new name."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, view: Located, *, iceberg: bool) -> None:
        """Drop a view; its versions stay."""
